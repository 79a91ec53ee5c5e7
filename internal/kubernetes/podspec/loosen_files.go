package podspec

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
