package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// ExistingControls returns the controls of a container of a pod that another program made,
// as far as the pod shows them.
func ExistingControls(p *corev1.Pod, container string) backend.Capabilities {
	v := viewOf(p, container)
	const fix = "make it with this limit, or let a sandbox make its own pod"
	off := func(name, why string) backend.Control {
		return backend.Control{Name: name, Why: why + "; the pod was made by another program", Fix: fix}
	}
	control := func(name, by string, enforced bool, why string) backend.Control {
		if enforced {
			return on(name, by, "")
		}
		return off(name, why)
	}
	drops := v.own.Capabilities
	dropsAll := drops != nil && len(drops.Add) == 0 && len(drops.Drop) == 1 && drops.Drop[0] == "ALL"
	ownProcesses := !v.pod.Spec.HostPID && !isTrue(v.pod.Spec.ShareProcessNamespace)
	mounts := v.pod.Spec.AutomountServiceAccountToken
	all := []backend.Control{
		control("user", "securityContext", !v.root(), "it runs as root, or as the user of its image"),
		{Name: "agent", Why: "it is not the first process of a pod that another program made, so code of its user can end it: the run is then lost",
			Fix: "let a sandbox make its own pod"},
		control("filesystem", "mount namespace", isTrue(v.own.ReadOnlyRootFilesystem), "its root can be written to"),
		control("processes", "pid namespace", ownProcesses, "it shares the processes of the node or of the pod's other containers"),
		off("network", "it has the pod's network"),
		control("ipc", "IPC namespace", !v.pod.Spec.HostIPC, "it shares the node's IPC"),
		control("capabilities", "securityContext", dropsAll && !isTrue(v.own.Privileged), "not all capabilities are dropped"),
		on("no-new-privs", "agent", ""),
		on("core-dumps", "RLIMIT_CORE 1", ""),
		on("seccomp", "the agent's filter", v.filters()),
		v.userNamespace(),
		// When the pod says nothing, the service account decides, which mounts one by default.
		control("service-account", "automountServiceAccountToken", mounts != nil && !*mounts && !v.mountsToken(), "a token of its service account may be inside"),
		control("memory", "cgroup", v.limit(corev1.ResourceMemory), "it has no memory limit"),
		control("cpus", "cgroup", v.limit(corev1.ResourceCPU), "it has no limit of CPUs"),
		off("pids", "Kubernetes has no limit of processes for one pod"),
		off("disk", "what it may write is not limited"),
	}
	for _, l := range v.loosened() {
		if l.control == "isolation" {
			all = loosen(all, loosenings{l})
		}
	}
	return backend.Capabilities{Backend: backendName, Isolation: v.isolation(), Controls: all}
}

// mountsToken reports whether a token of the service account is mounted by a volume, as the
// cluster itself does it too.
func (v view) mountsToken() bool {
	var l loosenings
	v.loosenedFiles(&l)
	for _, x := range l {
		if x.control == "service-account" {
			return true
		}
	}
	return false
}
