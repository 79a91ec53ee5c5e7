package podwatch

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// sandboxContainer is the container whose end is the pod's.
const sandboxContainer = "sandbox"

// A Watcher follows pods of a namespace. Its methods may be called concurrently.
type Watcher struct {
	// WaitForNode is how long a pod may be without a node that has room for it, where
	// nodes are added on demand. Zero: a pod that finds none does not start. Set it
	// before the first Follow.
	WaitForNode time.Duration

	client    kubernetes.Interface
	namespace string
	choice    metav1.ListOptions // which pods are watched
	container string             // whose end is the pod's

	mu        sync.Mutex
	followers map[string]map[*Pod]struct{} // by pod name
	known     map[string]*corev1.Pod       // as last seen, by name
	pods      *reflection                  // nil while no pod is followed
	events    *reflection                  // nil while no start takes long
	waiters   int                          // starts that take long
	starts    *reflection                  // nil while there are no hearers
	hearers   int
	lost      error // why the pods cannot be watched at the moment
}

// New returns a watcher of the pods that a label selector chooses. Nothing is asked of
// the cluster before a pod is followed.
func New(c kubernetes.Interface, namespace, selector string) *Watcher {
	return newWatcher(c, namespace, metav1.ListOptions{LabelSelector: selector}, sandboxContainer)
}

// Single follows one pod by its name alone, with a watch of its own, until the end of that
// container.
func Single(c kubernetes.Interface, namespace, name, container string) (*Pod, error) {
	choice := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	return newWatcher(c, namespace, choice, container).Follow(name)
}

func newWatcher(c kubernetes.Interface, namespace string, choice metav1.ListOptions, container string) *Watcher {
	return &Watcher{
		client: c, namespace: namespace, choice: choice, container: container,
		followers: map[string]map[*Pod]struct{}{}, known: map[string]*corev1.Pod{},
	}
}

// Follow begins to follow the pod of that name, which may come to be later. The first
// one starts the watch. Stop must be called for each.
func (w *Watcher) Follow(name string) (*Pod, error) {
	p := &Pod{watcher: w, name: name, changed: make(chan struct{}), done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followers[name] == nil {
		w.followers[name] = map[*Pod]struct{}{}
	}
	w.followers[name][p] = struct{}{}
	if w.pods == nil {
		w.pods = w.reflectPods()
	} else if now := w.known[name]; now != nil {
		p.see(now)
	}
	return p, nil
}

// leave forgets a follower, and ends the watch with the last one.
func (w *Watcher) leave(p *Pod) {
	w.mu.Lock()
	delete(w.followers[p.name], p)
	if len(w.followers[p.name]) == 0 {
		delete(w.followers, p.name)
	}
	var over *reflection
	if len(w.followers) == 0 {
		over, w.pods, w.lost = w.pods, nil, nil
		clear(w.known)
	}
	w.mu.Unlock()
	over.stop()
}

// startSlow has events watched until the function that it returns is called.
func (w *Watcher) startSlow() (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if w.events == nil {
		w.events = w.reflectEvents()
	}
	return func() {
		var over *reflection
		w.mu.Lock()
		if w.waiters--; w.waiters == 0 {
			over, w.events = w.events, nil
		}
		w.mu.Unlock()
		over.stop()
	}
}

// reach records whether the pods can be watched.
func (w *Watcher) reach(r *reflection, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r != w.pods || context.Cause(r.ctx) != nil {
		return
	}
	w.lost = err
	if err != nil {
		w.each(func(p *Pod) { p.wake() })
	}
}

// each calls do for every follower.
func (w *Watcher) each(do func(*Pod)) {
	for _, ps := range w.followers {
		for p := range ps {
			do(p)
		}
	}
}
