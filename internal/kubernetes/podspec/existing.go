package podspec

import (
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
	if container == "" {
		container = p.Annotations[annotationContainer]
	}
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
