//go:build linux

package kubernetes

import (
	"errors"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// An API server that starts anew breaks every stream and every watch. The run goes on, and
// what ends later is noticed.
func TestFaultsAPIServerRestarted(t *testing.T) {
	leakFree(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	busy, idle := p.open(t, b), p.open(t, b)
	testfaults.Works(t, idle)
	end, ended := running(t, busy)
	p.node.RestartAPIServer(t)
	end(busy)
	(<-ended).WantResult(t)
	testfaults.Works(t, busy)
	testfaults.Works(t, idle)
	if err := newOutside(p).Kill(testfaults.Context(t), idle.ID()); err != nil {
		t.Fatal(err)
	}
	testfaults.AwaitDone(t, idle)
	testfaults.Close(t, busy, idle)
	p.wantNothing(t, b)
}

// An API server that stays away loses what runs, and closing does not claim to have removed
// a sandbox. Its agent ends by itself, and the cluster removes the pod once it is back.
func TestFaultsAPIServerGone(t *testing.T) {
	leakFree(t)
	p := newPlace(t)
	p.TTL = 10 * time.Second // the longer it is away, the more rarely the controllers try
	b := p.newBackend(t, nil)
	sb := p.open(t, b)
	_, ended := running(t, sb)
	p.node.StopAPIServer(t)
	start := time.Now()
	o := <-ended
	o.WantLost(t, "refused", "reach")
	t.Logf("lost after %v", time.Since(start))
	if err := sb.Close(); err == nil {
		t.Error("closing it is said to have worked: got no error, want an error")
	} else {
		testfaults.WantText(t, err, "reach", "refused")
	}
	if _, err := llmsandbox.Open(testfaults.Context(t), new(p.sandbox(t, b))); err == nil {
		t.Error("a sandbox opens without an API server: got no error, want an error")
	} else {
		testfaults.WantText(t, err, "reach", "refused")
	}
	p.node.StartAPIServer(t)
	back := time.Now()
	if err := p.awaitGone(testfaults.Context(t), podName(sb.ID())); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(back); d > backOff {
		t.Errorf("the pod was removed %v after the API server was back, want at most %v", d, backOff)
	} else {
		t.Logf("the API server was away for %v, and the pod gone %v later", back.Sub(start), d)
	}
	p.wantNothing(t, b)
}

// A kubelet that starts anew breaks the streams that go through it, and its pods go on.
func TestFaultsKubeletRestarted(t *testing.T) {
	leakFree(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	sb := p.open(t, b)
	end, ended := running(t, sb)
	p.node.StopKubelet(t)
	p.node.StartKubelet(t)
	end(sb)
	(<-ended).WantResult(t)
	testfaults.Works(t, sb)
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}

// A node that does not answer is reported, and the end of a program there is not known.
// Once it is back, nothing of the sandbox is left.
func TestFaultsNodeNotReady(t *testing.T) {
	leakFree(t)
	p := newPlace(t)
	p.TTL = 30 * time.Second // half of it is the time to find a way back
	b := p.newBackend(t, nil)
	sb := p.open(t, b)
	_, ended := running(t, sb)
	p.node.StopKubelet(t)
	back := false
	t.Cleanup(func() {
		if !back {
			p.node.StartKubelet(t)
		}
	})
	start := time.Now()
	(<-ended).WantLost(t, "node", "kubelet")
	t.Logf("lost after %v", time.Since(start))
	if _, err := sb.Shell(testfaults.Context(t), "true", nil); err == nil {
		t.Error("a run on a node that is away succeeds: got no error, want an error")
	} else if !errors.Is(err, llmsandbox.ErrClosed) {
		testfaults.WantText(t, err, "node", "kubelet", "dialing backend")
	}
	p.node.StartKubelet(t)
	back = true
	testfaults.Close(t, sb)
	p.wantNothing(t, b)
}
