package podwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod is one that is followed. Its methods may be called concurrently.
type Pod struct {
	watcher *Watcher
	name    string
	stopped sync.Once

	// Guarded by the watcher's lock.
	uid      types.UID       // of the pod that is meant; "" until one is seen
	now      *corev1.Pod     // as last seen
	restarts int32           // of the container when it was first seen
	warning  *StartError     // what an event reported
	started  map[string]bool // containers that run, as an event reported
	changed  chan struct{}   // closed at each change, and made anew
	end      string          // why it ended
	done     chan struct{}   // closed with its end
}

// Is sets which pod is meant, as the API server returned it, before anyone waits for its end. Without that it is the first
// one of its name that is seen, and one that is gone before it is seen is not noticed.
func (p *Pod) Is(pod *corev1.Pod) {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	p.is(pod.DeepCopy())
	if now := p.watcher.known[p.name]; now != nil && now.UID == pod.UID {
		p.see(now)
	}
}

func (p *Pod) is(pod *corev1.Pod) {
	if p.uid != pod.UID {
		if p.end != "" { // one that had the name before
			p.end, p.done = "", make(chan struct{})
		}
		p.now, p.warning, p.started = nil, nil, nil
		p.uid, p.restarts = pod.UID, restarts(pod, p.watcher.container)
		p.see(pod)
	}
}

// Done is closed when the pod has ended or was deleted, or its container ended.
func (p *Pod) Done() <-chan struct{} { return p.done }

// Ended says why Done is closed; "" while it is not.
func (p *Pod) Ended() string {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	return p.end
}

// OOMKilled reports whether the container was killed for memory as a whole.
func (p *Pod) OOMKilled() bool {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	return p.now != nil && oomKilled(p.now, p.watcher.container)
}

// ExitCode is that of the container once it has ended; 0 while it is not known.
func (p *Pod) ExitCode() int32 {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	if p.now != nil {
		if s := status(p.now, p.watcher.container); s != nil && s.State.Terminated != nil {
			return s.State.Terminated.ExitCode
		}
	}
	return 0
}

// UnreachableReason says why a pod that has not ended cannot be reached, e.g. that
// its node does not answer; "" when nothing is known.
func (p *Pod) UnreachableReason() string {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	switch {
	case p.end != "":
		return ""
	case p.watcher.lost != nil:
		return "the cluster cannot be watched: " + p.watcher.lost.Error()
	case p.now == nil:
		return ""
	}
	return obstacle(p.now, p.watcher.container)
}

// Stop ends the following. With the last one it waits for the end of the watch.
func (p *Pod) Stop() { p.stopped.Do(func() { p.watcher.leave(p) }) }

// see takes a new state of a pod of this name. The watcher is locked.
func (p *Pod) see(pod *corev1.Pod) {
	switch {
	case p.end != "", p.now != nil && older(pod.ResourceVersion, p.now.ResourceVersion):
		return
	case p.uid == "" && pod.DeletionTimestamp != nil:
		return // one from before
	case p.uid == "":
		p.uid, p.restarts = pod.UID, restarts(pod, p.watcher.container)
	case p.uid != pod.UID:
		p.over("the pod was deleted, and another one has its name")
		return
	}
	p.now = pod
	if why := ended(pod, p.watcher.container, p.restarts); why != "" {
		p.over(why)
		return
	}
	p.wake()
}

// removed takes the last state of a pod that was removed.
func (p *Pod) removed(pod *corev1.Pod) {
	if p.end != "" || p.uid != pod.UID {
		return
	}
	p.now = pod
	p.over(deleted(pod))
}

// missing learns that a list of that version has no pod of this name.
func (p *Pod) missing(version string) {
	if p.end == "" && p.now != nil && !older(version, p.now.ResourceVersion) {
		p.over(deleted(p.now))
	}
}

// warn takes what an event reported.
func (p *Pod) warn(uid types.UID, failed *StartError) {
	if p.end == "" && (p.uid == "" || p.uid == uid) {
		p.warning = failed
		p.wake()
	}
}

func (p *Pod) over(why string) {
	p.end = why
	close(p.done)
	p.wake()
}

// wake wakes those that wait for a change.
func (p *Pod) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// eventsAfter is how long a start may take before the cluster is asked for events: most
// starts are over by then, and need no further request.
const eventsAfter = 2 * time.Second

// A look is what there is to know of a pod at one time.
type look struct {
	pod     *corev1.Pod
	warning *StartError
	end     string
	lost    error
	changed <-chan struct{}
}

func (p *Pod) look() look {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	return look{p.now, p.warning, p.end, p.watcher.lost, p.changed}
}

// Wait waits until a state of the pod pleases until, which is asked at each change and
// may not change the pod, or fails. A pod that cannot start ends the wait at once with a
// *StartError, one that has ended too; and so does a cluster that does not let us watch.
func (p *Pod) Wait(ctx context.Context, until func(*corev1.Pod) (bool, error)) (*corev1.Pod, error) {
	slow, node := time.NewTimer(eventsAfter), patience{bound: p.watcher.WaitForNode}
	defer slow.Stop()
	defer node.stop()
	for {
		l := p.look()
		if l.pod != nil {
			if ok, err := until(l.pod); ok || err != nil {
				return l.pod, err
			}
		}
		if err := l.failed(&node); err != nil {
			return l.pod, err
		}
		select {
		case <-l.changed:
		case <-node.over():
			node.spent = true
		case <-slow.C:
			defer p.watcher.use(&p.watcher.events, p.watcher.reflectEvents)()
		case <-ctx.Done():
			return l.pod, fmt.Errorf("wait for pod %s: %w%s", p.name, context.Cause(ctx), l.state())
		}
	}
}

// failed returns why the pod will not start.
func (l look) failed(node *patience) error {
	if l.pod != nil {
		if failed := failure(l.pod); failed != nil && !(failed.Reason == reasonUnschedulable && node.left()) {
			return failed
		}
	}
	switch {
	case l.warning != nil:
		return l.warning
	case l.end != "":
		return &StartError{Reason: "Ended", Message: l.end}
	case refused(l.lost):
		return fmt.Errorf("watch the pods: %w", l.lost)
	}
	return nil
}

// refused reports whether asking again is of no use.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

// state adds to an error how far the pod has come.
func (l look) state() string {
	switch {
	case l.lost != nil && !errors.Is(l.lost, context.Canceled):
		return fmt.Sprintf(" (the cluster cannot be watched: %v)", l.lost)
	case l.pod == nil:
		return " (the cluster has not shown it yet)"
	}
	return fmt.Sprintf(" (it is %s)", describe(l.pod))
}

// patience is how long a pod without a node is waited for, from when that is first seen.
type patience struct {
	bound time.Duration
	timer *time.Timer
	spent bool
}

func (w *patience) left() bool {
	if w.timer == nil && w.bound > 0 {
		w.timer = time.NewTimer(w.bound)
	}
	return w.timer != nil && !w.spent
}

// over yields when the patience is over.
func (w *patience) over() <-chan time.Time {
	if w.timer == nil || w.spent {
		return nil
	}
	return w.timer.C
}

func (w *patience) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
