package store

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReplicas: who holds what is what was said last, by one that could.
func TestReplicas(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		ctx, s := t.Context(), open(t, source)
		beat := func(id, url string, want ...string) {
			t.Helper()
			var all []string
			err := s.Beat(ctx, id, url, func(id, url string, beats int64) { all = append(all, fmt.Sprint(id, " ", url, " ", beats)) })
			if err != nil || !slices.Equal(all, want) {
				t.Errorf("%q, %v, want %q", all, err, want)
			}
		}
		beat("a", "http://old", "a http://old 1")
		beat("a", "http://a", "a http://a 2")
		beat("b", "http://b", "a http://a 2", "b http://b 1")
		take := func(sandbox, project, network, holder, from string, want bool) {
			t.Helper()
			if taken, err := s.Take(ctx, sandbox, project, network, holder, from); err != nil || taken != want {
				t.Errorf("%s takes %s from %q: %t, %v, want %t", holder, sandbox, from, taken, err, want)
			}
		}
		take("one", "p", "{}", "a", "", true)
		take("two", "q", "", "b", "", true)
		take("one", "p", "", "b", "", false)
		take("one", "p", "", "b", "c", false)
		if err := s.KeepNetwork(ctx, "one", "changed"); err != nil {
			t.Fatal(err)
		}
		const one, two = "one p a changed", "two q b "
		held := func(id string, want ...string) {
			t.Helper()
			var all []string
			err := s.Held(ctx, id, func(sandbox, project, holder, network string) {
				all = append(all, sandbox+" "+project+" "+holder+" "+network)
			})
			if err != nil || !slices.Equal(all, want) {
				t.Errorf("held by %s: %q, %v, want %q", id, all, err, want)
			}
		}
		held("a", one)
		held("c")
		for _, beats := range []int64{0, 1} { // it has beaten more often
			if err := s.Leave(ctx, "a", beats); err != nil {
				t.Fatal(err)
			}
		}
		held("b", two)
		if err := s.Leave(ctx, "a", 2); err != nil {
			t.Fatal(err)
		}
		held("b", one, two)
		if err := s.Leave(ctx, "b", -1); err != nil {
			t.Fatal(err)
		}
		held("c", one, two)
		take("one", "p", "", "c", "a", true)
		if holder, network, err := s.Holder(ctx, "one"); err != nil || holder != "c" || network != "changed" {
			t.Errorf("%q, %q, %v, want c, and what was kept", holder, network, err)
		}
		if err := s.Drop(ctx, "one", "a"); err != nil {
			t.Fatal(err)
		}
		held("c", "one p c changed", two)
		if err := s.Drop(ctx, "one", "c"); err != nil {
			t.Fatal(err)
		}
		if holder, _, err := s.Holder(ctx, "one"); err != nil || holder != "" {
			t.Errorf("%q, %v, want that nobody does", holder, err)
		}
	})
}

// TestTakeOnce: of servers that take a sandbox from the same one at the same time, one gets it.
func TestTakeOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		ctx, s := t.Context(), open(t, source)
		for _, from := range []string{"", "dead"} {
			if from != "" {
				if taken, err := s.Take(ctx, "two", "p", "", from, ""); err != nil || !taken {
					t.Fatalf("%t, %v, want that it is taken", taken, err)
				}
			}
			sandbox := map[string]string{"": "one", "dead": "two"}[from]
			var taken atomic.Int64
			var working sync.WaitGroup
			for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
				working.Go(func() {
					ok, err := s.Take(ctx, sandbox, "p", "", id, from)
					if err != nil {
						t.Error(err)
					}
					if ok {
						taken.Add(1)
					}
				})
			}
			working.Wait()
			if taken.Load() != 1 {
				t.Errorf("from %q: %d have taken it, want 1", from, taken.Load())
			}
		}
	})
}
