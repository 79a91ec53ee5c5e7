//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// faultsContext bounds what hangs.
func faultsContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// sandbox are the options of a sandbox that has a shell.
func (p place) sandbox(t testing.TB, b backend.Backend) llmsandbox.Options {
	t.Helper()
	return llmsandbox.Options{Backend: b, Language: "bash", Image: p.node.Images(t)("bash"), BestEffort: true}
}

// open opens a sandbox. Each test closes it, and looks how that goes, unless it fails
// before.
func (p place) open(t testing.TB, b backend.Backend) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := llmsandbox.Open(faultsContext(t), p.sandbox(t, b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// An outcome is what a run came to.
type outcome struct {
	res *llmsandbox.Result
	err error
}

// running starts a program that waits for the word that end gives it, over the sandbox's own
// way or another handle's, and returns once it has said that it is up. It has no input: a
// run whose input was on its way when a stream broke is lost for that alone.
func running(t testing.TB, sb *llmsandbox.Sandbox) (end func(by *llmsandbox.Sandbox), ended <-chan outcome) {
	t.Helper()
	up, said := make(chan struct{}), make(chan outcome, 1)
	go func() {
		res, err := sb.Shell(faultsContext(t), "rm -f /tmp/go; mkfifo /tmp/go; echo up; read line </tmp/go; echo $line; exit 3",
			&llmsandbox.ExecOptions{Stdout: &firstWrite{up: up}, Timeout: 2 * time.Minute})
		said <- outcome{res, err}
	}()
	select {
	case <-up:
	case o := <-said:
		t.Fatalf("the program did not start: %v, %+v", o.err, o.res)
	}
	return func(by *llmsandbox.Sandbox) {
		t.Helper()
		if res, err := by.Shell(faultsContext(t), "echo end >/tmp/go", nil); err != nil || !res.OK() {
			t.Errorf("the word for the program to end: %v, %+v", err, res)
		}
	}, said
}

// A firstWrite closes up with the first write.
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

// wantResult checks that what running started came to its own end, with all its output.
func wantResult(t testing.TB, o outcome) {
	t.Helper()
	if o.err != nil || o.res.ExitCode == nil || *o.res.ExitCode != 3 || o.res.Stdout != "up\nend\n" {
		t.Errorf("the run: %v, %+v", o.err, o.res)
	}
}

// wantLost checks that nobody claims to know what became of a program, and that the error
// says why, with one of some texts.
func wantLost(t testing.TB, o outcome, why ...string) {
	t.Helper()
	if !errors.Is(o.err, llmsandbox.ErrLost) || o.res.Status != llmsandbox.StatusLost || o.res.ExitCode != nil {
		t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost and none", o.err, o.res.Status, o.res.ExitCode)
		return
	}
	wantText(t, o.err, why...)
	if o.res.Error != o.err.Error() {
		t.Errorf("the result says %q, and the error %q", o.res.Error, o.err)
	}
}

// wantText checks that an error has one of some texts, where there are any.
func wantText(t testing.TB, err error, texts ...string) {
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

// works checks that a sandbox can be used.
func works(t testing.TB, sb *llmsandbox.Sandbox) {
	t.Helper()
	res, err := sb.Shell(faultsContext(t), "echo works", nil)
	if err != nil || res.Stdout != "works\n" {
		t.Errorf("the sandbox does not work: %v, %+v", err, res)
	}
}

// awaitDone waits for a sandbox's end.
func awaitDone(t testing.TB, sb *llmsandbox.Sandbox) {
	t.Helper()
	select {
	case <-sb.Done():
	case <-faultsContext(t).Done():
		t.Fatal("the sandbox's end is not told")
	}
}

// closes checks that a sandbox can be closed.
func closes(t testing.TB, all ...*llmsandbox.Sandbox) {
	t.Helper()
	for _, sb := range all {
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// wantNothing waits until the cluster and the node have nothing of sandboxes any more, and
// checks that nobody claims otherwise.
func (p place) wantNothing(t testing.TB, b backend.Backend) {
	t.Helper()
	check := func() error {
		left, err := p.left(faultsContext(t))
		if err != nil || len(left) > 0 {
			return fmt.Errorf("left: %q, %w", left, err)
		}
		return nil
	}
	// The node removes what a pod had on its own time, and tells nobody.
	deadline := time.Now().Add(30 * time.Second)
	err := check()
	for ; err != nil && time.Now().Before(deadline); err = check() {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
	found, err := b.GC(faultsContext(t))
	if err != nil || len(found) > 0 {
		t.Errorf("a collection finds %+v, %v", found, err)
	}
	list, err := b.List(faultsContext(t))
	if err != nil || len(list) > 0 {
		t.Errorf("the list has %+v, %v", list, err)
	}
}
