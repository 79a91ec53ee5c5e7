package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestB11WaiterGetsThePlaceOfARemovedOne: a sandbox that is too old at its release makes
// way for one that a waiter gets.
func TestB11WaiterGetsThePlaceOfARemovedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 1, Lifetime: time.Minute, AcquireTimeout: time.Hour})
		first := acquire(t, p, Key{}, "")
		time.AfterFunc(2*time.Minute, first.Release)
		second := acquire(t, p, Key{}, "")
		if fake(first) == fake(second) || !fake(first).closed.Load() {
			t.Error("the pool gave a sandbox that is too old, or has not closed it; want another, and that one closed")
		}
	})
}

// TestB12NothingWaitsForACreation: Release and Stats return while sandboxes are opened and
// removed.
func TestB12NothingWaitsForACreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Minute}, Config{Max: 2, AcquireTimeout: time.Hour})
		l := acquire(t, p, Key{}, "")
		fake(l).closing = func() { time.Sleep(time.Minute) }
		go func() {
			if _, err := p.Acquire(context.Background(), nil); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		start := time.Now()
		l.Release()
		s := p.Stats()
		if took := time.Since(start); took != 0 || s.Creating != 1 || s.Removing != 1 {
			t.Errorf("%+v after %v, want one being created and one removed, at once", s, took)
		}
		pass(5 * time.Minute)
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 2, AcquireTimeout: time.Hour})
		held := []*Lease{acquire(t, p, Key{}, ""), acquire(t, p, Key{}, "")}
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range 8 {
			key := Key{Language: []string{"python", "bash"}[i%2]}
			all.Go(func() {
				l, err := p.Acquire(context.Background(), &AcquireOptions{Key: key})
				if err != nil {
					t.Error(err)
					return
				}
				if got := fake(l).options.Language; got != key.Language {
					t.Errorf("a %s sandbox for %s", got, key.Language)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Minute)
				l.Release()
			})
			synctest.Wait()
		}
		held[0].Release()
		pass(time.Second)
		held[1].Release()
		all.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("served in the order %v, want slices.IsSorted(order) = true", order)
		}
	})
}

// TestOtherKeysMakeRoom: an idle sandbox is removed for a caller of another key, the
// longest idle first.
func TestOtherKeysMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 2, Min: 1, Keys: []Key{{}, {Language: "bash"}}})
		pass(time.Second)
		python := acquire(t, p, Key{}, "")
		ruby := acquire(t, p, Key{Language: "ruby"}, "")
		if _, _, most := f.count(); most != 2 {
			t.Errorf("%d at a time, want 2", most)
		}
		if got := fake(ruby).options.Language; got != "ruby" {
			t.Errorf("got %s, want \"ruby\"", got)
		}
		if s := p.Stats(); s.Destroyed != 1 || s.InUse != 2 || s.Total != 2 {
			t.Errorf("%+v, want the idle one evicted", s)
		}
		python.Release()
		ruby.Release()
	})
}

// TestPlaceThatBecomesFree: is waited for rather than made by an eviction.
func TestPlaceThatBecomesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 2, Min: 1, NoPrewarm: true})
		used, idle := acquire(t, p, Key{}, ""), acquire(t, p, Key{}, "")
		p.unused(idle.member)
		fake(used).closing = func() { time.Sleep(time.Second) }
		used.Release()
		acquire(t, p, Key{Language: "bash"}, "").Release()
		if fake(idle).closed.Load() {
			t.Error("an idle sandbox was evicted, though a place was about to be free: fake(idle).closed.Load() = true, want false")
		}
	})
}

// TestKeepsItsPlaceInLine: who was given a dead sandbox is still the next.
func TestKeepsItsPlaceInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{takes: time.Second}
		p := newPool(t, f, Config{Max: 1, Min: 1, AcquireTimeout: time.Hour})
		pass(trusted + 2*time.Second)
		answer := make(chan error)
		f.opened[0].onPing(func(context.Context) error { return <-answer })
		order := make(chan int, 2)
		for i := range 2 {
			go func() {
				l, err := p.Acquire(context.Background(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				l.Release()
			}()
			synctest.Wait()
		}
		answer <- errors.New("silent")
		if first := <-order; first != 0 {
			t.Errorf("the second was served first: first = %v, want 0", first)
		}
		<-order
	})
}

// TestCancelledWaiter: who gives up gets nothing, and takes nothing away.
func TestCancelledWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 1})
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		failed := make(chan error, 1)
		go func() {
			_, err := p.Acquire(ctx, nil)
			failed <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("%v, want why it was cancelled", err)
		}
		if s := p.Stats(); s.Waiting != 0 || s.Creating != 1 {
			t.Errorf("%+v, want no waiter", s)
		}
		start := time.Now()
		acquire(t, p, Key{}, "")
		if took := time.Since(start); took != time.Second {
			t.Errorf("waited %v, want 1s for what the first one left", took)
		}
		if _, err := p.Acquire(ctx, nil); !errors.Is(err, why) {
			t.Errorf("%v, want why it was cancelled", err)
		}
	})
}

// TestCancelledAsItIsServed: an answer that its caller does not take is given to another.
func TestCancelledAsItIsServed(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 1})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			l, err := p.Acquire(ctx, &AcquireOptions{Tenant: "x"})
			if err == nil {
				l.Release()
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("round %d: %v, want context.DeadlineExceeded", i, err)
			}
			acquire(t, p, Key{}, "y").Release()
		})
	}
}

func TestTimeoutWhileBeingCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Minute}, Config{Max: 2, AcquireTimeout: time.Second})
		_, err := p.Acquire(t.Context(), nil)
		want := "no sandbox became ready within 1s (0 of at most 2 are in use, 1 are being created): raise AcquireTimeout if creating one takes so long, else Max"
		if !errors.Is(err, ErrExhausted) || fmt.Sprint(err) != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	})
}

// TestB13TemporaryOnesDoNotCount: they are not the pool's, whatever becomes of them.
func TestB13TemporaryOnesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{takes: time.Second}
		p := newPool(t, f, Config{Max: 1, Exhaustion: Temporary, Reuse: ReuseTenant, AcquireTimeout: time.Minute})
		acquire(t, p, Key{}, "x")
		extra := acquire(t, p, Key{}, "x")
		b := fake(extra)
		extra.Release()
		synctest.Wait()
		if s := p.Stats(); s.Total != 1 || s.Temporary != 0 || s.Idle != 0 || !b.closed.Load() || b.resets.Load() != 0 {
			t.Errorf("%+v, want the temporary one removed, without a reset", s)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, err := p.Acquire(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's end", err)
		}
		pass(time.Minute)
		if s := p.Stats(); s.Temporary != 0 {
			t.Errorf("%+v, want what no caller waits for any more removed", s)
		}
		f.fail(func(llmsandbox.Options) error { return errors.New("no more") })
		if _, err := p.Acquire(t.Context(), nil); err == nil || p.Stats().Temporary != 0 {
			t.Errorf("%v, %+v: want the failure, and nothing left", err, p.Stats())
		}
	})
}
