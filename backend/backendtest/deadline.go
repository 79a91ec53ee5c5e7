package backendtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// setDeadline moves a sandbox's deadline, as a handle and the list then say.
func (s *suite) setDeadline(t *testing.T, sb *llmsandbox.Sandbox, at time.Time) {
	t.Helper()
	if err := sb.SetDeadline(testContext(t), at); err != nil {
		t.Fatalf("set the deadline to %v: %v", at, err)
	}
	if got, set := sb.Deadline(); set == at.IsZero() || got.UnixMilli() != at.UnixMilli() {
		t.Errorf("the handle's deadline is %v, %v; want %v", got, set, at)
	}
}

// wantListed looks for a deadline in the list, which knows no handle.
func (s *suite) wantListed(t *testing.T, id string, at time.Time) {
	t.Helper()
	list, err := llmsandbox.List(testContext(t), s.Backend)
	i := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == id })
	if err != nil || i < 0 {
		t.Fatalf("sandbox %s is not in the list %+v (%v), want no error, it there", id, list, err)
	}
	if got := list[i].Deadline; got.UnixMilli() != at.UnixMilli() {
		t.Errorf("listed with the deadline %v, want %v", got, at)
	}
}

// soon is a deadline that is not over before it has been moved twice.
func (s *suite) soon(t *testing.T, sb *llmsandbox.Sandbox) time.Time {
	t.Helper()
	start := time.Now()
	s.setDeadline(t, sb, start.Add(time.Hour))
	return time.Now().Add(5*time.Second + 4*time.Since(start))
}

// wantOutlives waits until a time that is over changes nothing, for collectors neither.
func (s *suite) wantOutlives(t *testing.T, sb *llmsandbox.Sandbox, at time.Time) {
	t.Helper()
	time.Sleep(time.Until(at) + time.Second)
	if _, err := llmsandbox.GC(testContext(t), s.Backend); err != nil {
		t.Errorf("collect: %v", err)
	}
	answers(t, sb)
}

// wantEnd waits for a sandbox's own end, which says why where the backend knows that.
func wantEnd(t *testing.T, sb *llmsandbox.Sandbox, notBefore time.Time, says string) {
	t.Helper()
	select {
	case <-sb.Done():
	case <-time.After(time.Until(notBefore) + hang):
		t.Fatalf("the sandbox has not ended %v after its time, want it ended", hang)
	}
	// The agent counts milliseconds.
	if early := time.Until(notBefore.Truncate(time.Millisecond)); early > 0 {
		t.Errorf("it has ended %v too early, want at most 0", early)
	}
	_, err := sb.Run(testContext(t), "print(1)", nil)
	if !errors.Is(err, llmsandbox.ErrClosed) || !strings.Contains(err.Error(), says) {
		t.Errorf("run after the end: %v, want ErrClosed and %q", err, says)
	}
}

func (s *suite) deadlineMovedLater(t *testing.T) {
	sb := s.openNow(t, llmsandbox.Options{Lifetime: time.Hour})
	first := s.soon(t, sb)
	s.setDeadline(t, sb, first)
	later := first.Add(time.Hour)
	s.setDeadline(t, sb, later)
	s.wantListed(t, sb.ID(), later)
	s.wantOutlives(t, sb, first)
	s.wantListed(t, sb.ID(), later)
}

func (s *suite) deadlineMovedEarlier(t *testing.T) {
	sb := s.openNow(t, llmsandbox.Options{Lifetime: time.Hour})
	at := s.soon(t, sb)
	s.setDeadline(t, sb, at)
	wantEnd(t, sb, at, "")
	s.wantGone(t, sb.ID())
}

func (s *suite) deadlineCleared(t *testing.T) {
	sb := s.openNow(t, llmsandbox.Options{Lifetime: time.Hour})
	first := s.soon(t, sb)
	s.setDeadline(t, sb, first)
	s.setDeadline(t, sb, time.Time{})
	s.wantListed(t, sb.ID(), time.Time{})
	s.wantOutlives(t, sb, first)
}

// deadlineOfAttached: every handle may move it, also one of a sandbox that had none.
func (s *suite) deadlineOfAttached(t *testing.T) {
	sb := s.openNow(t, llmsandbox.Options{})
	if at, set := sb.Deadline(); set {
		t.Errorf("opened without a lifetime, and ends at %v, want no deadline", at)
	}
	other := s.attach(t, sb)
	later := time.Now().Add(time.Hour)
	s.setDeadline(t, other, later)
	s.wantListed(t, sb.ID(), later)
	third := s.attach(t, sb)
	if got, _ := third.Deadline(); got.UnixMilli() != later.UnixMilli() {
		t.Errorf("a handle that attaches afterwards has the deadline %v, want %v", got, later)
	}
	at := s.soon(t, other)
	s.setDeadline(t, other, at)
	wantEnd(t, sb, at, "")
	wantDone(t, other)
	s.wantGone(t, sb.ID())
}

// deadlineMovedAtOnce: what the list says is what the agent does, whichever call came last.
func (s *suite) deadlineMovedAtOnce(t *testing.T) {
	ctx := testContext(t)
	sb := s.openNow(t, llmsandbox.Options{})
	moves := make(chan error)
	const handles = 4
	for i := range handles {
		go func() {
			moves <- func() error {
				other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
				if err != nil {
					return err
				}
				return errors.Join(other.SetDeadline(ctx, time.Now().Add(time.Hour*time.Duration(i+1))), other.Close())
			}()
		}()
	}
	for range handles {
		if err := <-moves; err != nil {
			t.Error(err)
		}
	}
	d := s.agentOf(t, sb, (*agentclient.Client).Deadline)
	if d.At.IsZero() || d.Paused {
		t.Fatalf("the agent's deadline is %+v, want one of those that were set", d)
	}
	s.wantListed(t, sb.ID(), d.At)
}

// agentOf asks a sandbox's agent about its timers, over a stream of its own.
func (s *suite) agentOf(t *testing.T, sb *llmsandbox.Sandbox, ask func(*agentclient.Client, context.Context) (agentclient.Deadline, error)) agentclient.Deadline {
	t.Helper()
	ctx := testContext(t)
	d, err := func() (d agentclient.Deadline, err error) {
		m, err := s.Backend.Attach(ctx, sb.ID())
		if err != nil {
			return d, err
		}
		defer func() { err = errors.Join(err, m.Close(nil)) }()
		rwc, err := m.Dial(ctx)
		if err != nil {
			return d, err
		}
		agent, err := agentclient.Connect(ctx, rwc)
		if err != nil {
			return d, err
		}
		d, err = ask(agent, ctx)
		return d, errors.Join(err, agent.Close())
	}()
	if err != nil {
		t.Fatalf("ask the agent: %v", err)
	}
	return d
}

// timersPaused: a deadline that is over while timers are paused ends nothing, and what was
// left of it then is left of it afterwards.
func (s *suite) timersPaused(t *testing.T) {
	sb := s.openNow(t, llmsandbox.Options{})
	first := s.soon(t, sb)
	s.setDeadline(t, sb, first)
	before := s.agentOf(t, sb, (*agentclient.Client).PauseTimers)
	if !before.Paused || before.At.UnixMilli() != first.UnixMilli() {
		t.Fatalf("paused: %+v, want the deadline %v", before, first)
	}
	time.Sleep(time.Until(first) + time.Second)
	answers(t, sb)
	after := s.agentOf(t, sb, (*agentclient.Client).ResumeTimers)
	if after.Paused || !after.At.After(first) {
		t.Fatalf("resumed: %+v, want a later deadline than %v", after, first)
	}
	wantEnd(t, sb, after.At, "")
}

// idleEnds: a sandbox that nothing uses ends, though its handles are open and it has a
// kernel, and says why.
func (s *suite) idleEnds(t *testing.T) {
	sb, idle := s.openShort(t, func(o *llmsandbox.Options, d time.Duration) { o.IdleTimeout = d }, begun)
	kernel, err := sb.Kernel(testContext(t), "python", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	used := time.Now()
	if cell, err := kernel.Run(testContext(t), "print(1)", nil); err != nil || !cell.OK() {
		t.Fatalf("%+v, %v, want no error, OK", cell, err)
	}
	wantEnd(t, sb, used.Add(idle), "idle for "+idle.String())
	s.wantGone(t, sb.ID())
}

// idleWaits: what uses a sandbox keeps it, however long it takes.
func (s *suite) idleWaits(t *testing.T) {
	ctx := testContext(t)
	sb, idle := s.openShort(t, func(o *llmsandbox.Options, d time.Duration) { o.IdleTimeout = d }, begun)
	long := fmt.Sprintf("import time; time.sleep(%g); print('slept')", (idle + 2*time.Second).Seconds())
	wantStdout(t, run(t, sb, long, nil), "slept\n")
	kernel, err := sb.Kernel(ctx, "python", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	if cell, err := kernel.Run(ctx, long, nil); err != nil || cell.Stdout != "slept\n" {
		t.Fatalf("a cell: %+v, %v, want no error, Stdout = \"slept\\n\"", cell, err)
	}
	if err := sb.Prepare(ctx); err != nil && !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Fatal(err)
	}
	used := time.Now()
	wantStdout(t, run(t, sb, long, nil), "slept\n")
	wantEnd(t, sb, used.Add(idle).Add(idle), "idle for "+idle.String())
}
