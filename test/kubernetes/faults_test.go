//go:build linux

package kubernetes

import (
	"fmt"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// sandbox are the options of a sandbox that has a shell.
func (p place) sandbox(t testing.TB, b backend.Backend) llmsandbox.Options {
	t.Helper()
	return llmsandbox.Options{Backend: b, Language: "bash", Image: p.node.Images(t)("bash"), BestEffort: true}
}

// open opens a sandbox. Each test closes it, and looks how that goes, unless it fails
// before.
func (p place) open(t testing.TB, b backend.Backend) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := llmsandbox.Open(testfaults.Context(t), new(p.sandbox(t, b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// running starts a program that waits for the word that end gives it, over the sandbox's own
// way or another handle's, and returns once it has said that it is up. It has no input: a
// run whose input was on its way when a stream broke is lost for that alone.
func running(t testing.TB, sb *llmsandbox.Sandbox) (end func(by *llmsandbox.Sandbox), ended <-chan testfaults.Outcome) {
	t.Helper()
	w, up := testfaults.FirstWrite()
	said := make(chan testfaults.Outcome, 1)
	go func() {
		res, err := sb.Shell(testfaults.Context(t), "rm -f /tmp/go; mkfifo /tmp/go; echo up; read line </tmp/go; echo $line; exit 3",
			&llmsandbox.ExecOptions{Stdout: w, Timeout: 2 * time.Minute})
		said <- testfaults.Outcome{Res: res, Err: err}
	}()
	select {
	case <-up:
	case o := <-said:
		t.Fatalf("the program ended before it printed its first line: %v, %+v, want it running", o.Err, o.Res)
	}
	return func(by *llmsandbox.Sandbox) {
		t.Helper()
		if res, err := by.Shell(testfaults.Context(t), "echo end >/tmp/go", nil); err != nil || !res.OK() {
			t.Errorf("the word for the program to end: %v, %+v, want no error, OK", err, res)
		}
	}, said
}

// wantResult checks that what running started came to its own end, with all its output.
func wantResult(t testing.TB, o testfaults.Outcome) {
	t.Helper()
	if o.Err != nil || o.Res.ExitCode == nil || *o.Res.ExitCode != 3 || o.Res.Stdout != "up\nend\n" {
		t.Errorf("the run: %v, %+v, want no error, ExitCode = 3, Stdout = \"up\\nend\\n\"", o.Err, o.Res)
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

// backOff is how long the cluster and the node take at most to be done with an abandoned pod
// once the API server is back: the controllers and the kubelet ask it again after a minute at
// most, and those that are too early for their rights to be known once more.
const backOff = 2*time.Minute + 10*time.Second

// wantNothing waits until the cluster and the node have nothing of sandboxes any more, and
// checks that nobody claims otherwise.
func (p place) wantNothing(t testing.TB, b backend.Backend) {
	t.Helper()
	check := func() error {
		left, err := p.left(testfaults.Context(t))
		if err != nil || len(left) > 0 {
			return fmt.Errorf("left: %q, %w", left, err)
		}
		return nil
	}
	// The node removes what a pod had on its own time, and tells nobody: the pod's directory only
	// when it has heard that the pod is gone.
	deadline := time.Now().Add(backOff)
	err := check()
	for ; err != nil && time.Now().Before(deadline); err = check() {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
	found, err := b.GC(testfaults.Context(t))
	if err != nil || len(found) > 0 {
		t.Errorf("a collection finds %+v, %v, want no error, no found", found, err)
	}
	list, err := b.List(testfaults.Context(t))
	if err != nil || len(list) > 0 {
		t.Errorf("the list has %+v, %v, want no error, no list", list, err)
	}
}
