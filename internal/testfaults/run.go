// Package testfaults has helpers for tests that break something under a sandbox, on any
// backend: runs and their outcomes, what is left of sandboxes, and owners in processes of
// their own that can be killed.
package testfaults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// Context bounds what hangs. It outlives the test's own, for what is done at its end.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// An Outcome is what a run returned.
type Outcome struct {
	Res *llmsandbox.Result
	Err error
}

// WantLost checks that the end of a program is not claimed to be known, and that the error
// says why, with one of some texts if there are any.
func (o Outcome) WantLost(t testing.TB, why ...string) {
	t.Helper()
	if !errors.Is(o.Err, llmsandbox.ErrLost) || o.Res.Status != llmsandbox.StatusLost || o.Res.ExitCode != -1 {
		t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost and -1", o.Err, o.Res.Status, o.Res.ExitCode)
		return
	}
	WantText(t, o.Err, why...)
	if o.Res.Reason != o.Err.Error() {
		t.Errorf("the result says %q, and the error %q, want %q", o.Res.Reason, o.Err, o.Err.Error())
	}
}

// WantResult checks that a run ended by itself, with exit code 3 and all its output.
func (o Outcome) WantResult(t testing.TB) {
	t.Helper()
	if o.Err != nil || o.Res.ExitCode != 3 || o.Res.Stdout != "up\nend\n" {
		t.Errorf("the run: %v, %+v, want no error, ExitCode = 3, Stdout = \"up\\nend\\n\"", o.Err, o.Res)
	}
}

// WantText checks that an error contains one of some texts, if there are any.
func WantText(t testing.TB, err error, texts ...string) {
	t.Helper()
	t.Logf("error: %v", err)
	for _, text := range texts {
		if strings.Contains(err.Error(), text) {
			return
		}
	}
	if len(texts) > 0 {
		t.Errorf("error %q: want one of %q in it", err, texts)
	}
}

// Start calls run and returns when its program has written something to stdout.
func Start(t testing.TB, run func(stdout io.Writer) (*llmsandbox.Result, error)) (ended <-chan Outcome) {
	t.Helper()
	up := make(chan struct{})
	said := make(chan Outcome, 1)
	go func() {
		res, err := run(&firstWrite{up: up})
		said <- Outcome{Res: res, Err: err}
	}()
	select {
	case <-up:
	case o := <-said:
		t.Fatalf("the program ended before it printed its first line: %v, %+v, want it running", o.Err, o.Res)
	}
	return said
}

// firstWrite closes up with the first write to it.

type firstWrite struct {
	up   chan struct{}
	done bool
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if !w.done {
		w.done = true
		close(w.up)
	}
	return len(p), nil
}

// Works checks that a sandbox can be used.
func Works(t testing.TB, sb *llmsandbox.Sandbox) {
	t.Helper()
	res, err := sb.Shell(Context(t), "echo works", nil)
	if err != nil || res.Stdout != "works\n" {
		t.Errorf("the sandbox does not work: %v, %+v, want no error, Stdout = \"works\\n\"", err, res)
	}
}

// AwaitDone waits for a sandbox's end.
func AwaitDone(t testing.TB, sb *llmsandbox.Sandbox) {
	t.Helper()
	select {
	case <-sb.Done():
	case <-Context(t).Done():
		t.Fatal("the sandbox's Done is open, want it closed")
	}
}

// WantEnded checks what a caller sees of two sandboxes that another has ended: the run in
// the first is lost, for one of some reasons if there are any, and the next run of each says
// what to do.
func WantEnded(t testing.TB, busy, idle *llmsandbox.Sandbox, ended <-chan Outcome, why ...string) {
	t.Helper()
	(<-ended).WantLost(t, why...)
	for _, sb := range []*llmsandbox.Sandbox{busy, idle} {
		AwaitDone(t, sb)
		if _, err := sb.Shell(Context(t), "true", nil); !errors.Is(err, llmsandbox.ErrClosed) || !strings.Contains(err.Error(), "open a new one") {
			t.Errorf("the next run: %v, want llmsandbox.ErrClosed, an error containing \"open a new one\"", err)
		}
	}
	Close(t, busy, idle)
}

// Close checks that sandboxes can be closed.
func Close(t testing.TB, all ...*llmsandbox.Sandbox) {
	t.Helper()
	for _, sb := range all {
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// WantNothing waits, for no longer than patience, until left finds nothing of sandboxes any
// more. It checks that neither a collection nor the list does.
func WantNothing(t testing.TB, b backend.Backend, patience time.Duration, left func(context.Context) ([]string, error)) {
	t.Helper()
	check := func() error {
		names, err := left(Context(t))
		if err != nil || len(names) > 0 {
			return fmt.Errorf("left: %q, %v, want none, no error", names, err)
		}
		return nil
	}
	deadline := time.Now().Add(patience)
	err := check()
	for ; err != nil && time.Now().Before(deadline); err = check() {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
	found, err := b.GC(Context(t))
	if err != nil || len(found) > 0 {
		t.Errorf("a collection finds %+v, %v, want none, no error", found, err)
	}
	list, err := b.List(Context(t))
	if err != nil || len(list) > 0 {
		t.Errorf("the list has %+v, %v, want none, no error", list, err)
	}
}

// WantNoGoroutines fails the test for goroutines but those that some options ignore, and
// but connections that a client keeps for its next request.
func WantNoGoroutines(t testing.TB, ignore ...goleak.Option) {
	t.Helper()
	goleak.VerifyNone(t, append(ignore,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))...)
}
