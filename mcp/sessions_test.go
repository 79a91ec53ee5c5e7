package mcp

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A held is what a test's session holds.
type held struct{ removed, ended atomic.Bool }

func newTestSessions(most int) *sessions[*held] {
	return newSessions(most, func(h *held) bool { return h.ended.Load() }, func(h *held) {
		if h.removed.Swap(true) {
			panic("removed twice")
		}
	})
}

func create(t *testing.T, s *sessions[*held], o owner, ttl, idle time.Duration) *session[*held] {
	t.Helper()
	one, err := s.create(o, ttl, idle, func() (*held, error) { return new(held), nil })
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestSessionEndsByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSessions(10)
		defer s.close()
		o := owner{user: "a"}
		idle := create(t, s, o, time.Hour, 10*time.Minute)
		used := create(t, s, o, time.Hour, 10*time.Minute)
		busy := create(t, s, o, time.Hour, 10*time.Minute)
		_, busyDone, err := s.use(o, busy.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := func(when string, one *session[*held], removed bool) {
			t.Helper()
			synctest.Wait()
			if got := one.Value.removed.Load(); got != removed {
				t.Errorf("%s: removed is %v", when, got)
			}
		}
		time.Sleep(9 * time.Minute)
		_, done, err := s.use(o, used.ID)
		if err != nil {
			t.Fatal(err)
		}
		done()
		time.Sleep(2 * time.Minute)
		want("unused for 11 minutes", idle, true)
		want("used 2 minutes ago", used, false)
		want("in use", busy, false)
		if _, _, err := s.use(o, idle.ID); !errors.Is(err, errNoSession) {
			t.Errorf("%v", err)
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
	o := owner{user: "a"}
	one := create(t, s, o, time.Hour, time.Hour)
	dead := create(t, s, o, time.Hour, time.Hour)
	fail := func() (*held, error) { t.Error("opened one too many"); return new(held), nil }
	if _, err := s.create(o, time.Hour, time.Hour, fail); err == nil {
		t.Error("three sessions")
	}
	dead.Value.ended.Store(true)
	create(t, s, o, time.Hour, time.Hour) // in its place
	if err := s.drop(owner{user: "b"}, one.ID); !errors.Is(err, errNoSession) {
		t.Errorf("another's: %v", err)
	}
	if err := s.drop(o, one.ID); err != nil || !one.Value.removed.Load() {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	if _, err := s.create(o, time.Hour, time.Hour, func() (*held, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	last := create(t, s, o, time.Hour, time.Hour) // the failed one counts no more
	s.close()
	if !last.Value.removed.Load() || !dead.Value.removed.Load() {
		t.Error("some are left")
	}
	if _, err := s.create(o, time.Hour, time.Hour, fail); !errors.Is(err, errClosing) {
		t.Errorf("%v", err)
	}
}

func TestSessionOpenedWhileClosing(t *testing.T) {
	s := newTestSessions(1)
	late := new(held)
	_, err := s.create(owner{user: "a"}, time.Hour, time.Hour, func() (*held, error) { s.close(); return late, nil })
	if !errors.Is(err, errClosing) || !late.removed.Load() {
		t.Errorf("%v, removed %v", err, late.removed.Load())
	}
}

func TestSessionsEndWithTheirConnection(t *testing.T) {
	server := newServer(t, Config{})
	client := connect(t, server, nil)
	s := open(t, client, args{"language": "bash"})
	server.sessions.mu.Lock()
	one := server.sessions.open[s.SessionID]
	server.sessions.mu.Unlock()
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	<-one.Value.sandbox.Done()
}
