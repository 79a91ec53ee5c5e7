// Package testfaults has what tests share that break something under a sandbox, on whatever
// backend: what a run came to, and owners in processes of their own that can be killed.
package testfaults

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// Context bounds what hangs. It outlives the test's own, for what is done at its end.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// An Outcome is what a run came to.
type Outcome struct {
	Res *llmsandbox.Result
	Err error
}

// WantLost checks that nobody claims to know what became of a program, and that the error
// says why, with one of some texts where there are any.
func (o Outcome) WantLost(t testing.TB, why ...string) {
	t.Helper()
	if !errors.Is(o.Err, llmsandbox.ErrLost) || o.Res.Status != llmsandbox.StatusLost || o.Res.ExitCode != nil {
		t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost and none", o.Err, o.Res.Status, o.Res.ExitCode)
		return
	}
	WantText(t, o.Err, why...)
	if o.Res.Reason != o.Err.Error() {
		t.Errorf("the result says %q, and the error %q, want %q", o.Res.Reason, o.Err, o.Err.Error())
	}
}

// WantText checks that an error has one of some texts, where there are any.
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

// FirstWrite returns a writer that closes up with the first write to it.
func FirstWrite() (w io.Writer, up <-chan struct{}) {
	c := make(chan struct{})
	return &firstWrite{up: c}, c
}

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
