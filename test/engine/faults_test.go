//go:build linux

package engine

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// faultsImage is all that the sandboxes of these tests need: a shell.
const faultsImage = "llmsandbox-test/busybox:faults"

// leakFree fails the test for goroutines that it leaves.
func leakFree(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before, testengine.IgnoreDaemons(),
			// Connections that a client keeps for its next request.
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	})
}

// privateDocker is a daemon that a test may break, with faultsImage.
func privateDocker(t testing.TB, args ...string) *testengine.Private {
	t.Helper()
	p := testengine.PrivateDocker(t, args...)
	p.Load(t, testimage.Save(t, faultsImage, testimage.Busybox(t, nil)))
	return p
}

// privateBackend is a backend on it, with a client to look at it from outside.
func privateBackend(t testing.TB, p *testengine.Private, o engine.Options) (*engine.Backend, *client.Client) {
	t.Helper()
	e := &testengine.Engine{Host: p.Host}
	return newBackend(t, e, o), newClient(t, e)
}

// openFaults opens a sandbox of faultsImage. Each test closes it, and looks how that goes,
// unless it fails before.
func openFaults(t testing.TB, b *engine.Backend) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// running starts a program that waits for its input's end, which the test holds, and
// returns once it has said that it is up. timeout 0 is the sandbox's own.
func running(t testing.TB, sb *llmsandbox.Sandbox, timeout time.Duration) (end func(), ended <-chan testfaults.Outcome) {
	t.Helper()
	in, hold := io.Pipe()
	w, up := testfaults.FirstWrite()
	said := make(chan testfaults.Outcome, 1)
	go func() {
		res, err := sb.Shell(testfaults.Context(t), "echo up; read line; echo $line", &llmsandbox.ExecOptions{
			Stdin: in, Stdout: w, Timeout: timeout,
		})
		_ = in.Close()
		said <- testfaults.Outcome{Res: res, Err: err}
	}()
	t.Cleanup(func() { _ = hold.Close() })
	select {
	case <-up:
	case o := <-said:
		t.Fatalf("the program ended before it printed its first line: %v, %+v, want it running", o.Err, o.Res)
	}
	return func() { _, _ = io.WriteString(hold, "end\n") }, said
}

// wantNothing waits until an engine has no container with our labels, and no volume but
// those that are kept, and until a collection finds nothing.
func wantNothing(t testing.TB, b *engine.Backend, c *client.Client) {
	t.Helper()
	check := func() error {
		left, err := (&outside{client: c}).Left(testfaults.Context(t))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %q", left)
		}
		return err
	}
	// The engine removes a container that has ended on its own time.
	deadline := time.Now().Add(30 * time.Second)
	for check() != nil && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if err := check(); err != nil {
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
