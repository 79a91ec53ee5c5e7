//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// watchGone returns what is closed when the cluster has removed a sandbox's pod.
func (p place) watchGone(t *testing.T, id string) <-chan struct{} {
	t.Helper()
	ctx, stop := context.WithCancel(testfaults.Context(t))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := p.awaitGone(ctx, podName(id)); err != nil {
			t.Errorf("pod %s is not removed: %v", podName(id), err)
		}
	}()
	t.Cleanup(func() { stop(); <-gone })
	return gone
}

// The sandbox of an owner that was killed is removed by the cluster alone, when its time is
// over. One that works goes on until then, for who is attached to it.
func TestFaultsOwnerKilled(t *testing.T) {
	beside(t)
	p := newPlace(t)
	p.TTL = 12 * time.Second
	b := p.newBackend(t, nil)
	living := p.open(t, b)
	o := p.startOwner(t)
	gone := p.watchGone(t, o.ID(t))
	sb, err := llmsandbox.Attach(testfaults.Context(t), o.ID(t), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	testfaults.Works(t, sb)
	start := time.Now()
	o.Kill(t)
	testfaults.Works(t, sb)
	testfaults.AwaitDone(t, sb)
	<-gone
	if d := time.Since(start); d > p.TTL+20*time.Second {
		t.Errorf("removed %v after its owner was killed, of which the time to live is %v, want at most %v", d, p.TTL, p.TTL+20*time.Second)
	} else {
		t.Logf("removed after %v", d)
	}
	testfaults.Close(t, sb)
	if _, err := llmsandbox.Attach(testfaults.Context(t), o.ID(t), &llmsandbox.AttachOptions{Backend: b}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("attach to what went with its owner: %v, want llmsandbox.ErrNotFound", err)
	}
	testfaults.Works(t, living)
	testfaults.Close(t, living)
	p.wantNothing(t, b)
}

// A sandbox whose owner was killed lives on, with what runs in it, for the one that takes it over in time, and ends with that.
func TestFaultsTakeOver(t *testing.T) {
	beside(t)
	p := newPlace(t)
	p.TTL = 20 * time.Second
	o := p.startOwner(t)
	b := p.newBackend(t, nil)
	ctx := testfaults.Context(t)
	first, err := llmsandbox.Attach(ctx, o.ID(t), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	program, err := first.Start(ctx, []string{"sh", "-c", "echo before; until [ -e go ]; do sleep 0.1; done; echo after"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	program.Detach()
	testfaults.Close(t, first)
	pod, err := p.client.CoreV1().Pods(p.Namespace).Get(ctx, podName(o.ID(t)), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Kill(t) // nobody is connected now
	sb, err := llmsandbox.Attach(ctx, o.ID(t), &llmsandbox.AttachOptions{Backend: b, TakeOver: &llmsandbox.TakeOver{
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.awaitNoJob(ctx, pod.OwnerReferences[0].Name); err != nil {
		t.Fatal(err)
	}
	if n, err := sb.Network(ctx); err != nil || n.Mode != llmsandbox.NetworkAllow {
		t.Errorf("the network is %+v, %v, want the one that it was taken over with", n, err)
	}
	if err := sb.WriteFile(ctx, "go", nil); err != nil {
		t.Fatal(err)
	}
	if program, err = sb.AttachProcess(ctx, program.ID(), nil); err != nil {
		t.Fatal(err)
	}
	if res, err := program.Wait(ctx); err != nil || !res.OK() || res.Stdout != "before\nafter\n" {
		t.Errorf("the program that was started before has %+v, %v, want before, after", res, err)
	}
	testfaults.Works(t, sb)
	testfaults.Close(t, sb)
	if _, err := llmsandbox.Attach(ctx, o.ID(t), &llmsandbox.AttachOptions{Backend: b}); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("attach to what its new owner has closed: %v, want llmsandbox.ErrNotFound", err)
	}
	p.wantNothing(t, b)
}

// When every client is gone, the agent ends before the cluster removes its pod.
func TestFaultsAllClientsGone(t *testing.T) {
	beside(t)
	p := newPlace(t)
	p.TTL = 30 * time.Second
	o := p.startOwner(t)
	gone := p.watchGone(t, o.ID(t))
	outside := newOutside(p)
	if before, err := outside.Processes(testfaults.Context(t), o.ID(t)); err != nil || len(before) == 0 {
		t.Fatalf("the agent cannot be seen: %v, want no error, before not empty", err)
	}
	start := time.Now()
	o.Kill(t)
	for {
		now, err := outside.Processes(testfaults.Context(t), o.ID(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(now) == 0 {
			break
		}
		if time.Since(start) > p.TTL+20*time.Second {
			t.Fatalf("%v after the last client is gone there is %+v, want at most %v", time.Since(start), now, p.TTL+20*time.Second)
		}
		time.Sleep(100 * time.Millisecond) // a process of another ends without a word
	}
	t.Logf("the agent ended after %v", time.Since(start))
	select {
	case <-gone:
		t.Error("the cluster has removed the pod, want the agent to end first")
	default:
	}
	<-gone
	t.Logf("the pod was removed after %v", time.Since(start))
	p.wantNothing(t, p.newBackend(t, nil))
}

// An owner that is stopped for a moment is not dead: no collection takes its sandbox.
func TestFaultsOwnerFrozen(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	o := p.startOwner(t)
	o.Signal(t, syscall.SIGSTOP)
	if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) > 0 {
		t.Errorf("a collection takes %+v, %v, want no error, no found", found, err)
	}
	sb, err := llmsandbox.Attach(testfaults.Context(t), o.ID(t), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	testfaults.Works(t, sb)
	testfaults.Close(t, sb)
	o.Signal(t, syscall.SIGCONT)
	o.End(t)
	p.wantNothing(t, b)
}
