//go:build linux

package engine

import (
	"io"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// onCutEngines runs a test on each engine, reached by a way that can be cut.
func onCutEngines(t *testing.T, f func(*testing.T, *proxy, *engine.Backend, *client.Client)) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		p := newProxy(t, c.DaemonHost(), nil)
		cut, err := backendAt(b.Name()+" "+p.Host, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f(t, p, cut, c)
	})
}

// An engine that cannot be reached for a while loses what runs, and not the sandbox.
func TestFaultsEngineAway(t *testing.T) {
	onCutEngines(t, func(t *testing.T, p *proxy, b *engine.Backend, c *client.Client) {
		sb := openFaults(t, b)
		_, ended := running(t, sb, 0)
		p.cut(true)
		(<-ended).WantLost(t)
		if res, err := sb.Shell(testfaults.Context(t), "true", nil); err == nil || res.ExitCode != -1 {
			t.Errorf("a run without an engine: %+v, want an error, ExitCode = -1", res)
		}
		p.cut(false)
		testfaults.Works(t, sb)
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		wantNothing(t, b, c)
	})
}

// A sandbox whose owner cannot reach its engine any more ends by itself, without
// help, and closing it does not claim to have removed it.
func TestFaultsEngineAwayForGood(t *testing.T) {
	onCutEngines(t, func(t *testing.T, p *proxy, b *engine.Backend, c *client.Client) {
		sb := openFaults(t, b)
		testfaults.Works(t, sb)
		removed := c.ContainerWait(testfaults.Context(t), "llmsandbox-"+sb.ID(), client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		p.cut(true)
		if err := sb.Close(); err == nil {
			t.Error("closing it is said to have worked: got no error, want an error")
		}
		select {
		case <-removed.Result:
		case err := <-removed.Error:
			t.Error(err)
		}
		p.cut(false)
		wantNothing(t, b, c)
	})
}

// A connection that breaks while the engine lives loses nothing, not even of a run.
func TestFaultsConnectionCut(t *testing.T) {
	onCutEngines(t, func(t *testing.T, p *proxy, b *engine.Backend, c *client.Client) {
		sb := openFaults(t, b)
		direct, err := backendAt(b.Name()+" "+c.DaemonHost(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: direct})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		ended := testfaults.Start(t, func(stdout io.Writer) (*llmsandbox.Result, error) {
			return sb.Shell(testfaults.Context(t), "busybox mkfifo /tmp/go; echo up; read line </tmp/go; echo end; exit 3", &llmsandbox.ExecOptions{Stdout: stdout})
		})
		p.cut(false)
		if res, err := other.Shell(testfaults.Context(t), "echo >/tmp/go", nil); err != nil || !res.OK() {
			t.Fatal(err)
		}
		(<-ended).WantResult(t)
		testfaults.Close(t, sb)
		wantNothing(t, b, c)
	})
}

// A handle that attached as the engine's own user, root, reaches the sandbox while the engine is away, since it
// connects to the agent itself. Another user's engine has to be asked.
func TestFaultsEngineAwayFromAttached(t *testing.T) {
	onCutEngines(t, func(t *testing.T, p *proxy, b *engine.Backend, c *client.Client) {
		plain, err := backendAt(b.Name()+" "+c.DaemonHost(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sb := openFaults(t, plain)
		testfaults.Works(t, sb) // its agent listens by now
		other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		p.cut(true)
		users, _ := sb.Capabilities().Get("user-namespace")
		res, err := other.Shell(testfaults.Context(t), "echo here", nil)
		switch {
		case users.Enforced:
			if err == nil {
				t.Errorf("a run without an engine: %+v, want an error", res)
			}
		case err != nil:
			t.Errorf("a run beside the engine: %v", err)
		case res.Stdout != "here\n":
			t.Errorf("stdout is %q, want %q", res.Stdout, "here\n")
		}
		testfaults.Works(t, sb) // its own way is another one
		testfaults.Close(t, sb)
		wantNothing(t, plain, c)
	})
}
