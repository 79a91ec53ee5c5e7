package kubernetes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/podwatch"
)

// verdictWait bounds the wait for what the cluster says of an init container that failed.
const verdictWait = 10 * time.Second

// await sees a pod start: first its init container, which is fed, then the sandbox.
func (m *machine) await(ctx context.Context, spec backend.Spec, pod *corev1.Pod) error {
	if fed(pod) {
		now, err := m.pod.Wait(ctx, initStarted)
		if err != nil {
			return err
		}
		if state(now.Status.InitContainerStatuses, podspec.InitContainer).Running != nil {
			m.progress(spec, "bringing the guest agent")
			if err := m.backend.feed(ctx, m.target, spec.Layers); err != nil {
				return m.verdict(ctx, err)
			}
		}
	}
	m.progress(spec, "starting the container")
	_, err := m.pod.Wait(ctx, started)
	return err
}

// verdict adds to a failure to feed a pod what the cluster says of it.
func (m *machine) verdict(ctx context.Context, err error) error {
	wait, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	var failed *podwatch.StartError
	if _, werr := m.pod.Wait(wait, started); errors.As(werr, &failed) {
		return errors.Join(werr, err)
	}
	return err
}

func (m *machine) progress(spec backend.Spec, message string) {
	if spec.Progress != nil {
		spec.Progress(backend.Progress{Stage: "start", Message: message})
	}
}

// fed tells whether a pod's init container waits for something.
func fed(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == podspec.InitContainer {
			return c.Stdin
		}
	}
	return false
}

// initStarted tells whether the init container waits, or did.
func initStarted(pod *corev1.Pod) (bool, error) {
	s := state(pod.Status.InitContainerStatuses, podspec.InitContainer)
	return s.Running != nil || s.Terminated != nil, nil
}

// started tells whether the sandbox's container runs.
func started(pod *corev1.Pod) (bool, error) { return runs(pod, podspec.Container), nil }

func runs(pod *corev1.Pod, container string) bool {
	return state(pod.Status.ContainerStatuses, container).Running != nil
}

func state(all []corev1.ContainerStatus, name string) corev1.ContainerState {
	for _, s := range all {
		if s.Name == name {
			return s.State
		}
	}
	return corev1.ContainerState{}
}
