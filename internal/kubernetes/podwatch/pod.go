package podwatch

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
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

// Is sets which pod is meant, as the API server returned it. Without that it is the first
// one of its name that is seen, and one that is gone before it is seen is not noticed.
func (p *Pod) Is(pod *corev1.Pod) {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	p.is(pod.DeepCopy())
}

func (p *Pod) is(pod *corev1.Pod) {
	if p.uid != pod.UID && p.end == "" {
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

// Trouble says why a pod that has not ended cannot be reached, e.g. that
// its node does not answer; "" when nothing is known.
func (p *Pod) Trouble() string {
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
