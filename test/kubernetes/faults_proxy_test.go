//go:build linux

package kubernetes

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// onProxy runs a test with a backend that reaches the cluster by a way that can be broken,
// and one that reaches it directly.
func onProxy(t *testing.T, f func(t *testing.T, p place, way *testcluster.Proxy, b, direct backend.Backend)) {
	beside(t)
	p := newPlace(t)
	way := p.node.Proxy(t)
	through := p
	through.Kubeconfig, through.TTL = way.Kubeconfig, 3*time.Minute // longer than a way back is looked for
	f(t, p, way, through.newBackend(t, nil), p.newBackend(t, nil))
}

func shut(t *testing.T, way *testcluster.Proxy, on bool) {
	t.Helper()
	if err := way.Shut(on); err != nil {
		t.Fatal(err)
	}
}

// attach returns another handle on a sandbox, which is closed with the test.
func attach(t *testing.T, b backend.Backend, sb *llmsandbox.Sandbox) *llmsandbox.Sandbox {
	t.Helper()
	other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// A connection that breaks loses nothing, not even of a run.
func TestFaultsConnectionCut(t *testing.T) {
	onProxy(t, func(t *testing.T, p place, way *testcluster.Proxy, b, direct backend.Backend) {
		sb := p.open(t, b)
		other := attach(t, direct, sb)
		for range 3 {
			end, ended := running(t, sb)
			way.Cut()
			end(other)
			(<-ended).WantResult(t)
		}
		testfaults.Close(t, other)
		testfaults.Works(t, sb)
		testfaults.Close(t, sb)
		p.wantNothing(t, direct)
	})
}

// A connection on which nothing comes any more, and which stays open, is noticed, and the
// run goes on by another one.
func TestFaultsConnectionFrozen(t *testing.T) {
	onProxy(t, func(t *testing.T, p place, way *testcluster.Proxy, b, direct backend.Backend) {
		sb := p.open(t, b)
		other := attach(t, direct, sb)
		end, ended := running(t, sb)
		way.Freeze() // what is open; new ones are let through
		end(other)
		testfaults.Close(t, other)
		start := time.Now()
		(<-ended).WantResult(t)
		if d := time.Since(start); d > time.Minute {
			t.Errorf("that nothing comes any more was noticed after %v, want at most 1m", d)
		} else {
			t.Logf("noticed after %v", d)
		}
		testfaults.Works(t, sb)
		testfaults.Close(t, sb)
		p.wantNothing(t, direct)
	})
}

// A cluster that cannot be reached for a while loses what runs when the agent has given up
// waiting. The sandbox has then ended, and is removed once the cluster is reached again.
func TestFaultsClusterAway(t *testing.T) {
	onProxy(t, func(t *testing.T, p place, way *testcluster.Proxy, b, direct backend.Backend) {
		sb := p.open(t, b)
		other := attach(t, direct, sb)
		testfaults.Works(t, other) // its stream keeps the agent
		_, ended := running(t, sb)
		shut(t, way, true)
		(<-ended).WantLost(t, "refused", "reach", "reset", "EOF")
		testfaults.Works(t, other)
		shut(t, way, false)
		testfaults.Works(t, sb)
		testfaults.Close(t, other, sb)
		p.wantNothing(t, direct)
	})
}

// A sandbox whose owner cannot reach the cluster any more is removed by the cluster itself,
// without help.
func TestFaultsClusterAwayForGood(t *testing.T) {
	onProxy(t, func(t *testing.T, p place, way *testcluster.Proxy, _, direct backend.Backend) {
		through := p
		through.Kubeconfig, through.TTL = way.Kubeconfig, 10*time.Second
		b := through.newBackend(t, nil)
		sb := p.open(t, b)
		testfaults.Works(t, sb)
		gone := p.watchGone(t, sb.ID())
		shut(t, way, true)
		if err := sb.Close(); err == nil {
			t.Error("closing it is said to have worked: got no error, want an error")
		} else {
			testfaults.WantText(t, err)
		}
		<-gone
		p.wantNothing(t, direct)
	})
}
