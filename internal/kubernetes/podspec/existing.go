package podspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Existing returns the container of a pod that another program made, into which the agent
// can be brought now. When container is empty it is the pod's only one, or the one that
// the pod names for kubectl. An error says why it cannot be used, and wraps
// backend.ErrInvalid, ErrNotFound or ErrUnsupported.
func Existing(p *corev1.Pod, container string) (string, error) {
	fail := func(kind error, format string, args ...any) (string, error) {
		return "", fmt.Errorf("pod %s: %w: %s", p.Name, kind, fmt.Sprintf(format, args...))
	}
	switch {
	case p.Labels[LabelManagedBy] == ManagedBy && p.Labels[LabelSandbox] != "":
		return fail(backend.ErrInvalid, "it is the sandbox %s: attach to it by that id", p.Labels[LabelSandbox])
	case p.Spec.OS != nil && p.Spec.OS.Name == windows || p.Spec.NodeSelector[labelOS] == windows:
		return fail(backend.ErrUnsupported, "it runs on Windows, and the guest agent needs Linux")
	case p.DeletionTimestamp != nil:
		return fail(backend.ErrNotFound, "it is being deleted")
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return fail(backend.ErrNotFound, "it has ended: %s", because(string(p.Status.Phase), p.Status.Reason, p.Status.Message))
	}
	names := containerNames(p)
	container = cmp.Or(container, p.Annotations[annotationContainer])
	if container == "" && len(p.Spec.Containers) == 1 {
		container = p.Spec.Containers[0].Name
	}
	switch {
	case container == "":
		return fail(backend.ErrInvalid, "it has the containers %s: name one", strings.Join(names, ", "))
	case !slices.Contains(names, container):
		return fail(backend.ErrNotFound, "it has no container %q, only %s", container, strings.Join(names, ", "))
	}
	if why := notRunning(p, container); why != "" {
		return fail(backend.ErrUnsupported, "its container %s does not run: %s", container, why)
	}
	return container, nil
}

// containerNames are those of the containers that run as long as the pod does, and of
// those that were added to it since.
func containerNames(p *corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names = append(names, c.Name)
		}
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

// notRunning returns why a container does not run; "" when it does.
func notRunning(p *corev1.Pod, name string) string {
	all := slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses)
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return "it has not been started yet: wait until the pod is ready"
	}
	switch s := all[i].State; {
	case s.Running != nil:
		return ""
	case s.Terminated != nil:
		return because(fmt.Sprintf("it ended with %d", s.Terminated.ExitCode), s.Terminated.Reason, s.Terminated.Message)
	case s.Waiting != nil:
		return because("it waits", s.Waiting.Reason, s.Waiting.Message)
	}
	return "it waits"
}

// because adds to what happened what the cluster says of it.
func because(what string, reasons ...string) string {
	for _, r := range reasons {
		if r != "" && r != what {
			what += ": " + r
		}
	}
	return what
}

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
	return slices.ContainsFunc(l, func(x loosening) bool { return x.control == "service-account" })
}
