package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

const (
	// reasonWait bounds the wait for the reason why a container is gone: the kubelet
	// says it a moment later.
	reasonWait = 5 * time.Second
	// listenTries is how often an agent is called that does not listen yet: its container
	// counts as running from the moment its program is started.
	listenTries = 20
)

// Connect connects to the agent. It waits for an API server that is away as long as the
// agent waits for us.
func (h *host) Connect(ctx context.Context) (agenthost.Stream, error) {
	var s *stream
	var err error
	for range listenTries {
		err = persist(ctx, h.backend.grace(), func() (err error) {
			s, err = h.connect(ctx)
			return err
		})
		if !errors.Is(err, errNotListening) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err == nil:
		return s, nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, access.Explain("connect to the agent in pod "+h.target.Pod, err)
	}
	// What a runtime says of a container that ends just now may be anything.
	return nil, h.explain(ctx, err)
}

// explain finds out why a sandbox cannot be reached any more, as soon as the cluster knows.
func (h *host) explain(ctx context.Context, err error) error {
	timer := time.NewTimer(reasonWait)
	defer timer.Stop()
	select {
	case <-h.pod.Done():
		return agenthost.ErrGone
	case <-timer.C:
	case <-ctx.Done():
	}
	return unreached(h.target.Pod, h.pod.Trouble(), err)
}

// unreached explains why the agent in a pod cannot be reached; reason is what the cluster
// says of the pod, if anything.
func unreached(pod, reason string, err error) error {
	why := reason
	switch {
	case apierrors.IsNotFound(err):
		err, why = fmt.Errorf("%w: %w", backend.ErrNotFound, err), ""
	case why == "" && nodeAway(err):
		why = "the kubelet of the pod's node does not answer, or has just started"
	}
	err = access.Explain("connect to the agent in pod "+pod, err)
	if why == "" {
		return err
	}
	// Not in the error below: of an API server's answer only its own message is shown.
	if e, ok := err.(*access.Error); ok {
		e.Why += " (" + why + ")"
		return e
	}
	return fmt.Errorf("%w (%s)", err, why)
}
