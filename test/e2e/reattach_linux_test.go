package e2e

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// cutting is the local backend with streams that break: the first ones after so
// many bytes have come out of the sandbox.
type cutting struct {
	backend.Backend
	after int
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

func newCutting(t *testing.T, after, times int) *cutting {
	c := &cutting{Backend: local.New(local.Options{}), after: after, times: times, sever: make(chan struct{})}
	t.Cleanup(func() {
		select {
		case <-c.sever:
		default:
			close(c.sever)
		}
	})
	return c
}

// TestLostStreamResumes breaks the stream in the middle of a run's output: the run
// goes on and not a byte is lost or doubled.
func TestLostStreamResumes(t *testing.T) {
	const lines = 20000
	var want strings.Builder
	for i := range lines {
		want.WriteString(strings.Repeat("x", i%50))
		want.WriteByte('\n')
	}
	for _, after := range []int{200, 1000, 65000, 300000} {
		sb := open(t, llmsandbox.Options{Backend: newCutting(t, after, 3)})
		res, err := sb.Run(testContext(t), "for i in range(20000): print('x' * (i % 50))", nil)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", after, err)
		}
		wantExit(t, res, 0)
		if res.Stdout != want.String() {
			t.Errorf("cut after %d bytes: %d bytes arrived, want %d, or others", after, len(res.Stdout), want.Len())
		}
	}
}

// TestAbuse96LostIsNeverSuccess takes every way into the sandbox away: what became
// of the program cannot be known, and is not made up.
func TestAbuse96LostIsNeverSuccess(t *testing.T) {
	c := newCutting(t, 0, 0)
	sb := open(t, llmsandbox.Options{Backend: c})
	started := writerFunc(func() { close(c.sever) })
	res, err := sb.Run(testContext(t), "import time; print('up', flush=True); time.sleep(1)", &llmsandbox.RunOptions{Stdout: started})
	if !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost || res.ExitCode != nil {
		t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost, none", err, res.Status, show(res.ExitCode))
	}
}

// TestSandboxKilledMidRunIsLost ends the sandbox itself while a program runs in it.
func TestSandboxKilledMidRunIsLost(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	var once sync.Once
	kill := writerFunc(func() {
		once.Do(func() {
			go func() { _ = sb.Destroy(context.Background()) }()
		})
	})
	start := time.Now()
	res, err := sb.Run(testContext(t), "import time; print('up', flush=True); time.sleep(300)", &llmsandbox.RunOptions{Stdout: kill})
	if !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost || res.ExitCode != nil {
		t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost, none", err, res.Status, show(res.ExitCode))
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v to find out", d)
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
