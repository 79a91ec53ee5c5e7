package podwatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// sandboxContainer is the container whose end is the pod's.
const sandboxContainer = "sandbox"

func TestFollowBeforeCreate(t *testing.T) {
	c := newCluster(t)
	p := follow(t, New(c, namespace, "app=sandbox", sandboxContainer), "a")
	<-c.watching
	c.create(pod(t, "no-secret-volume", "a", "1", 1))
	if _, err := p.Wait(soon(t), func(p *corev1.Pod) (bool, error) { return p.Status.Phase == corev1.PodPending, nil }); err != nil {
		t.Fatal(err)
	}
	c.update(pod(t, "running", "a", "1", 2))
	wait(t, p)
	if p.Ended() != "" || p.OOMKilled() || p.UnreachableReason() != "" {
		t.Errorf("%q, %t, %q, want Ended empty, p.OOMKilled() = false, Trouble empty", p.Ended(), p.OOMKilled(), p.UnreachableReason())
	}
	c.update(pod(t, "oom", "a", "1", 3))
	over(t, p)
	if p.Ended() != "the container was killed for memory (OOMKilled)" || !p.OOMKilled() {
		t.Errorf("%q, %t, want Ended = \"the container was killed for memory (OOMKilled)\", p.OOMKilled() = true", p.Ended(), p.OOMKilled())
	}
}

// TestWatchIsShared also shows that it ends with the last pod, and begins again.
func TestWatchIsShared(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"a", "b"} {
		c.create(pod(t, "running", name, "1", 1))
	}
	w := New(c, namespace, "app=sandbox", sandboxContainer)
	for round := 1; round <= 2; round++ {
		a, b := follow(t, w, "a"), follow(t, w, "b")
		wait(t, a)
		wait(t, b)
		wait(t, follow(t, w, "b")) // one that is known already
		if c.asked("list", "pods") != round || c.asked("watch", "pods") > round || c.asked("list", "events") > 0 {
			t.Errorf("%v, want c.asked(\"list\", \"pods\") = %v, c.asked(\"watch\", \"pods\") <= %v, c.asked(\"list\", \"events\") <= 0", c.Actions(), round, round)
		}
		a.Stop()
		if w.pods == nil {
			t.Errorf("the watch has ended with the first of them: pods = %v, want not nil", w.pods)
		}
		b.Stop()
		b.Stop()
		for p := range w.followers["b"] {
			p.Stop()
		}
		if w.pods != nil || len(w.followers)+len(w.known) > 0 {
			t.Errorf("pods watched: %v, %d followers, %d pods known, want none", w.pods != nil, len(w.followers), len(w.known))
		}
	}
}

func TestDeleted(t *testing.T) {
	c := newCluster(t)
	c.create(pod(t, "running", "a", "1", 1))
	p := follow(t, New(c, namespace, "app=sandbox", sandboxContainer), "a")
	wait(t, p)
	<-c.watching
	c.remove("a")
	over(t, p)
	if p.Ended() != "the pod was deleted" {
		t.Errorf("%q, want \"the pod was deleted\"", p.Ended())
	}
	var failed *StartError
	if _, err := p.Wait(soon(t), func(*corev1.Pod) (bool, error) { return false, nil }); !errors.As(err, &failed) || failed.Reason != "Ended" {
		t.Errorf("%v, want an error of type %T, Reason = \"Ended\"", err, failed)
	}
}

// TestSameName has pods that were deleted and made again under one name.
func TestSameName(t *testing.T) {
	first, second := pod(t, "running", "a", "1", 5), pod(t, "running", "a", "2", 9)
	late := pod(t, "exits", "a", "1", 7)
	old := pod(t, "running", "a", "1", 6)
	old.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for _, c := range []struct {
		name string
		do   func(*Pod)
		want string
		uid  string
	}{
		{"another one comes", func(p *Pod) { p.see(first); p.see(second) }, "another one has its name", "1"},
		{"an old one goes", func(p *Pod) { p.see(old); p.removed(late); p.see(second) }, "", "2"},
		{"a report about an old one", func(p *Pod) { p.is(second); p.see(late); p.removed(late) }, "", "2"},
		{"an older state", func(p *Pod) { p.is(second); p.see(pod(t, "exits", "a", "2", 8)) }, "", "2"},
		{"a list that is older", func(p *Pod) { p.is(second); p.missing("8") }, "", "2"},
		{"a list that is newer", func(p *Pod) { p.is(second); p.missing("9") }, "the pod was deleted", "2"},
		{"a list before it is made", func(p *Pod) { p.missing("8"); p.see(second) }, "", "2"},
		{"seen first, set then", func(p *Pod) { p.see(first); p.is(second) }, "", "2"},
		{"seen to its end first, set then", func(p *Pod) { p.see(first); p.removed(late); p.is(second) }, "", "2"},
		{"seen in place of another one, set then", func(p *Pod) { p.see(first); p.see(second); p.is(second) }, "", "2"},
		{"an event about another one", func(p *Pod) { p.is(second); p.warn("1", &StartError{}) }, "", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Pod{watcher: New(nil, namespace, "", sandboxContainer), changed: make(chan struct{}), done: make(chan struct{})}
			c.do(p)
			if !strings.Contains(p.end, c.want) || (p.end == "") != (c.want == "") || string(p.uid) != c.uid || p.warning != nil {
				t.Errorf("ended %q, pod %s, %v; want %q", p.end, p.uid, p.warning, c.want)
			}
		})
	}
}

func TestSingle(t *testing.T) {
	c := newCluster(t)
	first := pod(t, "running", "theirs", "1", 1)
	first.Status.ContainerStatuses[0].Name = "main"
	c.create(first)
	p, err := Single(c, namespace, "theirs", "main")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if _, err := p.Wait(soon(t), func(*corev1.Pod) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	again := first.DeepCopy()
	again.ResourceVersion, again.Status.ContainerStatuses[0].RestartCount = "2", 1
	<-c.watching
	c.update(again)
	over(t, p)
	if p.Ended() != "the container was started anew" {
		t.Errorf("%q, want \"the container was started anew\"", p.Ended())
	}
}

// TestWatchBreaks has API servers that end watches, have forgotten the version, and are
// away for a while: what happened meanwhile is noticed.
func TestWatchBreaks(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old resource version").ErrStatus
	for _, c := range []struct {
		name  string
		event *watch.Event
		fails int // how many requests after that
	}{
		{"watch ends", nil, 0},
		{"version is too old", &watch.Event{Type: watch.Error, Object: &gone}, 0},
		{"server is away", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, watches, fails := newCluster(t), make(chan *watch.FakeWatcher, 10), c.fails
			broken := false
			away := func(clienttesting.Action) (bool, runtime.Object, error) {
				if broken && fails > 0 {
					fails--
					return true, nil, apierrors.NewServiceUnavailable("away")
				}
				return false, nil, nil
			}
			k.PrependReactor("list", "pods", away)
			k.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
				if handled, _, err := away(a); handled {
					return true, nil, err
				}
				f := watch.NewFakeWithChanSize(10, false)
				watches <- f
				return true, f, nil
			})
			k.create(pod(t, "running", "a", "1", 1))
			p := follow(t, New(k, namespace, "", sandboxContainer), "a")
			wait(t, p)
			f := <-watches
			k.remove("a") // which no watch reports
			broken = true
			if c.event != nil {
				f.Action(c.event.Type, c.event.Object)
			}
			f.Stop()
			if c.event == nil {
				// The reflector watches on where it was: the next server has it.
				n := <-watches
				n.Delete(pod(t, "running", "a", "1", 2))
			}
			over(t, p)
			if p.Ended() != "the pod was deleted" {
				t.Errorf("%q, want \"the pod was deleted\"", p.Ended())
			}
		})
	}
}

func TestWaitFails(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		c := newCluster(t)
		no := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no list for you"))
		c.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, no })
		p := follow(t, New(c, namespace, "", sandboxContainer), "a")
		if _, err := p.Wait(soon(t), runs); !apierrors.IsForbidden(err) {
			t.Errorf("%v, want a Forbidden error", err)
		}
		if !strings.Contains(p.UnreachableReason(), "no list for you") {
			t.Errorf("%q, want it to contain \"no list for you\"", p.UnreachableReason())
		}
	})
	t.Run("context", func(t *testing.T) {
		c := newCluster(t)
		c.create(pod(t, "no-secret-volume", "a", "1", 1))
		p := follow(t, New(c, namespace, "", sandboxContainer), "a")
		if _, err := p.Wait(soon(t), func(*corev1.Pod) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Wait(ctx, runs); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "ContainerCreating") {
			t.Errorf("%v, want context.DeadlineExceeded, an error containing \"ContainerCreating\"", err)
		}
	})
	t.Run("event", func(t *testing.T) {
		c, r := newCluster(t), load(t, "no-handler")
		c.create(r.Pod)
		if _, err := c.CoreV1().Events(namespace).Create(t.Context(), r.Event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w := New(c, namespace, "", sandboxContainer)
		p := follow(t, w, "no-handler")
		var failed *StartError
		if _, err := p.Wait(soon(t), runs); !errors.As(err, &failed) || failed.Reason != "FailedCreatePodSandBox" {
			t.Errorf("%v, want an error of type %T, Reason = \"FailedCreatePodSandBox\"", err, failed)
		}
		if w.events.reflection != nil {
			t.Errorf("events are watched on: events = %v, want nil", w.events.reflection)
		}
	})
}

func TestWaitForNode(t *testing.T) {
	var failed *StartError
	c := newCluster(t)
	c.create(pod(t, "no-node", "a", "1", 1))
	w := New(c, namespace, "", sandboxContainer)
	p := follow(t, w, "a")
	if _, err := p.Wait(soon(t), runs); !errors.As(err, &failed) || failed.Reason != "Unschedulable" {
		t.Errorf("%v, want an error of type %T, Reason = \"Unschedulable\"", err, failed)
	}
	p.Stop()
	w.WaitForNode = 30 * time.Millisecond
	p = follow(t, w, "a")
	begun := time.Now()
	if _, err := p.Wait(soon(t), runs); !errors.As(err, &failed) || time.Since(begun) < w.WaitForNode {
		t.Errorf("%v after %s, want an error of type %T, time.Since(begun) >= %v", err, time.Since(begun), failed, w.WaitForNode)
	}
	p.Stop()
	w.WaitForNode = time.Hour
	for len(c.watching) > 0 {
		<-c.watching
	}
	p = follow(t, w, "a")
	found, waits := pod(t, "running", "a", "1", 2), make(chan struct{})
	go func() {
		<-c.watching
		<-waits
		_, _ = c.CoreV1().Pods(namespace).Update(t.Context(), found, metav1.UpdateOptions{})
	}()
	once := sync.OnceFunc(func() { close(waits) })
	if _, err := p.Wait(soon(t), func(p *corev1.Pod) (bool, error) { once(); return runs(p) }); err != nil {
		t.Error(err)
	}
}
