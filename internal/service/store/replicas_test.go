package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/replicas"
)

// TestReplicas: who holds what is what was said last, by one that could.
func TestReplicas(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		ctx, s := t.Context(), open(t, source)
		beat := func(id, url string, want ...replicas.Replica) {
			t.Helper()
			if all, err := s.Beat(ctx, id, url); err != nil || !slices.Equal(all, want) {
				t.Errorf("%+v, %v, want %+v", all, err, want)
			}
		}
		beat("a", "http://old", replicas.Replica{ID: "a", URL: "http://old", Beats: 1})
		beat("a", "http://a", replicas.Replica{ID: "a", URL: "http://a", Beats: 2})
		beat("b", "http://b", replicas.Replica{ID: "a", URL: "http://a", Beats: 2}, replicas.Replica{ID: "b", URL: "http://b", Beats: 1})
		take := func(h replicas.Held, from string, want bool) {
			t.Helper()
			if taken, err := s.Take(ctx, h, from); err != nil || taken != want {
				t.Errorf("take %+v from %q: %t, %v, want %t", h, from, taken, err, want)
			}
		}
		one, two := replicas.Held{Sandbox: "one", Project: "p", Replica: "a", Network: "{}"}, replicas.Held{Sandbox: "two", Project: "q", Replica: "b"}
		take(one, "", true)
		take(two, "", true)
		take(replicas.Held{Sandbox: "one", Project: "p", Replica: "b"}, "", false)
		take(replicas.Held{Sandbox: "one", Project: "p", Replica: "b"}, "c", false)
		if err := s.KeepNetwork(ctx, "one", "changed"); err != nil {
			t.Fatal(err)
		}
		one.Network = "changed"
		held := func(id string, want ...replicas.Held) {
			t.Helper()
			if all, err := s.Held(ctx, id); err != nil || !slices.Equal(all, want) {
				t.Errorf("held by %s: %+v, %v, want %+v", id, all, err, want)
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
		one.Replica = "c"
		take(one, "a", true)
		if h, ok, err := s.Holder(ctx, "one"); err != nil || !ok || h != one {
			t.Errorf("%+v, %t, %v, want %+v", h, ok, err, one)
		}
		if err := s.Drop(ctx, "one", "a"); err != nil {
			t.Fatal(err)
		}
		held("c", one, two)
		if err := s.Drop(ctx, "one", "c"); err != nil {
			t.Fatal(err)
		}
		if h, ok, err := s.Holder(ctx, "one"); err != nil || ok {
			t.Errorf("%+v, %t, %v, want that nobody does", h, ok, err)
		}
	})
}

// TestTakeOnce: of servers that take a sandbox from the same one at the same time, one gets it.
func TestTakeOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		ctx, s := t.Context(), open(t, source)
		for _, from := range []string{"", "dead"} {
			if from != "" {
				if taken, err := s.Take(ctx, replicas.Held{Sandbox: "two", Replica: from}, ""); err != nil || !taken {
					t.Fatalf("%t, %v, want that it is taken", taken, err)
				}
			}
			sandbox := map[string]string{"": "one", "dead": "two"}[from]
			var taken atomic.Int64
			var working sync.WaitGroup
			for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
				working.Go(func() {
					ok, err := s.Take(ctx, replicas.Held{Sandbox: sandbox, Replica: id}, from)
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
