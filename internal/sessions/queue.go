package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrBusy is what those get who wait in vain for a place.
var ErrBusy = errors.New("the server is busy")

// A Queue has places for programs that run at once. Where all are taken, projects are served in turn, whatever many programs one of them
// has waiting.
type Queue struct {
	places   int
	waits    int // for each place, of one project
	patience time.Duration

	mu      sync.Mutex
	free    int
	waiting map[string][]*waiter // of each project, the first first; none is empty
	turns   []string             // the projects that wait, the next first
	count   int                  // of those who wait
}

// A waiter waits for a place, which it has once granted is closed.
type waiter struct{ granted chan struct{} }

// NewQueue makes a queue of so many places. For each of them, so many of a project wait, no longer than patience.
func NewQueue(places, waits int, patience time.Duration) *Queue {
	return &Queue{places: places, waits: waits, patience: patience, free: places, waiting: map[string][]*waiter{}}
}

// most is how many may wait, of one project and of all together: for each place some, so that one who waits has a chance within its patience.
func (q *Queue) most() (ofProject, ofAll int) { return q.waits * q.places, 4 * q.waits * q.places }

// Enter takes a place, which leave gives back. It fails with ErrBusy.
func (q *Queue) Enter(ctx context.Context, project string) (leave func(), err error) {
	q.mu.Lock()
	if q.free > 0 { // then nobody waits
		q.free--
		q.mu.Unlock()
		return sync.OnceFunc(q.leave), nil
	}
	ofProject, ofAll := q.most()
	if len(q.waiting[project]) >= ofProject || q.count >= ofAll {
		defer q.mu.Unlock()
		return nil, fmt.Errorf("%w: %d programs run, %d wait, and %d of them are yours: try again later", ErrBusy, q.places, q.count, len(q.waiting[project]))
	}
	w := &waiter{make(chan struct{})}
	if len(q.waiting[project]) == 0 {
		q.turns = append(q.turns, project)
	}
	q.waiting[project] = append(q.waiting[project], w)
	q.count++
	q.mu.Unlock()

	select {
	case <-w.granted:
		return sync.OnceFunc(q.leave), nil
	case <-time.After(q.patience):
		err = fmt.Errorf("%w: %d programs run, and none of them ended in time for this one to run within %v: try again later", ErrBusy, q.places, q.patience)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if q.giveUp(project, w) {
		return nil, err
	}
	return sync.OnceFunc(q.leave), nil // it was granted meanwhile
}

// leave gives a place to the next who waits, if any does.
func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		q.free++
		return
	}
	project := q.turns[0]
	q.turns = q.turns[1:]
	w := q.waiting[project][0]
	q.remove(project, 0)
	if len(q.waiting[project]) > 0 {
		q.turns = append(q.turns, project)
	}
	close(w.granted)
}

// giveUp reports whether one who waited does not wait any more, and has no place.
func (q *Queue) giveUp(project string, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[project], w)
	if i < 0 {
		return false
	}
	if q.remove(project, i); len(q.waiting[project]) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(p string) bool { return p == project })
	}
	return true
}

// Waiting is how many wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// remove takes one who waits out of its project's. The caller holds mu, and sees to turns.
func (q *Queue) remove(project string, i int) {
	q.waiting[project] = slices.Delete(q.waiting[project], i, i+1)
	if len(q.waiting[project]) == 0 {
		delete(q.waiting, project)
	}
	q.count--
}
