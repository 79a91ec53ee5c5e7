package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

// TestSessions: a session is what was kept, at every server, until it ends, is not used, or its key is no more.
func TestSessions(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s, other := open(t, source), open(t, source)
		now := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
		s.now = func() time.Time { return now }
		other.now = s.now
		type kept struct {
			database.Session
			id   string
			used time.Time
		}
		add := func(id string, of database.Session) kept {
			t.Helper()
			of.Begun = now
			if of.End.IsZero() {
				of.End = now.Add(12 * time.Hour)
			}
			if err := s.AddSession(t.Context(), id, of); err != nil {
				t.Fatal(err)
			}
			return kept{of, id, now}
		}
		want := func(s *Store, of kept) {
			t.Helper()
			got, err := s.UseSession(t.Context(), of.id)
			if diff := cmp.Diff(of.Session, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("session %s: %v; -want +got\n%s", of.id, err, diff)
			}
			var used int64
			if err := s.db.QueryRowContext(t.Context(), "SELECT used FROM sessions WHERE id = $1", of.id).Scan(&used); err != nil || used != micros(of.used) {
				t.Errorf("session %s was used at %v, %v, want %v", of.id, fromMicros(used), err, of.used)
			}
		}
		gone := func(id string) {
			t.Helper()
			for _, s := range []*Store{s, other} {
				if got, err := s.UseSession(t.Context(), id); !errors.Is(err, fs.ErrNotExist) || got.Caller.Project != "" {
					t.Errorf("session %s: %+v, %v, want that there is none", id, got, err)
				}
			}
		}
		key, _ := create(t, s, database.NewKey{Name: "a"})
		ends, _ := create(t, s, database.NewKey{Name: "ends", Expires: now.Add(time.Hour)})
		ofKey := func(k database.Key) database.Session { return database.Session{Caller: k.Caller()} }
		a, b := add("a", ofKey(key)), add("b", ofKey(ends))
		person := add("person", database.Session{Caller: database.Caller{Project: key.ProjectID, KeyID: "oidc:'\"é", KeyName: "anna@example.org", Scopes: []string{database.ScopeRead, database.ScopeAudit}}, Issuer: "x"})
		short := add("short", database.Session{Caller: database.Caller{Project: key.ProjectID, KeyID: "oidc:short"}, Issuer: "x", End: now.Add(10 * time.Minute)})
		for _, of := range []kept{a, b, person, short} {
			want(s, of)
			want(other, of)
		}
		gone("c")
		gone("a' OR '1'='1")

		now = now.Add(sessionUsed - time.Microsecond)
		want(other, a) // it was used a moment ago
		now = now.Add(time.Microsecond)
		a.used, short.used = now, now
		want(other, a)
		want(s, a)
		want(s, short)

		now = short.End
		gone("short")
		now = ends.Expires
		gone("b")
		for range 3 {
			a.used = now
			want(s, a)
			now = now.Add(sessionIdle - time.Minute)
		}
		gone("person")
		now = a.End
		gone("a")
		add("new", ofKey(key))
		var left int
		if err := s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sessions").Scan(&left); err != nil || left != 1 {
			t.Errorf("%d sessions are kept, %v, want the new one", left, err)
		}

		again := add("again", ofKey(key))
		want(other, again)
		if err := errors.Join(s.EndSessions(t.Context(), nil), other.EndSessions(t.Context(), []string{"new", "x"})); err != nil {
			t.Error(err)
		}
		gone("new")
		want(s, again)
		if _, err := other.RevokeKey(t.Context(), key.ID); err != nil {
			t.Fatal(err)
		}
		gone("again")
		want(s, add("last", database.Session{Caller: database.Caller{Project: "p", KeyID: "oidc:a"}, Issuer: "x"}))
		if n, err := other.EndAllSessions(t.Context(), false); n != 2 || err != nil { // that of the revoked key is still kept
			t.Errorf("%d sessions ended, %v, want 2", n, err)
		}
		gone("last")
	})
}

// TestSessionsAreBounded: the oldest of a key's or person's, and of a project's, end, and no other's.
func TestSessionsAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		now := time.Now()
		s.now = func() time.Time { return now }
		add := func(project, who, id string) {
			t.Helper()
			now = now.Add(time.Second)
			if err := s.AddSession(t.Context(), id, database.Session{Caller: database.Caller{Project: project, KeyID: who}, Issuer: "x", Begun: now, End: now.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(id string, lives bool) {
			t.Helper()
			if _, err := s.UseSession(t.Context(), id); (err == nil) != lives || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("session %s: %v, want that it is there: %t", id, err, lives)
			}
		}
		add("p", "other", "other")
		add("q", "who", "q")
		for i := range sessionsOfKey + 1 {
			add("p", "who", strconv.Itoa(i))
		}
		want("0", false)
		want("1", true)
		want("other", true)
		for i := range sessionsOfProject - sessionsOfKey {
			add("p", fmt.Sprint("many", i), fmt.Sprint("many", i))
		}
		want("other", false)
		want("1", true)
		want("q", true)
	})
}

// TestSessionEndsAtOnce: a session that one server ends while others use it stays ended.
func TestSessionEndsAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		later := time.Now().Add(time.Hour) // so that each use is kept
		stores[1].now = func() time.Time { return later }
		for i := range 20 {
			id := strconv.Itoa(i)
			if err := stores[0].AddSession(t.Context(), id, database.Session{Caller: database.Caller{Project: "p", KeyID: id}, Issuer: "x", Begun: time.Now(), End: later.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			all.Go(func() {
				if _, err := stores[1].UseSession(t.Context(), id); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			})
			all.Go(func() {
				if err := stores[0].EndSessions(t.Context(), []string{id}); err != nil {
					t.Error(err)
				}
			})
			all.Wait()
			if _, err := stores[1].UseSession(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("session %s: %v, want that it has ended", id, err)
			}
		}
	})
}
