package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// connect starts the agent's bridge inside, and shows the token.
func (m *session) connect(ctx context.Context) (io.ReadWriteCloser, error) {
	c := m.backend.client
	made, err := c.ExecCreate(ctx, m.container, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Cmd: []string{m.agent, "connect", socketName(m.info.ID)},
		// It would inherit the agent's own.
		Env: []string{envToken + "=", envGuest + "="},
	})
	if err != nil {
		return nil, err
	}
	h, err := startExec(ctx, c, made.ID)
	if err != nil {
		return nil, err
	}
	s := newStream(h)
	if _, err := io.WriteString(s, m.token); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("show the token: %w", err)
	}
	return s, nil
}

// withAgent calls do with a connection of its own.
func (m *session) withAgent(ctx context.Context, do func(*agentclient.Client) error) error {
	rwc, err := m.connect(ctx)
	if err != nil {
		return m.backend.explain("connect to the agent", err)
	}
	a, err := agentclient.Connect(ctx, rwc)
	if err != nil {
		return m.sayAgent(fmt.Errorf("connect to the agent: %w", err), rwc)
	}
	return errors.Join(do(a), a.Close())
}

// sayAgent adds what the agent, or the engine in its place, said on stderr.
func (m *session) sayAgent(err error, rwc io.ReadWriteCloser) error {
	if s, ok := rwc.(*stream); ok && s.said() != "" {
		return fmt.Errorf("%w: %q", err, s.said())
	}
	return err
}
