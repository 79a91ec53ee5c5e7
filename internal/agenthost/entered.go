package agenthost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// leaveTimeout bounds the end of an agent whose caller gave no bound.
const leaveTimeout = 20 * time.Second

// Settle gives the guest of a sandbox the directories that it has beside the agent's, which
// is the path of its file.
func Settle(g *backend.Guest, agent, id string) {
	g.Workdir = path.Join(path.Dir(path.Dir(agent)), "sandbox-"+id)
	g.TempDir = path.Join(g.Workdir, ".tmp")
}

// Enter takes the standard streams of an agent that was just started in the host, sends it
// hello, and waits until it speaks: by then it listens. Then it makes the sandbox's
// directories.
func (s *Session) Enter(ctx context.Context, stdio Stream, hello string) error {
	first := &unreadStream{Stream: stdio, in: bufio.NewReader(stdio)}
	s.Offer(first)
	s.Follow()
	if err := first.spoken(ctx, hello); err != nil {
		return Saying(fmt.Errorf("start the agent in the container: %w", err), first)
	}
	s.serving = true
	return s.WithAgent(ctx, func(a *agentclient.Client) error {
		for _, dir := range []string{s.Inside.Workdir, s.Inside.TempDir} {
			if err := a.Mkdir(ctx, dir, 0o700, true); err != nil {
				return fmt.Errorf("make a working directory in the container: %w", err)
			}
		}
		return nil
	})
}

// leave removes the working directory and ends the agent with all that was started through
// it. It returns when the agent has ended. The container stays as it is.
func (s *Session) leave(ctx context.Context) error {
	defer s.release()
	if s.over.Err() != nil || !s.serving {
		return nil
	}
	return s.WithAgent(ctx, func(a *agentclient.Client) error {
		err := a.Remove(ctx, s.Inside.Workdir, agentclient.RemoveOptions{Recursive: true, Missing: true})
		if err := errors.Join(err, a.Shutdown(ctx)); err != nil {
			return err
		}
		select {
		case <-a.Done(): // its stream ends when it has
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the agent in the container does not end: %w", context.Cause(ctx))
		}
	})
}

// An unreadStream can be looked at before it is read.
type unreadStream struct {
	Stream
	in *bufio.Reader
}

func (s *unreadStream) Read(p []byte) (int, error) { return s.in.Read(p) }

// spoken sends hello and waits until there is something to read, which it leaves there. The
// stream is closed when the context ends before that.
func (s *unreadStream) spoken(ctx context.Context, hello string) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	var err error
	if hello != "" {
		_, err = io.WriteString(s, hello)
	}
	if err == nil {
		_, err = s.in.Peek(1)
	}
	if !stop() {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}
