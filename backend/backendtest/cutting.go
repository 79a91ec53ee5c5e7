package backendtest

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// cutting is the backend under test with streams that break: the first ones after so
// many bytes have come out of the sandbox.
type cutting struct {
	backend.Backend
	after int
	then  int // as after, for all but the first; 0: the same
	times int
	sever chan struct{} // closed: every stream breaks at once and none is made again
}

func (c *cutting) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	m, err := c.Backend.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &cutMachine{Machine: m, c: c}, nil
}

type cutMachine struct {
	backend.Machine
	c  *cutting
	mu sync.Mutex
	n  int
}

func (m *cutMachine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	select {
	case <-m.c.sever:
		return nil, errors.New("no way into the sandbox")
	default:
	}
	rwc, err := m.Machine.Dial(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	s := &cutStream{ReadWriteCloser: rwc, left: -1}
	if m.n <= m.c.times {
		s.left = m.c.after
		if m.n > 1 && m.c.then > 0 {
			s.left = m.c.then
		}
	}
	go func() {
		<-m.c.sever
		_ = rwc.Close()
	}()
	return s, nil
}

type cutStream struct {
	io.ReadWriteCloser
	left int // -1: never breaks
}

func (s *cutStream) Read(p []byte) (int, error) {
	if s.left < 0 {
		return s.ReadWriteCloser.Read(p)
	}
	if s.left == 0 {
		_ = s.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.ReadWriteCloser.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

func (s *suite) newCutting(t *testing.T, after, times int) *cutting {
	c := &cutting{Backend: s.Backend, after: after, times: times, sever: make(chan struct{})}
	t.Cleanup(func() {
		select {
		case <-c.sever:
		default:
			close(c.sever)
		}
	})
	return c
}
