package backendtest

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

	latest atomic.Pointer[cutStream]
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
		return nil, errors.New("no connection into the sandbox")
	default:
	}
	rwc, err := m.Machine.Dial(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	s := &cutStream{ReadWriteCloser: rwc, left: never}
	if m.n <= m.c.times {
		s.left = m.c.after
		if m.n > 1 && m.c.then > 0 {
			s.left = m.c.then
		}
	}
	m.c.latest.Store(s)
	go func() {
		<-m.c.sever
		_ = rwc.Close()
	}()
	return s, nil
}

// lateEnd is how much longer it takes to notice a cut by reading than by writing: either may
// be first on a real stream, and the one that is second must not make a call that was asked
// for in between count as lost.
const lateEnd = 20 * time.Millisecond

type cutStream struct {
	io.ReadWriteCloser
	mu   sync.Mutex
	left int // bytes until it breaks
}

// never is what is left of a stream that does not break.
const never = -1

// breakAfter has a stream break after so many further bytes, or never.
func (s *cutStream) breakAfter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = n
}

func (s *cutStream) Read(p []byte) (int, error) {
	if s.pass(0) == 0 {
		_ = s.Close()
		time.Sleep(lateEnd)
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.ReadWriteCloser.Read(p)
	before := s.pass(n)
	if before == never {
		return n, err
	}
	return min(n, before), err
}

// pass counts bytes, and returns how many there were until the stream breaks.
func (s *cutStream) pass(n int) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = s.left
	if left != never {
		s.left -= min(n, left)
	}
	return left
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
