package engine

import (
	"context"
	"fmt"
	"io"

	"github.com/moby/moby/client"
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
	h, err := c.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	s := newStream(h.HijackedResponse)
	if _, err := io.WriteString(s, m.token); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("show the token: %w", err)
	}
	return s, nil
}
