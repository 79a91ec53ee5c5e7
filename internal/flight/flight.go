// Package flight lets callers that want the same thing at once share the work for it.
package flight

import (
	"context"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Group has the work that is under way, by its keys. The work goes on as long as one of its
// callers waits; the last to give up ends it and sees it end. The zero value is ready.
type Group[K comparable, V any] struct {
	mu   sync.Mutex
	work map[K]*flight[V]
}

type flight[V any] struct {
	cancel  context.CancelFunc
	done    chan struct{}
	value   V // with err, once done is closed
	err     error
	waiting int // guarded by Group.mu

	mu       sync.Mutex // guards reports, and that they are called one at a time
	reports  map[int]func(backend.Progress)
	reporter int
}

// Do returns what work for that key returns, and whether another caller started it. Its context
// has the values of that caller's, and what it reports goes to all who wait. report may be nil.
func (g *Group[K, V]) Do(ctx context.Context, key K, report func(backend.Progress), work func(context.Context, func(backend.Progress)) (V, error)) (value V, joined bool, err error) {
	g.mu.Lock()
	w, joined := g.work[key]
	var working context.Context
	if !joined {
		w = &flight[V]{done: make(chan struct{}), reports: map[int]func(backend.Progress){}}
		working, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if g.work == nil {
			g.work = map[K]*flight[V]{}
		}
		g.work[key] = w
	}
	w.waiting++
	g.mu.Unlock()
	defer w.subscribe(report)()
	if !joined {
		go func() {
			defer close(w.done)
			w.value, w.err = work(working, w.report)
			// A later caller looks again: the work is over, its result may be removed.
			g.forget(key, w)
		}()
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if g.leave(key, w) {
			<-w.done
		}
		return value, joined, context.Cause(ctx)
	}
	g.leave(key, w)
	return w.value, joined, w.err
}

// leave is called once by each waiting caller. It reports whether that was the last.
func (g *Group[K, V]) leave(key K, w *flight[V]) bool {
	g.mu.Lock()
	w.waiting--
	last := w.waiting == 0
	g.mu.Unlock()
	if last {
		g.forget(key, w)
		w.cancel()
	}
	return last
}

func (g *Group[K, V]) forget(key K, w *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.work[key] == w {
		delete(g.work, key)
	}
}

// subscribe adds a receiver of reports, and returns what removes it.
func (w *flight[V]) subscribe(report func(backend.Progress)) func() {
	if report == nil {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reporter++
	id := w.reporter
	w.reports[id] = report
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.reports, id)
	}
}

func (w *flight[V]) report(p backend.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.reports {
		r(p)
	}
}
