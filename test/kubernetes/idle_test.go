//go:build linux

package kubernetes

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// An agent gives a client half a minute for its first message, and ends when none
// has been connected for its grace. A sandbox that is opened, or attached to, and used later
// than that is there all the same.
func TestLeftAlone(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, func(o *kubernetes.Options) { o.TTL = 15 * time.Second }) // of which the grace is a half
	sb := p.open(t, b)
	attached, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(45 * time.Second)
	for _, handle := range []*llmsandbox.Sandbox{attached, sb} {
		res, err := handle.Shell(testfaults.Context(t), "echo here", nil)
		if err != nil || res.Stdout != "here\n" {
			t.Errorf("%v, %+v, want no error, Stdout = \"here\\n\"", err, res)
		}
		if err := handle.Close(); err != nil {
			t.Error(err)
		}
	}
	p.wantNothing(t, b)
}
