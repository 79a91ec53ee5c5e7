package kubernetes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// verdictWait bounds the wait for what the cluster says of an init container that failed.
const verdictWait = 10 * time.Second

// await sees a pod start: first its init container, which is fed, then the sandbox.
func (h *host) await(ctx context.Context, spec backend.Spec, pod *corev1.Pod) error {
	if fed(pod) {
		if err := h.feed(ctx, spec); err != nil {
			return err
		}
	}
	h.progress(spec, "starting the container")
	_, err := h.pod.Wait(ctx, started)
	return err
}

// feed feeds the init container as soon as it runs.
func (h *host) feed(ctx context.Context, spec backend.Spec) error {
	s, err := h.attachInit(ctx)
	if s != nil {
		h.progress(spec, "bringing the guest agent")
		err = h.backend.feed(ctx, s, spec.Layers)
	}
	var failed *podwatch.StartError
	if err == nil || errors.As(err, &failed) {
		return err
	}
	return h.verdict(ctx, err)
}

// attachInit attaches to the init container. It returns no stream when that has ended. An
// event reports up to a second before the pod's status that it runs. The status decides,
// since any user of the namespace may make events.
func (h *host) attachInit(ctx context.Context) (*podexec.Stream, error) {
	done := h.pod.Hear()
	now, err := h.pod.Wait(ctx, func(pod *corev1.Pod) (bool, error) {
		return h.pod.Started(podspec.InitContainer) || initStarted(pod), nil
	})
	done()
	if err != nil {
		return nil, err
	}
	if !initStarted(now) {
		if s, err := h.backend.attachInit(ctx, h.target); err == nil {
			return s, nil
		}
		now, err = h.pod.Wait(ctx, func(pod *corev1.Pod) (bool, error) { return initStarted(pod), nil })
	}
	if err != nil || !initRuns(now) {
		return nil, err
	}
	return h.backend.attachInit(ctx, h.target)
}

// verdict adds to a failure to feed a pod what the cluster says of it.
func (h *host) verdict(ctx context.Context, err error) error {
	wait, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	var failed *podwatch.StartError
	if _, werr := h.pod.Wait(wait, started); errors.As(werr, &failed) {
		return errors.Join(werr, err)
	}
	return err
}

func (h *host) progress(spec backend.Spec, message string) {
	if spec.Progress != nil {
		spec.Progress(backend.Progress{Stage: "start", Message: message})
	}
}

// fed reports whether a pod's init container waits for something.
func fed(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == podspec.InitContainer {
			return c.Stdin
		}
	}
	return false
}

// initStarted reports whether the init container waits, or did.
func initStarted(pod *corev1.Pod) bool {
	s := state(pod.Status.InitContainerStatuses, podspec.InitContainer)
	return s.Running != nil || s.Terminated != nil
}

func initRuns(pod *corev1.Pod) bool {
	return state(pod.Status.InitContainerStatuses, podspec.InitContainer).Running != nil
}

// started reports whether the sandbox's container runs.
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
