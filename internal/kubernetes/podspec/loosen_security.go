package podspec

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
	if c := v.own.Capabilities; c != nil && len(c.Add) > 0 {
		l.add("capabilities", "capabilities.add: %s", joined(c.Add))
	}
	if e := v.own.AllowPrivilegeEscalation; e == nil || *e {
		l.add("no-new-privs", "allowPrivilegeEscalation: programs may gain privileges, such as those of set-uid files")
	}
	if r := v.own.ReadOnlyRootFilesystem; r == nil || !*r {
		l.add("filesystem", "readOnlyRootFilesystem=false: the root file system can be written to")
		l.add("disk", "readOnlyRootFilesystem=false: what is written to the root file system is limited by eviction only, some time after")
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
	if v.root() {
		l.add("user", "runAsUser: code may run as root inside")
	}
	if g := v.group(); g != nil && *g == 0 {
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
