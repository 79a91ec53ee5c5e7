package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// A host is the container of a pod that an agent runs in.
type host struct {
	backend *Backend
	target  podexec.Target
	agent   agenthost.Agent
	pod     *podwatch.Pod // nil until it is followed
	header  atomic.Pointer[header]

	uid    types.UID    // of a pod to delete; empty: there is none
	unhold func() error // lets go of the layers; nil where another handle owns the sandbox, and once it was called
}

var _ agenthost.Host = (*host)(nil)

// start gets the pod, sees it start, and connects.
func (h *host) start(ctx context.Context, s *agenthost.Session, spec backend.Spec, pod *corev1.Pod) (err error) {
	b := h.backend
	h.target = podexec.Target{Namespace: b.cluster.Namespace, Pod: pod.Name, Container: podspec.Container}
	// Before the pod is there, so that nothing of it is missed.
	if h.pod, err = b.watch.Follow(pod.Name); err != nil {
		return err
	}
	made, err := b.source.Obtain(ctx, pod)
	if err != nil {
		return err
	}
	h.uid, h.target.Pod = made.UID, made.Name
	if made.Name != pod.Name { // not one that was made for us
		h.pod.Stop()
		if h.pod, err = b.watch.Follow(made.Name); err != nil {
			return err
		}
	}
	h.pod.Is(made)
	if s.Description, err = h.describe(made); err != nil {
		return fmt.Errorf("pod %s: %w", made.Name, err)
	}
	if err := h.await(ctx, spec, made); err != nil {
		return err
	}
	return h.enter(ctx, s)
}

// describe takes over what a pod says of itself.
func (h *host) describe(pod *corev1.Pod) (d agenthost.Description, err error) {
	if d.Sandbox, err = decodeInfo(pod); err != nil {
		return d, err
	}
	if d.Inside, err = decodeGuest(pod); err != nil {
		return d, err
	}
	if h.agent, err = agentOf(pod); err != nil {
		return d, err
	}
	d.Enforced = h.backend.controls(pod, d.Sandbox.Limits)
	return d, nil
}

// enter makes the first stream, over which the agent's container describes itself.
func (h *host) enter(ctx context.Context, s *agenthost.Session) error {
	s.Follow()
	stream, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	s.Offer(stream)
	s.Inside = complete(s.Inside, *h.header.Load())
	return nil
}

// Await waits for what the watch of the pod says.
func (h *host) Await(ctx context.Context) bool {
	select {
	case <-h.pod.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// End is what the cluster says of the pod. For memory it was killed where the kernel, or the
// container's runtime, says so.
func (h *host) End() (backend.End, int) {
	if h.pod == nil {
		return backend.End{}, 0
	}
	return backend.End{Reason: h.pod.Ended(), KilledForMemory: h.pod.OOMKilled()}, int(h.pod.ExitCode())
}

// Commit fails: an image is made where it is kept, and a cluster keeps none.
func (h *host) Commit(context.Context, string, string, io.Reader) (string, error) {
	return "", fmt.Errorf("%w: the %s backend makes no images of sandboxes: use docker or podman", backend.ErrUnsupported, Name)
}

// Remove deletes the pod, which stays until then also when its agent has ended. There is no
// grace. The owner takes over what could not be deleted.
func (h *host) Remove(ctx context.Context, _ bool) error {
	h.Release()
	err := h.deletePod(ctx, deletePatience)
	if h.unhold == nil {
		return err
	}
	unhold := h.unhold
	h.unhold = nil
	var owed func(context.Context) error
	if err != nil {
		owed = func(ctx context.Context) error { return h.deletePod(ctx, 0) }
	}
	return errors.Join(err, unhold(), h.backend.owner.leave(ctx, owed))
}

func (h *host) deletePod(ctx context.Context, patience time.Duration) error {
	if h.uid == "" {
		return nil
	}
	return deletePod(ctx, h.backend.cluster.Client.CoreV1().Pods(h.target.Namespace), h.target.Pod, h.uid, patience)
}

// Release ends this handle's part of the watch.
func (h *host) Release() {
	if h.pod != nil {
		h.pod.Stop()
	}
}
