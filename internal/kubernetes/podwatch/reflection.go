package podwatch

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// A reflection is a list and watch that goes on until it is stopped.
type reflection struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
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
	// client-go writes to the program's stderr what reach gets.
	silent := logr.Discard()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), silent))
	f := &reflection{ctx: ctx, cancel: cancel, done: make(chan struct{})}
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
	go func() {
		defer close(f.done)
		reflector.RunWithContext(ctx)
	}()
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
