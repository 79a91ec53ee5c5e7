package mcp

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// sessions keeps what clients have opened until they close it, or its time is over: its
// whole time, or the time without a call.
type sessions[T any] struct {
	most   int
	ended  func(T) bool // reports whether it has ended by itself
	remove func(T)      // removes what it holds; called once

	mu       sync.Mutex
	open     map[string]*session[T]
	opening  int
	watched  map[owner]bool
	closed   bool
	removing sync.WaitGroup
}

// A session is one of them. The fields but for Value are the store's.
type session[T any] struct {
	ID    string
	Value T
	owner owner
	idle  time.Duration
	end   time.Time // of its whole time
	due   time.Time // the nearest end
	users int       // calls under way, during which it is not idle
	timer *time.Timer
}

func newSessions[T any](most int, ended func(T) bool, remove func(T)) *sessions[T] {
	return &sessions[T]{most: most, ended: ended, remove: remove, open: map[string]*session[T]{}, watched: map[owner]bool{}}
}

// create opens a session with what open returns. It counts from the beginning, so that
// there are never more than there may be.
func (s *sessions[T]) create(o owner, ttl, idle time.Duration, open func() (T, error)) (*session[T], error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	value, err := open()
	s.mu.Lock()
	s.opening--
	if err == nil && s.closed {
		s.mu.Unlock()
		s.remove(value)
		return nil, errClosing
	}
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	one := &session[T]{ID: newID(), Value: value, owner: o, idle: idle, end: time.Now().Add(ttl)}
	s.open[one.ID] = one
	s.arm(one)
	return one, nil
}

// begin reserves the place of a session, if need be that of one that has ended by itself.
func (s *sessions[T]) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosing
	}
	for _, one := range s.open {
		if s.ended(one.Value) {
			s.take(one)
		}
	}
	if len(s.open)+s.opening >= s.most {
		return fmt.Errorf("%s open, and there may not be more: close one with close_session, or wait until one's time is over", count(s.most, "session"))
	}
	s.opening++
	return nil
}

// use returns a session for a call of its owner. done must be called at the end.
func (s *sessions[T]) use(o owner, id string) (one *session[T], done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[id]
	if !ok || one.owner != o {
		return nil, nil, errNoSession // whether it is another's is not said
	}
	if s.ended(one.Value) {
		s.take(one)
		return nil, nil, fmt.Errorf("the session's sandbox has ended: %w", errNoSession)
	}
	one.users++
	s.arm(one)
	return one, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.users--
		if s.open[id] == one {
			s.arm(one)
		}
	}, nil
}

// drop closes a session of an owner, and returns when it is removed.
func (s *sessions[T]) drop(o owner, id string) error {
	s.mu.Lock()
	one, ok := s.open[id]
	if !ok || one.owner != o {
		s.mu.Unlock()
		return errNoSession
	}
	removed := s.take(one)
	s.mu.Unlock()
	<-removed
	return nil
}

// watch closes an owner's sessions when gone returns. The first call for an owner counts.
func (s *sessions[T]) watch(o owner, gone func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.watched[o] {
		return
	}
	s.watched[o] = true
	s.removing.Go(func() {
		gone()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watched, o)
		for _, one := range s.open {
			if one.owner == o {
				s.take(one)
			}
		}
	})
}

// close closes all of them, and returns when all is removed.
func (s *sessions[T]) close() {
	s.mu.Lock()
	s.closed = true
	for _, one := range s.open {
		s.take(one)
	}
	s.mu.Unlock()
	s.removing.Wait()
}

// arm sets the clock to the session's nearest end. The caller holds the lock.
func (s *sessions[T]) arm(one *session[T]) {
	one.due = one.end
	if idle := time.Now().Add(one.idle); one.users == 0 && idle.Before(one.end) {
		one.due = idle
	}
	if one.timer == nil {
		one.timer = time.AfterFunc(time.Until(one.due), func() { s.expire(one) })
		return
	}
	one.timer.Reset(time.Until(one.due))
}

// expire is called by the clock, maybe a moment after it was set again.
func (s *sessions[T]) expire(one *session[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[one.ID] == one && !time.Now().Before(one.due) {
		s.take(one)
	}
}

// take takes a session out and has it removed, after which removed is closed. The caller
// holds the lock.
func (s *sessions[T]) take(one *session[T]) (removed <-chan struct{}) {
	delete(s.open, one.ID)
	one.timer.Stop()
	done := make(chan struct{})
	s.removing.Go(func() {
		defer close(done)
		s.remove(one.Value)
	})
	return done
}

// newID returns 128 random bits.
func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // does not fail
	return hex.EncodeToString(id)
}
