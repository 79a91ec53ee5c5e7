package llmsandbox

import (
	"context"
	"fmt"
	"time"
)

// answerGrace is how long the agent may be silent once a process's timeout is over.
// The agent holds the timeout, and one that does not answer is lost.
const answerGrace = 15 * time.Second

// watchAgent returns a context that ends, with a cause that wraps ErrLost, when the
// agent does not answer although a process's timeout is over. An agent that answers
// is waited for: then it is the caller that has not yet read the output. stop ends
// the watching.
func (s *Sandbox) watchAgent(ctx context.Context, timeout time.Duration) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	timer := time.AfterFunc(timeout+answerGrace, func() {
		defer close(done)
		for watched.Err() == nil {
			if err := s.ping(watched); err != nil {
				cancel(fmt.Errorf("the sandbox's agent does not answer (%w): %w", err, ErrLost))
				return
			}
			select {
			case <-watched.Done():
			case <-time.After(answerGrace):
			}
		}
	})
	return watched, func() {
		cancel(nil)
		if !timer.Stop() {
			<-done
		}
	}
}

func (s *Sandbox) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	client, err := s.link.get(ctx)
	if err != nil {
		return err
	}
	return client.Ping(ctx)
}
