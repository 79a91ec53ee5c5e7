//go:build linux

package kubernetes

import (
	"io"
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

// open opens a sandbox. Each test closes it and checks the error, unless it fails before.
func (p place) open(t testing.TB, b backend.Backend) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := llmsandbox.Open(testfaults.Context(t), new(p.sandbox(t, b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb
}

// running starts a program that ends when the returned function sends it a line, over the
// sandbox's own connection or another handle's. It returns when the program runs. The
// program has no input: a run whose input was on its way when a stream broke is lost for that
// alone.
func running(t testing.TB, sb *llmsandbox.Sandbox) (end func(by *llmsandbox.Sandbox), ended <-chan testfaults.Outcome) {
	t.Helper()
	ended = testfaults.Start(t, func(stdout io.Writer) (*llmsandbox.Result, error) {
		return sb.Shell(testfaults.Context(t), "rm -f /tmp/go; mkfifo /tmp/go; echo up; read line </tmp/go; echo $line; exit 3",
			&llmsandbox.ExecOptions{Stdout: stdout, Timeout: 2 * time.Minute})
	})
	return func(by *llmsandbox.Sandbox) {
		t.Helper()
		if res, err := by.Shell(testfaults.Context(t), "echo end >/tmp/go", nil); err != nil || !res.OK() {
			t.Errorf("send the program its line: %v, %+v, want no error, OK", err, res)
		}
	}, ended
}

// backOff is how long the cluster and the node take at most to be done with an abandoned pod
// once the API server is back: the controllers and the kubelet ask it again after a minute at
// most, and those that are too early for their rights to be known once more.
const backOff = 2*time.Minute + 10*time.Second

// wantNothing waits until the cluster and the node have nothing of sandboxes any more. The
// node removes a pod's directory only when it has heard that the pod is gone, and does not
// report it.
func (p place) wantNothing(t testing.TB, b backend.Backend) {
	t.Helper()
	testfaults.WantNothing(t, b, backOff, p.left)
}
