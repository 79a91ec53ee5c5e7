package image

import (
	"context"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
)

// flights lets callers that want the same thing at once share the work for it. The work
// goes on as long as one of them waits; the last to give up ends it and sees it end.
type flights struct {
	mu   sync.Mutex
	work map[string]*flight
}

type flight struct {
	cancel  context.CancelFunc
	done    chan struct{}
	image   Image // with err, once done is closed
	err     error
	waiting int // guarded by flights.mu

	mu       sync.Mutex // guards reports, and that they are called one at a time
	reports  map[int]func(backend.Progress)
	reporter int
}

// do returns what work for that key returns. Of several callers only the one that
// started it gets an image that is marked as made. report may be nil.
func (f *flights) do(ctx context.Context, key string, report func(backend.Progress), work func(context.Context, func(backend.Progress)) (Image, error)) (Image, error) {
	f.mu.Lock()
	w, joined := f.work[key]
	if !joined {
		w = f.start(ctx, key, work)
	}
	w.waiting++
	f.mu.Unlock()
	defer w.subscribe(report)()

	select {
	case <-w.done:
	case <-ctx.Done():
		if f.leave(key, w) {
			<-w.done
		}
		return Image{}, context.Cause(ctx)
	}
	f.leave(key, w)
	img := w.image
	img.Made = img.Made && !joined
	return img, w.err
}

// start begins the work. f.mu is held.
func (f *flights) start(ctx context.Context, key string, work func(context.Context, func(backend.Progress)) (Image, error)) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &flight{cancel: cancel, done: make(chan struct{}), reports: map[int]func(backend.Progress){}}
	if f.work == nil {
		f.work = map[string]*flight{}
	}
	f.work[key] = w
	go func() {
		defer close(w.done)
		w.image, w.err = work(ctx, w.report)
		// A later caller looks again: the work is over, its result may be removed.
		f.forget(key, w)
	}()
	return w
}

// leave is called once by each waiting caller. It reports whether that was the last.
func (f *flights) leave(key string, w *flight) bool {
	f.mu.Lock()
	w.waiting--
	last := w.waiting == 0
	f.mu.Unlock()
	if last {
		f.forget(key, w)
		w.cancel()
	}
	return last
}

func (f *flights) forget(key string, w *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.work[key] == w {
		delete(f.work, key)
	}
}

// subscribe adds a receiver of reports, and returns what removes it.
func (w *flight) subscribe(report func(backend.Progress)) func() {
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

func (w *flight) report(p backend.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.reports {
		r(p)
	}
}
