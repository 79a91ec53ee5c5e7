package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestAcceptance72: what Stats tell follows Acquire and Release.
func TestAcceptance72(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 3, Min: 2})
		synctest.Wait()
		if s := p.Stats(); s.Creating != 1 || s.Total != 1 {
			t.Errorf("at first: %+v, want one being created", s)
		}
		pass(2 * time.Second)
		if s := p.Stats(); s.Idle != 2 || s.Total != 2 || s.Max != 3 || s.Min != 2 {
			t.Errorf("warm: %+v, want 2 idle", s)
		}
		l := acquire(t, p, Key{}, "")
		if s := p.Stats(); s.Idle != 1 || s.InUse != 1 || s.Hits != 1 || s.Misses != 0 {
			t.Errorf("acquired: %+v, want one in use and a hit", s)
		}
		if l.Uses() != 1 {
			t.Errorf("uses are %d, want 1", l.Uses())
		}
		pass(2 * time.Second)
		l.Release()
		l.Release()
		pass(2 * time.Second)
		if s := p.Stats(); s.InUse != 0 || s.Destroyed != 1 || s.Idle != 3 {
			t.Errorf("released: %+v, want it replaced", s)
		}
	})
}

// TestAcceptance73: each strategy does what it says when all are in use.
func TestAcceptance73(t *testing.T) {
	full := func(t *testing.T, e Exhaustion) (*Pool, *fakeBackend) {
		f := &fakeBackend{takes: time.Second}
		p := newPool(t, f, Config{Max: 1, Exhaustion: e})
		acquire(t, p, Key{}, "")
		return p, f
	}
	t.Run("fail_fast", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := full(t, FailFast)
			start := time.Now()
			_, err := p.Acquire(t.Context(), nil)
			if !errors.Is(err, ErrExhausted) || time.Since(start) != 0 {
				t.Errorf("%v after %v, want ErrExhausted at once", err, time.Since(start))
			}
		})
	})
	t.Run("wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := full(t, Wait)
			start := time.Now()
			_, err := p.Acquire(t.Context(), nil)
			want := "all 1 sandboxes are in use and none became free within 30s: raise Max, or release sooner"
			if !errors.Is(err, ErrExhausted) || err.Error() != want || time.Since(start) != 30*time.Second {
				t.Errorf("%v after %v, want %q after 30s", err, time.Since(start), want)
			}
		})
	})
	t.Run("temporary", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, f := full(t, Temporary)
			l := acquire(t, p, Key{}, "")
			if s := p.Stats(); s.Total != 1 || s.Temporary != 1 {
				t.Errorf("%+v, want one temporary beside one", s)
			}
			if _, err := p.Acquire(t.Context(), nil); !errors.Is(err, ErrExhausted) {
				t.Errorf("a second temporary one: %v, want ErrExhausted", err)
			}
			b := fake(l)
			l.Release()
			synctest.Wait()
			if s := p.Stats(); s.Total != 1 || s.Temporary != 0 || !b.closed.Load() {
				t.Errorf("%+v after release, want it removed", s)
			}
			if opened, _, _ := f.count(); opened != 2 {
				t.Errorf("%d were opened, want 2: a temporary one is not replaced", opened)
			}
		})
	})
}

// TestAcceptance74: a waiter gets what is created in place of a used one.
func TestAcceptance74(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 1, MaxUses: 1, Reuse: ReuseTenant})
		first := acquire(t, p, Key{}, "x")
		time.AfterFunc(5*time.Second, first.Release)
		start := time.Now()
		second := acquire(t, p, Key{}, "x")
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("it waited %v, want 6s: until the release, and for a creation", took)
		}
		if fake(first) == fake(second) {
			t.Errorf("the waiter got a sandbox that was used up: fake(first) = %v, want other than fake(second)", fake(first))
		}
	})
}

// TestAcceptance75: more tasks than sandboxes all get one.
func TestAcceptance75(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{takes: time.Second}
		p := newPool(t, f, Config{Max: 5})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				l, err := p.Acquire(context.Background(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				l.Release()
			})
		}
		all.Wait()
		if _, _, most := f.count(); most != 5 {
			t.Errorf("%d lived at a time, want 5", most)
		}
	})
}

// TestAcceptance76: as many as may be are created at once, and nothing else waits.
func TestAcceptance76(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{})
		start := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := p.Acquire(context.Background(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if s := p.Stats(); s.Creating != 10 || time.Since(start) != 0 {
			t.Errorf("%+v after %v, want 10 being created, and the lock free", s, time.Since(start))
		}
		all.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("10 creations of 1s took %v, want 1s", took)
		}
	})
}

// TestAcceptance77: what is idle too long goes, but for Min.
func TestAcceptance77(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Min: 1})
		var leases []*Lease
		for range 3 {
			leases = append(leases, acquire(t, p, Key{}, ""))
		}
		other := acquire(t, p, Key{Language: "javascript"}, "")
		for _, l := range append(leases, other) {
			l.Release()
		}
		pass(10 * time.Second)
		if s := p.Stats(); s.Idle < 4 {
			t.Fatalf("%+v, want what was released to be replaced", s)
		}
		pass(300 * time.Second)
		if s := p.Stats(); s.Idle != 1 || s.Total != 1 {
			t.Errorf("%+v, want Min of the kept key left", s)
		}
	})
}

// TestAcceptance78: a closed pool says so, and closes once.
func TestAcceptance78(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Max: 1, Min: 1})
		l := acquire(t, p, Key{}, "")
		waited := make(chan error, 1)
		go func() {
			_, err := p.Acquire(context.Background(), nil)
			waited <- err
		}()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- p.Close(context.Background()) }()
		synctest.Wait()
		if err := <-waited; !errors.Is(err, ErrClosed) {
			t.Errorf("who waited got %v, want ErrClosed", err)
		}
		if _, err := p.Acquire(t.Context(), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("acquire: %v, want ErrClosed", err)
		}
		if b := fake(l); b.closed.Load() || len(closed) != 0 {
			t.Errorf("the sandbox in use is closed: %v, Close has returned: %d, want false, 0", b.closed.Load(), len(closed))
		}
		l.Release()
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("close again: %v", err)
		}
	})
}

// TestAcceptance81: every sandbox of a key is opened with the key's libraries.
func TestAcceptance81(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Max: 3, Options: llmsandbox.Options{Libraries: []string{"six", "attrs"}}})
		for range 4 {
			l := acquire(t, p, Key{}, "")
			if got := fake(l).options.Libraries; !slices.Equal(got, []string{"attrs", "six"}) {
				t.Errorf("opened with %q, want [\"attrs\" \"six\"]", got)
			}
			other := acquire(t, p, Key{Libraries: []string{"idna"}}, "")
			if got := fake(other).options.Libraries; !slices.Equal(got, []string{"idna"}) {
				t.Errorf("opened with %q, want [\"idna\"]", got)
			}
			l.Release()
			other.Release()
		}
	})
}
