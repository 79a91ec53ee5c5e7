//go:build linux

package guest

import (
	"sync"
	"time"
)

// timers are all that the agent acts on when a time is over. They are paused and resumed
// together: what was left of each then is what is left of it when they go on.
type timers struct {
	mu      sync.Mutex
	paused  bool
	waiting map[*Timer]struct{}
	wall    wallTimer // the deadline's
}

// A Timer calls a function once, unless it is stopped before.
type Timer struct {
	set  *timers
	do   func()
	left time.Duration // as of due, or of the pause
	due  time.Time
	wait *time.Timer // nil before it has run for the first time
}

// after calls do when that much time has gone by in which the timers were not paused.
func (s *timers) after(d time.Duration, do func()) *Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Timer{set: s, do: do, left: d}
	if s.waiting == nil {
		s.waiting = map[*Timer]struct{}{}
	}
	s.waiting[t] = struct{}{}
	if !s.paused {
		t.run()
	}
	return t
}

// run needs the set's mu.
func (t *Timer) run() {
	t.due = time.Now().Add(t.left)
	t.wait = time.AfterFunc(t.left, t.fire)
}

func (t *Timer) fire() {
	t.set.mu.Lock()
	_, waits := t.set.waiting[t]
	// It may have been paused, and resumed, since its time was over.
	over := waits && !t.set.paused && !time.Now().Before(t.due)
	if over {
		delete(t.set.waiting, t)
	}
	t.set.mu.Unlock()
	if over {
		t.do()
	}
}

// Stop tells whether the function is not called because of it.
func (t *Timer) Stop() bool {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	_, waits := t.set.waiting[t]
	delete(t.set.waiting, t)
	if t.wait != nil {
		t.wait.Stop()
	}
	return waits
}

// pause stops the clock of all timers, also of those that are made later.
func (s *timers) pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused {
		return nil
	}
	if err := s.wall.pause(); err != nil {
		return err
	}
	s.paused = true
	for t := range s.waiting {
		t.wait.Stop()
		t.left = max(0, time.Until(t.due))
	}
	return nil
}

// resume is pause's reverse.
func (s *timers) resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.paused {
		return nil
	}
	if err := s.wall.resume(); err != nil {
		return err
	}
	s.paused = false
	for t := range s.waiting {
		t.run()
	}
	return nil
}
