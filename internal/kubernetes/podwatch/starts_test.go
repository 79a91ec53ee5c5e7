package podwatch

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

func startedEvent(pod string, uid types.UID, path string) *corev1.Event {
	return &corev1.Event{Reason: "Started", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: pod, UID: uid, FieldPath: path}}
}

// hears is a cluster whose watches of events the test feeds.
func hears(t *testing.T) (*cluster, chan *watch.FakeWatcher) {
	c, heard := newCluster(t), make(chan *watch.FakeWatcher, 10)
	c.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) {
		f := watch.NewFakeWithChanSize(10, false)
		heard <- f
		return true, f, nil
	})
	return c, heard
}

// TestHear has a pod whose status lags behind what an event reports.
func TestHear(t *testing.T) {
	c, heard := hears(t)
	w := New(c, namespace, "app=sandbox", sandboxContainer)
	for _, name := range []string{"a", "b"} {
		c.create(pod(t, "no-secret-volume", name, types.UID("uid-"+name), 1))
	}
	a, b := follow(t, w, "a"), follow(t, w, "b")
	for _, p := range []*Pod{a, b} {
		if _, err := p.Wait(soon(t), func(*corev1.Pod) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for round := 1; round <= 2; round++ {
		first, second := a.Hear(), b.Hear()
		events := <-heard
		if n := c.asked("watch", "events"); n != round {
			t.Errorf("%d watches in round %d", n, round)
		}
		events.Add(startedEvent("a", "another one of that name", "spec.initContainers{agent}"))
		events.Add(startedEvent("a", "uid-a", ""))
		events.Add(startedEvent("a", "uid-a", "spec.containers{sandbox}"))
		events.Add(startedEvent("b", "uid-b", "spec.initContainers{agent}"))
		if _, err := b.Wait(soon(t), func(*corev1.Pod) (bool, error) { return b.Started("agent"), nil }); err != nil {
			t.Fatal(err)
		}
		if a.Started("agent") || !a.Started(sandboxContainer) || b.Started(sandboxContainer) {
			t.Error("Started is true for another container or pod, or false for the one of the event; want true for that one only")
		}
		first()
		if w.starts.reflection == nil {
			t.Errorf("nothing is heard after the first has done: starts = %v, want not nil", w.starts.reflection)
		}
		second()
		if w.starts.reflection != nil || !events.IsStopped() {
			t.Error("events are still watched, want the watch stopped")
		}
	}
	b.Is(pod(t, "no-secret-volume", "b", "again", 9))
	if b.Started("agent") {
		t.Error("what was reported of one pod counts for the next of its name: b.Started(\"agent\") = true, want false")
	}
}

// TestHearNothing has clusters that report no starts: the status does.
func TestHearNothing(t *testing.T) {
	no := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no events for you"))
	for name, forbid := range map[string]func(*cluster){
		"list": func(c *cluster) {
			c.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, no })
		},
		"watch": func(c *cluster) {
			c.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, no })
		},
		"ends": func(c *cluster) {
			c.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) {
				f := watch.NewFakeWithChanSize(1, false)
				f.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
				f.Stop()
				return true, f, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			forbid(c)
			c.create(pod(t, "running", "a", "1", 1))
			p := follow(t, New(c, namespace, "app=sandbox", sandboxContainer), "a")
			defer p.Hear()()
			<-p.watcher.starts.done
			wait(t, p)
			if p.Started(sandboxContainer) {
				t.Error("it has heard something: p.Started(sandboxContainer) = true, want false")
			}
		})
	}
}

func TestContainerOf(t *testing.T) {
	for path, want := range map[string]string{
		"spec.containers{sandbox}": "sandbox", "spec.initContainers{agent}": "agent",
		"": "", "spec": "", "spec.containers{": "", "spec.containers{sandbox": "", "spec.containers{}": "",
	} {
		if got := containerOf(startedEvent("a", "1", path)); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
