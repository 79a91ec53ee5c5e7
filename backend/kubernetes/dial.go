package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
)

// headerWait bounds the wait for the agent's first bytes: a node may hang while the API
// server answers.
const headerWait = 30 * time.Second

// A stream is the byte stream to an agent.
type stream struct {
	*podexec.Stream
	in *bufio.Reader
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

var (
	// errNotListening: the container runs, and its agent cannot be connected to.
	errNotListening = errors.New("the agent does not listen")
	errSilent       = fmt.Errorf("the pod has not answered within %v", headerWait)
)

// connect starts the agent's bridge inside, hears what it says of the container, and
// shows the token.
func (h *host) connect(ctx context.Context) (_ *stream, err error) {
	raw, err := h.backend.exec.Connect(ctx, h.target, h.agent.File, "connect", "--environment", h.agent.Socket)
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
	said, err := readHeader(s.in)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if strings.Contains(raw.Said(), "connection refused") {
			err = fmt.Errorf("%w: %w", errNotListening, err)
		}
		return nil, agenthost.Saying(err, raw)
	}
	if _, err := io.WriteString(s, h.agent.Token); err != nil {
		return nil, fmt.Errorf("show the token: %w", err)
	}
	h.header.Store(&said)
	return s, nil
}
