//go:build linux

package engine

import (
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
	t.Cleanup(func() { testfaults.WantNoGoroutines(t, before, testengine.IgnoreDaemons()) })
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

// openFaults opens a sandbox of faultsImage. Each test closes it and checks the error, unless
// it fails before.
func openFaults(t testing.TB, b *engine.Backend) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// running starts a program that waits for the end of its input, which the test holds, and
// returns when the program runs. timeout 0 is the sandbox's own.
func running(t testing.TB, sb *llmsandbox.Sandbox, timeout time.Duration) (end func(), ended <-chan testfaults.Outcome) {
	t.Helper()
	in, hold := io.Pipe()
	t.Cleanup(func() { _ = hold.Close() })
	ended = testfaults.Start(t, func(stdout io.Writer) (*llmsandbox.Result, error) {
		defer in.Close()
		return sb.Shell(testfaults.Context(t), "echo up; read line; echo $line", &llmsandbox.ExecOptions{Stdin: in, Stdout: stdout, Timeout: timeout})
	})
	return func() { _, _ = io.WriteString(hold, "end\n") }, ended
}

// wantNothing waits until an engine has no container with our labels, and no volume but
// those that are kept. The engine removes a container that has ended on its own time.
func wantNothing(t testing.TB, b *engine.Backend, c *client.Client) {
	t.Helper()
	testfaults.WantNothing(t, b, 30*time.Second, (&outside{client: c}).Left)
}
