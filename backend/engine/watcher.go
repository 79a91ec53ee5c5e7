package engine

import (
	"context"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/await"
)

// Conditions that a watcher waits for.
const (
	waitNextExit   = container.WaitConditionNextExit
	waitNotRunning = container.WaitConditionNotRunning
)

const (
	// lookTimeout bounds one look at a container whose watch broke off.
	lookTimeout = 10 * time.Second
	// watchPause is from one call to the next at least: an engine that cannot wait says so
	// at once.
	watchPause = time.Second
)

// A watcher learns of a container's end by one long call of the engine. An engine that
// does not answer is no end: containers may outlive it. The watch is then taken up again
// by whoever reaches the engine next.
type watcher struct {
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	cancel  context.CancelFunc
	running bool
	stopped bool
	idle    sync.WaitGroup
}

func newWatcher() *watcher { return &watcher{done: make(chan struct{})} }

// start begins the watch. The engine has taken note of it when this returns.
func (w *watcher) start(c *client.Client, id string, until container.WaitCondition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running || w.stopped {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.running = cancel, true
	w.idle.Go(func() {
		defer cancel()
		w.watch(ctx, c, id, until)
		w.mu.Lock()
		w.running = false
		w.mu.Unlock()
	})
}

// watch returns when the container has ended, or when the engine cannot be asked.
func (w *watcher) watch(ctx context.Context, c *client.Client, id string, until container.WaitCondition) {
	for {
		pause := time.After(watchPause)
		// Podman ends its wait with no code where its own record of events has failed it.
		if end := <-await.Container(ctx, c, id, until); end.Err == nil && end.Code >= 0 {
			w.end()
			return
		}
		if ctx.Err() != nil {
			return
		}
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		res, err := c.ContainerInspect(look, id, client.ContainerInspectOptions{})
		cancel()
		if err != nil && !gone(err) {
			return // the engine is away
		}
		switch state := res.Container.State; {
		case err != nil || state == nil:
			w.end()
			return
		case state.Running:
			until = waitNotRunning
		case state.Status != container.StateCreated: // it is about to be started
			w.end()
			return
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return
		}
	}
}

// resume takes the watch up again after the engine was away.
func (w *watcher) resume(c *client.Client, id string) { w.start(c, id, waitNotRunning) }

// end records the end.
func (w *watcher) end() { w.once.Do(func() { close(w.done) }) }

func (w *watcher) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// stop ends the watch and waits for it. From then on the sandbox counts as ended for
// who holds this handle.
func (w *watcher) stop() {
	w.mu.Lock()
	w.stopped = true
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.idle.Wait()
	w.end()
}
