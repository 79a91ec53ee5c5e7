package podspec

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A loosening is a control that no longer holds, or not fully, since the pod asks for
// something. "isolation" is one that none of the others holds without.
type loosening struct {
	control string
	what    string // what was asked for and what it means, as clauses
}

type loosenings []loosening

func (l *loosenings) add(control, format string, args ...any) {
	*l = append(*l, loosening{control: control, what: fmt.Sprintf(format, args...)})
}

// loosened returns what the pod asks for beyond the safe default.
func (v view) loosened() loosenings {
	var l loosenings
	v.loosenedNamespaces(&l)
	v.loosenedSecurity(&l)
	v.loosenedFiles(&l)
	return l.merged()
}

// merged has each control once, sorted.
func (l loosenings) merged() loosenings {
	slices.SortStableFunc(l, func(a, b loosening) int { return strings.Compare(a.control, b.control) })
	var out loosenings
	for _, x := range l {
		if n := len(out); n > 0 && out[n-1].control == x.control {
			out[n-1].what += "; " + x.what
			continue
		}
		out = append(out, x)
	}
	return out
}

// loosen takes back what the pod has loosened. What it loosens beside the controls of
// every sandbox is added.
func loosen(all []backend.Control, by loosenings) []backend.Control {
	for _, l := range by {
		fix := "leave that out of the pod template"
		if l.control == "user" {
			fix += ", and name a group with a user (--user 1000:1000)"
		}
		why, found := "the pod loosens it: "+l.what, false
		for i := range all {
			// Without isolation nothing of it holds.
			if all[i].Name != l.control && l.control != "isolation" {
				continue
			}
			if all[i].Enforced {
				all[i] = backend.Control{Name: all[i].Name, Why: why, Fix: fix}
			} else {
				all[i].Why += "; " + why
			}
			found = found || all[i].Name == l.control
		}
		if !found {
			all = append(all, backend.Control{Name: l.control, Why: why, Fix: fix})
		}
	}
	return all
}

// loosenedFiles returns what is mounted beside the sandbox's own volumes.
func (v view) loosenedFiles(l *loosenings) {
	if v.container.TerminationMessagePath != closedFile {
		l.add("disk", "terminationMessagePath: a file on the node's disk that everybody may write to, and that nothing limits")
	}
	for _, m := range v.container.VolumeMounts {
		if !strings.HasPrefix(m.Name, volumePrefix) {
			v.loosenedMount(l, m)
		}
	}
	for _, c := range slices.Concat(v.pod.Spec.Containers, v.pod.Spec.InitContainers) {
		for _, m := range c.VolumeMounts {
			if c.Name != v.container.Name && (m.Name == VolumeWorkdir || m.Name == VolumeTemp) {
				l.add("filesystem", "volumeMounts: container %s has %s too", c.Name, m.Name)
			}
		}
	}
}

func (v view) loosenedMount(l *loosenings, m corev1.VolumeMount) {
	vol := v.volume(m.Name)
	access := "writable"
	if m.ReadOnly {
		access = "read-only"
	}
	switch {
	case vol.Projected != nil:
		if slices.ContainsFunc(vol.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			l.add("service-account", "volumes: %s at %s: a token of the service account", m.Name, m.MountPath)
		}
		return
	case vol.Secret != nil || vol.ConfigMap != nil || vol.DownwardAPI != nil || vol.Image != nil:
		return // read-only, and only added to what is inside
	case vol.EmptyDir != nil:
		if m.ReadOnly {
			return
		}
		if s := vol.EmptyDir.SizeLimit; s != nil {
			l.add("disk", "volumes: %s holds up to %s besides", m.MountPath, s)
		} else {
			l.add("disk", "volumes: what is written to %s is limited by the memory limit only", m.MountPath)
		}
		return
	case vol.HostPath != nil:
		if escapes(vol.HostPath.Path, m.ReadOnly) {
			l.add("isolation", "volumes: the node's %s at %s: whoever has it is as good as root on the node", vol.HostPath.Path, m.MountPath)
		}
		l.add("filesystem", "volumes: the node's %s at %s, %s", vol.HostPath.Path, m.MountPath, access)
	default:
		l.add("filesystem", "volumes: %s at %s, %s", m.Name, m.MountPath, access)
	}
	if !m.ReadOnly {
		l.add("disk", "volumes: what is written to %s is not limited", m.MountPath)
	}
}

// nodeDirs are those that make a user who may write to them, or to what lies below,
// root on the node. Those that hold sockets need only be reached.
var (
	nodeDirs   = []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/root", "/opt", "/proc", "/sys", "/dev", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/containers", "/var/lib/docker", "/var/lib/etcd", "/var/spool/cron"}
	socketDirs = []string{"/", "/run", "/var/run", "/var", "/run/containerd", "/run/crio", "/run/k3s", "/run/docker", "/var/lib", "/var/lib/kubelet"}
	sockets    = []string{"docker.sock", "containerd.sock", "crio.sock", "podman.sock", "kubelet.sock"}
)

// escapes reports whether a path of the node gives the node away.
func escapes(source string, readOnly bool) bool {
	p := path.Clean(source)
	if rest, ok := strings.CutPrefix(p, "/var/run/"); ok {
		p = "/run/" + rest
	}
	if slices.Contains(sockets, path.Base(p)) || slices.Contains(socketDirs, p) {
		return true
	}
	return !readOnly && slices.ContainsFunc(nodeDirs, func(f string) bool {
		return p == f || strings.HasPrefix(p, f+"/")
	})
}

func joined[T any](all []T) string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = fmt.Sprint(x)
	}
	return strings.Join(names, ", ")
}

func (v view) loosenedNamespaces(l *loosenings) {
	s := v.pod.Spec
	const notFirst = "the agent is not process 1, so code that shares its user can end it"
	if s.HostPID {
		l.add("processes", "hostPID: code sees the node's processes")
		l.add("agent", "hostPID: %s", notFirst)
	}
	if isTrue(s.ShareProcessNamespace) {
		l.add("processes", "shareProcessNamespace: code sees the processes of the pod's other containers")
		l.add("agent", "shareProcessNamespace: %s", notFirst)
	}
	if s.HostIPC {
		l.add("ipc", "hostIPC: shared memory reaches beyond the sandbox")
	}
	if s.HostNetwork {
		l.add("network", "hostNetwork: the node's own network, with all that listens on its loopback, which no NetworkPolicy holds")
	}
	for _, p := range v.container.Ports {
		if p.HostPort != 0 {
			l.add("network", "hostPort: port %d is published on the node's port %d", p.ContainerPort, p.HostPort)
		}
	}
	if isTrue(s.EnableServiceLinks) {
		l.add("service-links", "enableServiceLinks: the names and addresses of the namespace's services are in the environment")
	}
	if isTrue(s.AutomountServiceAccountToken) {
		l.add("service-account", "automountServiceAccountToken: code may ask the cluster's API for what the service account may")
	}
}

func (v view) loosenedSecurity(l *loosenings) {
	if isTrue(v.own.Privileged) {
		l.add("isolation", "privileged: all capabilities and devices and no confinement, as good as root on the node")
		l.add("capabilities", "privileged: all of them")
	}
	v.loosenedUser(l)
	if c := v.own.Capabilities; c != nil {
		more := slices.DeleteFunc(slices.Clone(c.Add), func(c corev1.Capability) bool { return v.asRoot() && slices.Contains(rootCapabilities(), c) })
		if len(more) > 0 {
			l.add("capabilities", "capabilities.add: %s", joined(more))
		}
	}
	if e := v.own.AllowPrivilegeEscalation; e == nil || *e {
		l.add("no-new-privs", "allowPrivilegeEscalation: programs may gain privileges, such as those of set-uid files")
	}
	switch p := v.seccomp(); {
	case p == nil || p.Type == corev1.SeccompProfileTypeUnconfined:
		l.add("seccomp", "seccompProfile Unconfined: the container runtime filters no system calls")
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		l.add("seccomp", "seccompProfile Localhost: a profile of the caller in place of the container runtime's")
	}
	if p := v.appArmor(); p != nil && p.Type != corev1.AppArmorProfileTypeRuntimeDefault {
		l.add("apparmor", "appArmorProfile %s in place of the container runtime's", p.Type)
	}
	if o := v.seLinux(); o != nil {
		l.add("selinux", "seLinuxOptions in place of the container runtime's")
	}
	if p := v.own.ProcMount; p != nil && *p == corev1.UnmaskedProcMount {
		l.add("masked-paths", "procMount Unmasked: files of the kernel that are hidden otherwise")
	}
	v.loosenedDevices(l)
}

func (v view) loosenedUser(l *loosenings) {
	if v.root() && !v.asRoot() {
		l.add("user", "runAsUser: code may run as root inside")
	}
	if g := v.group(); g != nil && *g == 0 && !v.asRoot() {
		l.add("user", "runAsGroup: code runs with the group of root inside")
	}
	if g := v.podWide.FSGroup; g != nil && *g == 0 {
		l.add("user", "fsGroup: code runs with the group of root inside")
	}
	if len(v.podWide.SupplementalGroups) > 0 {
		l.add("user", "supplementalGroups: code belongs to %s too", joined(v.podWide.SupplementalGroups))
	}
}

func (v view) loosenedDevices(l *loosenings) {
	for _, name := range slices.Sorted(maps.Keys(v.container.Resources.Limits)) {
		// A name without a domain is Kubernetes' own.
		if q := v.container.Resources.Limits[name]; strings.Contains(string(name), "/") && !q.IsZero() {
			l.add("devices", "resources: %s %s", &q, name)
		}
	}
	for _, c := range v.container.Resources.Claims {
		l.add("devices", "resources: what claim %s gives", c.Name)
	}
	for _, d := range v.container.VolumeDevices {
		l.add("devices", "volumeDevices: volume %s at %s", d.Name, d.DevicePath)
	}
}
