package podwatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
			defer p.watcher.startSlow()()
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
