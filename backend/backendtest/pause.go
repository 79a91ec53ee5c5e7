package backendtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// pauseNow pauses a sandbox; where the backend cannot, the sandbox goes on, and the case is over.
func (s *suite) pauseNow(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	err := sb.Pause(testContext(t))
	memory, _ := sb.Capabilities().Get("memory")
	if errors.Is(err, llmsandbox.ErrUnsupported) && (s.Backend.Name() != "local" || !strings.HasPrefix(memory.By, "cgroup")) {
		answers(t, sb)
		t.Skipf("this backend cannot, and says so: %v", err)
	}
	if err != nil {
		t.Fatalf("pause: %v", err)
	}
}

func resume(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	if err := sb.Resume(testContext(t)); err != nil {
		t.Fatalf("resume: %v", err)
	}
}

func (s *suite) wantPaused(t *testing.T, sb *llmsandbox.Sandbox, want bool) {
	t.Helper()
	list, err := llmsandbox.List(testContext(t), s.Backend)
	i := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == sb.ID() })
	if err != nil || i < 0 || list[i].Paused != want {
		t.Errorf("listed at %d of %+v (%v), want no error, it there with Paused = %v", i, list, err, want)
	}
}

// counting is a program that counts the tenths of a second in which it ran.
const counting = `
import time
n, last = 0, time.monotonic()
while True:
    time.sleep(0.1)
    n += 1
    print(n, flush=True)
`

// lines hands on what comes, as it comes.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// pause: what is paused does nothing, takes no time, and goes on as if nothing had been.
func (s *suite) pause(t *testing.T) {
	ctx := testContext(t)
	sb := s.openNow(t, llmsandbox.Options{Lifetime: time.Hour, IdleTimeout: time.Minute})
	s.pauseNow(t, sb) // before anything runs there: it may be that it cannot be
	resume(t, sb)
	kernel, err := sb.Kernel(ctx, "python", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	cell, err := kernel.Run(ctx, "import os; x = os.getpid()", nil)
	if err != nil || !cell.OK() {
		t.Fatalf("%+v, %v, want no error, OK", cell, err)
	}
	pid, err := kernel.Run(ctx, "print(x)", nil)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4 * time.Second
	counted := make(lines, 1)
	running := make(chan *llmsandbox.Result, 1)
	go func() {
		res, err := sb.Run(ctx, counting, &llmsandbox.RunOptions{Stdout: counted, Timeout: limit})
		if err != nil {
			t.Errorf("the run: %v", err)
		}
		running <- res
	}()
	celling, begun := make(chan *llmsandbox.Cell, 1), make(lines, 1)
	<-counted
	go func() {
		cell, err := kernel.Run(ctx, "import time; print('begun', flush=True); time.sleep(2); print('slept')", &llmsandbox.CellOptions{Stdout: begun, Timeout: limit})
		if err != nil {
			t.Errorf("the cell: %v", err)
		}
		celling <- cell
	}()
	<-begun
	before, _ := sb.Deadline()
	paused := time.Now()
	s.pauseNow(t, sb)
	s.wantPaused(t, sb, true)
	for len(counted) > 0 {
		<-counted
	}
	for what, do := range map[string]func() error{
		"pause":    func() error { return sb.Pause(ctx) },
		"exec":     func() error { _, err := sb.Exec(ctx, []string{"true"}, nil); return err },
		"write":    func() error { return sb.WriteFile(ctx, "x", nil) },
		"deadline": func() error { return sb.SetDeadline(ctx, time.Now()) },
	} {
		if err := do(); !errors.Is(err, llmsandbox.ErrPaused) {
			t.Errorf("%s of a paused sandbox: %v, want ErrPaused", what, err)
		}
	}
	other := s.attach(t, sb)
	if _, err := other.Exec(ctx, []string{"true"}, nil); !errors.Is(err, llmsandbox.ErrPaused) {
		t.Errorf("exec by a handle that has attached meanwhile: %v, want ErrPaused", err)
	}
	time.Sleep(limit + time.Second) // as long as the limits of what runs
	if n := len(counted); n > 0 {
		t.Errorf("the program has gone on: %q", <-counted)
	}
	resume(t, other) // whichever handle it is
	resume(t, sb)
	for range 2 {
		select {
		case <-counted:
		case <-time.After(hang):
			t.Fatal("the program does not go on, want it to")
		}
	}
	s.wantPaused(t, sb, false)
	if cell := <-celling; cell == nil || cell.Stdout != "begun\nslept\n" {
		t.Errorf("the cell: %+v, want Stdout = \"begun\\nslept\\n\"", cell)
	}
	if res := <-running; res == nil || res.Status != llmsandbox.StatusTimeout {
		t.Errorf("the run: %+v, want StatusTimeout", res)
	} else if n := strings.Count(res.Stdout, "\n"); n > 10*int(limit/time.Second) {
		t.Errorf("it has counted to %d, want at most %d", n, 10*int(limit/time.Second))
	}
	if again, err := kernel.Run(ctx, "print(x)", nil); err != nil || again.Stdout != pid.Stdout {
		t.Errorf("the kernel: %+v, %v, want no error, Stdout = %q", again, err, pid.Stdout)
	}
	after, _ := sb.Deadline()
	if moved, most := after.Sub(before), time.Since(paused); moved < limit || moved > most {
		t.Errorf("the deadline has moved by %v, want %v to %v", moved, limit, most)
	}
	s.wantListed(t, sb.ID(), after)
	answers(t, other)
}

// pausedEnds: a sandbox that is paused can be ended by every handle, and leaves nothing.
func (s *suite) pausedEnds(t *testing.T) {
	for how, end := range map[string]func(ctx context.Context, sb, other *llmsandbox.Sandbox) error{
		"Close":            func(_ context.Context, sb, _ *llmsandbox.Sandbox) error { return sb.Close() },
		"Destroy":          func(ctx context.Context, sb, _ *llmsandbox.Sandbox) error { return sb.Destroy(ctx) },
		"attached Destroy": func(ctx context.Context, _, other *llmsandbox.Sandbox) error { return other.Destroy(ctx) },
	} {
		t.Run(how, func(t *testing.T) {
			sb := s.open(t, llmsandbox.Options{})
			other := s.attach(t, sb)
			if _, err := sb.Kernel(testContext(t), "python", nil); err != nil {
				t.Fatal(err)
			}
			s.pauseNow(t, sb)
			start := time.Now()
			if err := end(testContext(t), sb, other); err != nil {
				t.Fatal(err)
			}
			wantDone(t, sb)
			if d := time.Since(start); d > hang {
				t.Errorf("it took %v, want at most %v", d, hang)
			}
			s.wantGone(t, sb.ID())
		})
	}
}
