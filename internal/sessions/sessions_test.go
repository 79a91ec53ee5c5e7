package sessions

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A held is what a test's session holds.
type held struct{ removed, ended atomic.Bool }

func newTestSessions(most int) *Store[string, *held] {
	return New[string](most, func(h *held) bool { return h.ended.Load() }, func(h *held) {
		if h.removed.Swap(true) {
			panic("removed twice")
		}
	})
}

func create(t *testing.T, s *Store[string, *held], o string, ttl, idle time.Duration) *Session[string, *held] {
	t.Helper()
	one, err := s.Create(o, ttl, idle, func() (*held, error) { return new(held), nil })
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestSessionEndsByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSessions(10)
		defer s.CloseAll()
		o := "a"
		idle := create(t, s, o, time.Hour, 10*time.Minute)
		used := create(t, s, o, time.Hour, 10*time.Minute)
		busy := create(t, s, o, time.Hour, 10*time.Minute)
		_, busyDone, err := s.Use(o, busy.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := func(when string, one *Session[string, *held], removed bool) {
			t.Helper()
			synctest.Wait()
			if got := one.Value.removed.Load(); got != removed {
				t.Errorf("%s: removed is %v, want %v", when, got, removed)
			}
		}
		time.Sleep(9 * time.Minute)
		_, done, err := s.Use(o, used.ID)
		if err != nil {
			t.Fatal(err)
		}
		done()
		time.Sleep(2 * time.Minute)
		want("unused for 11 minutes", idle, true)
		want("used 2 minutes ago", used, false)
		want("in use", busy, false)
		if _, _, err := s.Use(o, idle.ID); !errors.Is(err, ErrNone) {
			t.Errorf("%v, want ErrNone", err)
		}
		time.Sleep(9 * time.Minute)
		want("used 11 minutes ago", used, true)
		want("in use", busy, false)
		time.Sleep(41 * time.Minute)
		want("in use for longer than it may live", busy, true)
		busyDone() // when it is gone
	})
}

func TestSessionsAreBounded(t *testing.T) {
	s := newTestSessions(2)
	o := "a"
	one := create(t, s, o, time.Hour, time.Hour)
	dead := create(t, s, o, time.Hour, time.Hour)
	fail := func() (*held, error) {
		t.Error("a session is opened over the limit, want an error before that")
		return new(held), nil
	}
	if _, err := s.Create(o, time.Hour, time.Hour, fail); !errors.Is(err, ErrFull) {
		t.Errorf("three sessions: %v, want ErrFull", err)
	}
	dead.Value.ended.Store(true)
	create(t, s, o, time.Hour, time.Hour) // in its place
	if err := s.Close("b", one.ID); !errors.Is(err, ErrNone) {
		t.Errorf("another's: %v, want ErrNone", err)
	}
	if err := s.Close(o, one.ID); err != nil || !one.Value.removed.Load() {
		t.Errorf("%v, want no error, one.Value.removed.Load() = true", err)
	}
	broken := errors.New("broken")
	if _, err := s.Create(o, time.Hour, time.Hour, func() (*held, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	last := create(t, s, o, time.Hour, time.Hour) // the failed one counts no more
	s.CloseAll()
	if !last.Value.removed.Load() || !dead.Value.removed.Load() {
		t.Errorf("removed: the last %v, the dead %v, want true, true", last.Value.removed.Load(), dead.Value.removed.Load())
	}
	if _, err := s.Create(o, time.Hour, time.Hour, fail); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestSessionOpenedWhileClosing(t *testing.T) {
	s := newTestSessions(1)
	late := new(held)
	_, err := s.Create("a", time.Hour, time.Hour, func() (*held, error) { s.CloseAll(); return late, nil })
	if !errors.Is(err, ErrClosed) || !late.removed.Load() {
		t.Errorf("%v, removed %v, want ErrClosed, late.removed.Load() = true", err, late.removed.Load())
	}
}

func TestIDsAreRandom(t *testing.T) {
	ids := map[string]bool{}
	for range 100 {
		ids[newID()] = true
	}
	if len(ids) != 100 || len(newID()) != 26 {
		t.Errorf("%d different ids, %d characters long, want 100 of 26", len(ids), len(newID()))
	}
}
