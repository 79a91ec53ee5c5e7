// Package sessions keeps what the clients of a server hold: sessions, until they are closed
// or their time is over, and places for programs that run at once.
package sessions

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"
)

// What a store refuses.
var (
	ErrClosed = errors.New("the store is closed")
	ErrFull   = errors.New("as many sessions are open as may be")
	ErrNone   = errors.New("there is no such session")
	ErrEnded  = errors.New("what the session held has ended")
)

// A Store keeps what owners have opened until they close it, or its time is over: its
// whole time, or the time without a call.
type Store[Owner comparable, T any] struct {
	most   int
	ended  func(T) bool
	remove func(T)

	mu       sync.Mutex
	open     map[string]*Session[Owner, T]
	opening  int
	watched  map[Owner]bool
	closed   bool
	removing sync.WaitGroup
}

// A Session is one of them.
type Session[Owner comparable, T any] struct {
	ID    string
	Value T
	owner Owner
	idle  time.Duration
	end   time.Time // of its whole time
	due   time.Time // the nearest end
	users int       // calls under way, during which it is not idle
	timer *time.Timer
}

// New makes a store of at most so many sessions. ended reports whether what a session
// holds has ended by itself; remove removes it, and is called once.
func New[Owner comparable, T any](most int, ended func(T) bool, remove func(T)) *Store[Owner, T] {
	return &Store[Owner, T]{most: most, ended: ended, remove: remove, open: map[string]*Session[Owner, T]{}, watched: map[Owner]bool{}}
}

// Create opens a session with what open returns. It counts from the beginning, so that
// there are never more than there may be.
func (s *Store[Owner, T]) Create(o Owner, ttl, idle time.Duration, open func() (T, error)) (*Session[Owner, T], error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	value, err := open()
	s.mu.Lock()
	s.opening--
	if err == nil && s.closed {
		s.mu.Unlock()
		s.remove(value)
		return nil, ErrClosed
	}
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	one := &Session[Owner, T]{ID: newID(), Value: value, owner: o, idle: idle, end: time.Now().Add(ttl)}
	s.open[one.ID] = one
	s.arm(one)
	return one, nil
}

// begin reserves the place of a session, if need be that of one that has ended by itself.
func (s *Store[Owner, T]) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	for _, one := range s.open {
		if s.ended(one.Value) {
			s.take(one)
		}
	}
	if len(s.open)+s.opening >= s.most {
		return ErrFull
	}
	s.opening++
	return nil
}

// Use returns a session for a call of its owner. done must be called at the end.
func (s *Store[Owner, T]) Use(o Owner, id string) (one *Session[Owner, T], done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[id]
	if !ok || one.owner != o {
		return nil, nil, ErrNone // whether it is another's is not said
	}
	if s.ended(one.Value) {
		s.take(one)
		return nil, nil, ErrEnded
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

// Close closes a session of an owner, and returns when it is removed.
func (s *Store[Owner, T]) Close(o Owner, id string) error {
	s.mu.Lock()
	one, ok := s.open[id]
	if !ok || one.owner != o {
		s.mu.Unlock()
		return ErrNone
	}
	removed := s.take(one)
	s.mu.Unlock()
	<-removed
	return nil
}

// Watch closes an owner's sessions when gone returns. The first call for an owner counts.
func (s *Store[Owner, T]) Watch(o Owner, gone func()) {
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

// CloseAll closes all of them, and returns when all is removed.
func (s *Store[Owner, T]) CloseAll() {
	s.mu.Lock()
	s.closed = true
	for _, one := range s.open {
		s.take(one)
	}
	s.mu.Unlock()
	s.removing.Wait()
}

// arm sets the clock to the session's nearest end. The caller holds the lock.
func (s *Store[Owner, T]) arm(one *Session[Owner, T]) {
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
func (s *Store[Owner, T]) expire(one *Session[Owner, T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[one.ID] == one && !time.Now().Before(one.due) {
		s.take(one)
	}
}

// take takes a session out and has it removed, after which removed is closed. The caller
// holds the lock.
func (s *Store[Owner, T]) take(one *Session[Owner, T]) (removed <-chan struct{}) {
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
	return strings.ToLower(rand.Text())
}
