package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

func TestEntries(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	log := []database.AuditEvent{
		{Time: at, KeyID: "k1", KeyName: "ci", ProjectID: "p1", Operation: "sandbox.create", Sandbox: "sb-1", Outcome: "ok", Detail: "python"},
		{Time: at.Add(time.Second), KeyID: "k2", KeyName: "dev", ProjectID: "p2", Operation: "sandbox.create", Sandbox: "sb-2", Outcome: "ok"},
		{Time: at.Add(2 * time.Second), ProjectID: "p1", Operation: "sandbox.remove", Sandbox: "sb-1", Outcome: "failed"},
		{Time: at.Add(3 * time.Second), Operation: "key.refused", Outcome: "refused", Detail: "' OR 1=1; --\n"},
		{Time: at.Add(-time.Hour), ProjectID: "p1", Operation: "sandbox.remove", Sandbox: "sb-3", Outcome: "ok"}, // of a clock that was set back
	}
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		if err := errors.Join(s.Audit(t.Context()), s.Audit(t.Context(), log[:3]...), s.Audit(t.Context(), log[3:]...)); err != nil {
			t.Fatal(err)
		}
		all, err := s.Entries(t.Context(), database.AuditQuery{})
		if err != nil || len(all) != len(log) {
			t.Fatalf("got %d entries, %v, want %d", len(all), err, len(log))
		}
		slices.Reverse(all)
		for i, got := range all {
			want := log[i]
			want.Number = got.Number
			if diff := cmp.Diff(want, got); diff != "" || i > 0 && got.Number <= all[i-1].Number {
				t.Errorf("entry %d has number %d, want the next larger one; -want +got\n%s", i, got.Number, diff)
			}
		}
		for _, c := range []struct {
			name   string
			filter database.AuditQuery
			want   []int
		}{
			{"a project", database.AuditQuery{ProjectID: "p1"}, []int{4, 2, 0}},
			{"an action", database.AuditQuery{Operation: "sandbox.create"}, []int{1, 0}},
			{"a sandbox", database.AuditQuery{Sandbox: "sb-1"}, []int{2, 0}},
			{"all three", database.AuditQuery{ProjectID: "p1", Operation: "sandbox.remove", Sandbox: "sb-1"}, []int{2}},
			{"an outcome", database.AuditQuery{Outcome: "ok"}, []int{4, 1, 0}},
			{"a key's id", database.AuditQuery{Key: "k2"}, []int{1}},
			{"a key's name", database.AuditQuery{Key: "ci"}, []int{0}},
			{"a key of another project", database.AuditQuery{ProjectID: "p1", Key: "dev"}, nil},
			{"since", database.AuditQuery{Since: log[2].Time}, []int{3, 2}},
			{"until", database.AuditQuery{Until: log[2].Time}, []int{4, 1, 0}},
			{"between", database.AuditQuery{Since: log[0].Time, Until: log[1].Time}, []int{0}},
			{"a page", database.AuditQuery{Limit: 2}, []int{4, 3}},
			{"the next page", database.AuditQuery{Limit: 2, Before: all[3].Number}, []int{2, 1}},
			{"the last page", database.AuditQuery{Limit: 2, Before: all[1].Number}, []int{0}},
			{"none", database.AuditQuery{ProjectID: "p3"}, nil},
			{"no statement", database.AuditQuery{ProjectID: "p1' OR '1'='1"}, nil},
			{"no text", database.AuditQuery{Sandbox: "\x00\xff"}, nil},
		} {
			got, err := s.Entries(t.Context(), c.filter)
			var want []database.AuditEvent
			for _, i := range c.want {
				want = append(want, all[i])
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, want no error; -want +got\n%s", c.name, err, diff)
			}
		}
		for _, f := range []database.AuditQuery{{Limit: -1}, {Limit: MaxEntries + 1}, {Before: -1}} {
			if _, err := s.Entries(t.Context(), f); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%+v: got %v, want backend.ErrInvalid", f, err)
			}
		}
	})
}

// No text that a client chooses keeps an entry out of the log, or makes it large.
func TestKeepAudit(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
		s.now = func() time.Time { return now }
		s.KeepAudit(24 * time.Hour)
		for _, step := range []struct {
			later time.Duration
			want  int // of entries, that of the step among them
		}{{0, 1}, {time.Hour, 2}, {23 * time.Hour, 3}, {30 * time.Minute, 4}, {time.Hour, 3}, {48 * time.Hour, 1}} {
			now = now.Add(step.later)
			err := s.Audit(t.Context(), database.AuditEvent{Operation: "x"})
			got, lerr := s.Entries(t.Context(), database.AuditQuery{})
			if err != nil || lerr != nil || len(got) != step.want {
				t.Errorf("after %v more: %v, %v, %d entries, want %d", step.later, err, lerr, len(got), step.want)
			}
		}
	})
}

func TestAuditTakesAnyText(t *testing.T) {
	texts := map[string]string{
		"a\x00b": "a?b", "\xff\xfe.": "?.", strings.Repeat("x", maxText+1): strings.Repeat("x", maxText),
		strings.Repeat("x", maxText-1) + "é": strings.Repeat("x", maxText-1) + "?", "日本": "日本", strings.Repeat("\xff", maxText+1): "?",
	}
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		for text, want := range texts {
			before := time.Now().Truncate(time.Microsecond)
			if err := s.Audit(t.Context(), database.AuditEvent{Operation: "x", KeyID: text, KeyName: text, ProjectID: text, Sandbox: text, Outcome: text, Detail: text}); err != nil {
				t.Errorf("%.20q: got %v, want no error", text, err)
				continue
			}
			got, err := s.Entries(t.Context(), database.AuditQuery{Limit: 1})
			if err != nil || len(got) != 1 || got[0].Time.Before(before) || got[0].Time.After(time.Now()) {
				t.Errorf("%.20q: got %d entries, %v, want one of now", text, len(got), err)
				continue
			}
			wanted := database.AuditEvent{Number: got[0].Number, Time: got[0].Time, Operation: "x", KeyID: want, KeyName: want, ProjectID: want, Sandbox: want, Outcome: want, Detail: want}
			if diff := cmp.Diff(wanted, got[0]); diff != "" {
				t.Errorf("%.20q: -want +got\n%s", text, diff)
			}
		}
	})
}

// Entries that several processes write at once are all there, and those of a call together in order.
func TestAuditAtOnce(t *testing.T) {
	const writers, each = 6, 10
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		errs := make([]error, writers)
		var calls sync.WaitGroup
		for i := range errs {
			calls.Go(func() {
				for n := range each {
					who := fmt.Sprint(i)
					errs[i] = errors.Join(errs[i], stores[i%2].Audit(t.Context(), database.AuditEvent{KeyID: who, Detail: fmt.Sprint(2 * n)}, database.AuditEvent{KeyID: who, Detail: fmt.Sprint(2*n + 1)}))
				}
			})
		}
		calls.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		entries, err := stores[0].Entries(t.Context(), database.AuditQuery{Limit: MaxEntries})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, e := range slices.Backward(entries) {
			got[e.KeyID] = append(got[e.KeyID], e.Detail)
		}
		want := map[string][]string{}
		for i := range writers {
			for n := range 2 * each {
				want[fmt.Sprint(i)] = append(want[fmt.Sprint(i)], fmt.Sprint(n))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
