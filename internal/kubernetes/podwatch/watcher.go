// Package podwatch knows what becomes of the pods of one owner: when they run, why they do
// not start, and how they ended.
//
// All pods of a [Watcher] share one list and watch, which lives as long as one of them is
// followed. client-go's reflector takes it up again where it was after an API server's
// restart, and lists anew where that is not possible. What shows only in events, such as
// a runtime that a node does not have, is watched only while a start takes long. An event
// reports that a container has started before the pod's status does, after [Pod.Hear].
package podwatch

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

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
	events    shared                       // by starts that take long
	starts    shared                       // by those who hear
	lost      error                        // why the pods cannot be watched at the moment
}

// New returns a watcher of the pods that a label selector chooses, which end with that
// container. Nothing is asked of the cluster before a pod is followed.
func New(c kubernetes.Interface, namespace, selector, container string) *Watcher {
	return newWatcher(c, namespace, metav1.ListOptions{LabelSelector: selector}, container)
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

// A shared reflection goes on while it is used.
type shared struct {
	*reflection
	users int
}

// use has reflect's reflection go on until the function that it returns is called.
func (w *Watcher) use(s *shared, reflect func() *reflection) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.users++; s.users == 1 {
		s.reflection = reflect()
	}
	return func() {
		var over *reflection
		w.mu.Lock()
		if s.users--; s.users == 0 {
			over, s.reflection = s.reflection, nil
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

// A reflection is a list and watch that goes on until it is stopped.
type reflection struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

func newReflection() *reflection {
	// client-go writes to the program's stderr what reach gets.
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	return &reflection{ctx: ctx, cancel: cancel, done: make(chan struct{})}
}

func (f *reflection) run(do func(context.Context)) {
	go func() {
		defer close(f.done)
		do(f.ctx)
	}()
}

// A resource is what a reflection lists and watches.
type resource struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	kind  runtime.Object
}

// reflect keeps store up to date. reach gets, after each request, whether it could be
// made; the next one comes when it is time.
func (w *Watcher) reflect(r resource, choice metav1.ListOptions, store func(*reflection) cache.ReflectorStore, reach func(*reflection, error)) *reflection {
	f, silent := newReflection(), logr.Discard()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = choice.LabelSelector, choice.FieldSelector
			got, err := r.list(ctx, o)
			reach(f, err)
			return got, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = choice.LabelSelector, choice.FieldSelector
			got, err := r.watch(ctx, o)
			reach(f, err)
			return got, err
		},
	}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, w.client), r.kind, store(f),
		cache.ReflectorOptions{Logger: &silent, Name: "llmsandbox"})
	f.run(reflector.RunWithContext)
	return f
}

// stop ends a reflection and waits for it. It may not be called with what its store locks.
func (f *reflection) stop() {
	if f != nil {
		f.cancel()
		<-f.done
	}
}

func (w *Watcher) reflectPods() *reflection {
	pods := w.client.CoreV1().Pods(w.namespace)
	return w.reflect(resource{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		watch: pods.Watch,
		kind:  &corev1.Pod{},
	}, w.choice, func(f *reflection) cache.ReflectorStore { return &podStore{w, f} }, w.reach)
}

// reflectEvents watches the warnings about pods. A cluster that does not let us says less
// of why a pod does not start; that is no failure.
func (w *Watcher) reflectEvents() *reflection {
	events := w.client.CoreV1().Events(w.namespace)
	return w.reflect(resource{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return events.List(ctx, o) },
		watch: events.Watch,
		kind:  &corev1.Event{},
	}, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.kind=Pod"},
		func(*reflection) cache.ReflectorStore { return &eventStore{w} }, func(*reflection, error) {})
}

// A podStore hands what a reflection of pods brings to the followers.
type podStore struct {
	watcher *Watcher
	of      *reflection
}

// with calls do unless the reflection is over: a later one may have begun.
func (s *podStore) with(do func()) error {
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	if s.watcher.pods == s.of {
		do()
	}
	return nil
}

func (s *podStore) Add(obj any) error { return s.Update(obj) }

func (s *podStore) Update(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return s.with(func() { s.see(pod) })
}

func (s *podStore) see(pod *corev1.Pod) {
	// A copy of the top: the caller may still read it.
	own := *pod
	own.ManagedFields = nil
	pod = &own
	s.watcher.known[pod.Name] = pod
	for p := range s.watcher.followers[pod.Name] {
		p.see(pod)
	}
}

func (s *podStore) Delete(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return s.with(func() {
		delete(s.watcher.known, pod.Name)
		for p := range s.watcher.followers[pod.Name] {
			p.removed(pod)
		}
	})
}

// Replace is what a list brings, which may be older than what a follower knows.
func (s *podStore) Replace(all []any, version string) error {
	return s.with(func() {
		clear(s.watcher.known)
		for _, obj := range all {
			if pod, ok := obj.(*corev1.Pod); ok {
				s.see(pod)
			}
		}
		s.watcher.each(func(p *Pod) {
			if s.watcher.known[p.name] == nil {
				p.missing(version)
			}
		})
	})
}

func (s *podStore) Resync() error { return nil }

// older reports whether a version of an object is known to be older than another one.
func older(a, b string) bool {
	x, xerr := strconv.ParseUint(a, 10, 64)
	y, yerr := strconv.ParseUint(b, 10, 64)
	return xerr == nil && yerr == nil && x < y
}

// An eventStore hands warnings to the followers of the pods that they are about.
type eventStore struct{ watcher *Watcher }

func (s *eventStore) Add(obj any) error { return s.Update(obj) }

func (s *eventStore) Update(obj any) error {
	e, ok := obj.(*corev1.Event)
	if !ok {
		return nil
	}
	failed := failedBy(e)
	if failed == nil {
		return nil
	}
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	for p := range s.watcher.followers[e.InvolvedObject.Name] {
		p.warn(e.InvolvedObject.UID, failed)
	}
	return nil
}

func (s *eventStore) Replace(all []any, _ string) error {
	for _, obj := range all {
		if err := s.Update(obj); err != nil {
			return err
		}
	}
	return nil
}

func (s *eventStore) Delete(any) error { return nil }
func (s *eventStore) Resync() error    { return nil }
