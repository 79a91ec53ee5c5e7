package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
)

// headerWait bounds the wait for the agent's first words: a node may hang while the API
// server answers.
const headerWait = 30 * time.Second

// A stream is the byte stream to an agent.
type stream struct {
	*podexec.Stream
	in     *bufio.Reader
	header header
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

var (
	// errNotListening: the container runs, and its agent cannot be connected to.
	errNotListening = errors.New("the agent does not listen")
	// errEnded is the cause of the end of what waits for a sandbox that has ended.
	errEnded  = errors.New("the sandbox has ended")
	errSilent = fmt.Errorf("the pod has not answered within %v", headerWait)
)

// connect starts the agent's bridge inside, hears what it tells of the container, and
// shows the token.
func (m *session) connect(ctx context.Context) (_ *stream, err error) {
	raw, err := m.backend.exec.Connect(ctx, m.target, m.door.agent, "connect", "--environment", m.door.socket)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = raw.Close() // it is of no use
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, headerWait, errSilent)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	s := &stream{Stream: raw, in: bufio.NewReader(raw)}
	s.header, err = readHeader(s.in)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if strings.Contains(raw.Said(), "connection refused") {
			err = fmt.Errorf("%w: %w", errNotListening, err)
		}
		return nil, saying(err, raw)
	}
	if _, err := io.WriteString(s, m.door.token); err != nil {
		return nil, fmt.Errorf("show the token: %w", err)
	}
	return s, nil
}
