package replicas

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeStore is one in memory.
type fakeStore struct {
	mu       sync.Mutex
	replicas []Replica
	held     map[string]Held
}

func (f *fakeStore) Beat(_ context.Context, id, url string) ([]Replica, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.replicas, func(r Replica) bool { return r.ID == id })
	if at < 0 {
		at, f.replicas = len(f.replicas), append(f.replicas, Replica{ID: id, URL: url})
	}
	f.replicas[at].Beats++
	return slices.Clone(f.replicas), nil
}

func (f *fakeStore) Leave(_ context.Context, id string, beats int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = slices.DeleteFunc(f.replicas, func(r Replica) bool { return r.ID == id && (beats < 0 || r.Beats <= beats) })
	return nil
}

func (f *fakeStore) Holder(_ context.Context, sandbox string) (Held, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, ok := f.held[sandbox]
	h.Sandbox = sandbox
	return h, ok, nil
}

func (f *fakeStore) Take(_ context.Context, h Held, from string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[h.Sandbox].Replica != from {
		return false, nil
	}
	f.held[h.Sandbox] = h
	return true, nil
}

func (*fakeStore) Held(context.Context, string) ([]Held, error)      { return nil, nil }
func (*fakeStore) KeepNetwork(context.Context, string, string) error { return nil }
func (*fakeStore) Drop(context.Context, string, string) error        { return nil }

// TestSilence: a server that is silent for too long holds nothing any more, and one that is silent for a moment does.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), &fakeStore{held: map[string]Held{}}
		a, b := New(store, "http://a"), New(store, "http://b")
		beat := func(all ...*Member) {
			t.Helper()
			for _, m := range all {
				if err := m.Beat(ctx); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(Pause)
		}
		if a.Current() {
			t.Error("one that has never reached the database counts on what it holds")
		}
		beat(a, b)
		if h, url, err := a.Hold(ctx, "project", "one"); err != nil || url != "" || h.Replica != a.ID {
			t.Errorf("%+v at %q, %v, want a", h, url, err)
		}
		wantAt := func(want string) {
			t.Helper()
			if h, url, err := b.Hold(ctx, "project", "one"); err != nil || url != want || h.Project != "project" {
				t.Errorf("%+v at %q, %v, want it at %q", h, url, err, want)
			}
		}
		beat(a, b)
		wantAt("http://a")
		for range silence / Pause {
			beat(b)
		}
		wantAt("http://a")
		if a.Current() {
			t.Error("one that has been silent counts on what it holds")
		}
		beat(a, b) // in time
		for range silence/Pause - 1 {
			beat(b)
		}
		wantAt("http://a")
		for range 2 {
			beat(b)
		}
		wantAt("")
		beat(a, b)
		if !a.Current() {
			t.Error("one that is back does not count on what it holds")
		}
		if h, url, err := a.Hold(ctx, "project", "one"); err != nil || url != "http://b" {
			t.Errorf("%+v at %q, %v, want it where it was taken to", h, url, err)
		}
		if err := b.Leave(ctx, b.ID, -1); err != nil {
			t.Fatal(err)
		}
		beat(a)
		if h, url, err := a.Hold(ctx, "project", "one"); err != nil || url != "" || h.Replica != a.ID {
			t.Errorf("%+v at %q, %v, want a, as b has left", h, url, err)
		}
	})
}

// TestHoldOnce: of servers that want a sandbox at the same time, one gets it.
func TestHoldOnce(t *testing.T) {
	ctx, store := t.Context(), &fakeStore{held: map[string]Held{}}
	var all []*Member
	for range 8 {
		all = append(all, New(store, "http://somewhere"))
	}
	for range 2 {
		for _, m := range all {
			if err := m.Beat(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got sync.Map
	var working sync.WaitGroup
	for _, m := range all {
		working.Go(func() {
			h, url, err := m.Hold(ctx, "project", "one")
			if err != nil || (url == "") != (h.Replica == m.ID) {
				t.Errorf("%+v at %q, %v, want its own, or where it is", h, url, err)
			}
			got.Store(h.Replica, true)
		})
	}
	working.Wait()
	n := 0
	got.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d servers hold it, want 1", n)
	}
}
