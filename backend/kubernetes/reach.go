package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

const (
	// obituaryWait bounds the wait for the reason why a container is gone: the kubelet
	// tells it a moment later.
	obituaryWait = 5 * time.Second
	// listenTries is how often an agent is called that does not listen yet: its container
	// counts as running from the moment its program is started.
	listenTries = 20
)

// reach connects to the agent. It waits for an API server that is away as long as the
// agent waits for us.
func (m *session) reach(ctx context.Context) (s *stream, err error) {
	if m.isOver() {
		return nil, m.ended()
	}
	ctx, stop := m.whileAlive(ctx)
	defer stop()
	for range listenTries {
		err = persist(ctx, m.backend.grace(), func() (err error) {
			s, err = m.connect(ctx)
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
		return nil, access.Explain("connect to the agent in pod "+m.target.Pod, err)
	}
	// What a runtime says of a container that ends just now may be anything.
	return nil, m.obituary(ctx, err)
}

// obituary tells why a sandbox cannot be reached any more, as soon as the cluster does.
func (m *session) obituary(ctx context.Context, err error) error {
	timer := time.NewTimer(obituaryWait)
	defer timer.Stop()
	select {
	case <-m.over:
		return m.ended()
	case <-timer.C:
	case <-ctx.Done():
		if m.isOver() {
			return m.ended()
		}
	}
	return unreached(m.target.Pod, m.pod.Trouble(), err)
}

// unreached explains why the agent in a pod cannot be reached; trouble is what the cluster
// says of the pod, if anything.
func unreached(pod, trouble string, err error) error {
	why := trouble
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
	// Not of the error below: of what an API server answered its own message is told alone.
	if e, ok := err.(*access.Error); ok {
		e.Why += " (" + why + ")"
		return e
	}
	return fmt.Errorf("%w (%s)", err, why)
}

// whileAlive returns a context that ends with the sandbox, too.
func (m *session) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-m.over:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// withAgent calls do with a connection of its own.
func (m *session) withAgent(ctx context.Context, do func(*agentclient.Client) error) error {
	s, err := m.reach(ctx)
	if err != nil {
		return err
	}
	a, err := agentclient.Connect(ctx, s)
	if err != nil {
		return saying(fmt.Errorf("connect to the agent: %w", err), s.Stream)
	}
	return errors.Join(do(a), a.Close())
}
