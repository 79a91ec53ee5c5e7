package kubernetes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// Attach finds a sandbox that this or another process made, on whatever machine.
func (b *Backend) Attach(ctx context.Context, id string) (backend.Machine, error) {
	found, err := b.pods(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, pod := range found {
		if !lives(&pod) {
			continue
		}
		// Who may not look does not learn whether the network is closed, and can attach.
		if err := b.lookAtPolicy(ctx); err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		h := &host{backend: b, uid: pod.UID, target: podexec.Target{Namespace: pod.Namespace, Pod: pod.Name, Container: podspec.Container}}
		about, err := h.describe(&pod)
		if err != nil {
			return nil, fmt.Errorf("sandbox %s is not as this program makes them: %w", id, err)
		}
		// Its owner may be another: then it is not among those that are watched.
		watch := podwatch.New(b.cluster.Client, b.cluster.Namespace, podspec.LabelSandbox+"="+id)
		if h.pod, err = watch.Follow(pod.Name); err != nil {
			return nil, err
		}
		h.pod.Is(&pod)
		s := agenthost.New(agenthost.Attached, h, about)
		if err := h.enter(ctx, s); err != nil {
			return nil, errors.Join(err, s.Close(nil))
		}
		return s, nil
	}
	return nil, fmt.Errorf("sandbox %s: %w", id, backend.ErrNotFound)
}
