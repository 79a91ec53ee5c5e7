package replicas

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeStore is one in memory.
type fakeStore struct {
	mu      sync.Mutex
	servers map[string]sighting
	held    map[string]string // the holder of each sandbox
}

func newFakeStore() *fakeStore {
	return &fakeStore{servers: map[string]sighting{}, held: map[string]string{}}
}

func (f *fakeStore) Beat(_ context.Context, id, url string, each func(string, string, int64)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[id] = sighting{url: url, beats: f.servers[id].beats + 1}
	for id, s := range f.servers {
		each(id, s.url, s.beats)
	}
	return nil
}

func (f *fakeStore) Leave(_ context.Context, id string, beats int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if beats < 0 || f.servers[id].beats <= beats {
		delete(f.servers, id)
	}
	return nil
}

func (f *fakeStore) Holder(_ context.Context, sandbox string) (holder, network string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[sandbox], "", nil
}

func (f *fakeStore) Take(_ context.Context, sandbox, _, _, holder, from string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[sandbox] != from {
		return false, nil
	}
	f.held[sandbox] = holder
	return true, nil
}

func (*fakeStore) Held(context.Context, string, func(sandbox, project, holder, network string)) error {
	return nil
}
func (*fakeStore) KeepNetwork(context.Context, string, string) error { return nil }
func (*fakeStore) Drop(context.Context, string, string) error        { return nil }

// TestSilence: a server that is silent for too long holds nothing any more, and one that is silent for a moment does.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newFakeStore()
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
		if _, url, err := a.Hold(ctx, "project", "one"); err != nil || url != "" {
			t.Errorf("at %q, %v, want a", url, err)
		}
		wantAt := func(want string) {
			t.Helper()
			if _, url, err := b.Hold(ctx, "project", "one"); err != nil || url != want {
				t.Errorf("at %q, %v, want it at %q", url, err, want)
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
		if _, url, err := a.Hold(ctx, "project", "one"); err != nil || url != "http://b" {
			t.Errorf("at %q, %v, want it where it was taken to", url, err)
		}
		_, lives := a.At(b.ID)
		if lives.Err() != nil {
			t.Error("one that beats is dead")
		}
		if err := b.Leave(ctx); err != nil {
			t.Fatal(err)
		}
		beat(a)
		if _, url, err := a.Hold(ctx, "project", "one"); err != nil || url != "" || lives.Err() == nil {
			t.Errorf("at %q, %v, %v, want a, as b has left", url, err, lives.Err())
		}
	})
}

// TestHoldOnce: of servers that want a sandbox at the same time, one gets it.
func TestHoldOnce(t *testing.T) {
	ctx, store := t.Context(), newFakeStore()
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
	var got atomic.Int64
	var working sync.WaitGroup
	for _, m := range all {
		working.Go(func() {
			_, url, err := m.Hold(ctx, "project", "one")
			if err != nil {
				t.Error(err)
			}
			if url == "" {
				got.Add(1)
			}
		})
	}
	working.Wait()
	if got.Load() != 1 {
		t.Errorf("%d servers hold it, want 1", got.Load())
	}
}
