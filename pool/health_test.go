package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestAcceptance82: a sandbox that has ended is replaced before a caller gets it.
func TestAcceptance82(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 2, Min: 1})
		pass(time.Second)
		f.opened[0].die()
		synctest.Wait()
		if s := p.Stats(); s.Idle != 0 && s.Created < 2 {
			t.Errorf("%+v: its end was not noticed, want Idle = 0 or Created >= 2", s)
		}
		pass(time.Second)
		if s := p.Stats(); s.Idle != 1 || s.Created != 2 {
			t.Errorf("%+v, want it replaced", s)
		}
		l := acquire(t, p, Key{}, "")
		fake(l).die()
		synctest.Wait()
		if s := p.Stats(); s.InUse != 1 {
			t.Errorf("%+v, want what is in use left alone", s)
		}
		l.Release()
	})
}

// TestSilentOnAcquire: one that has stopped to answer is replaced without the caller
// noticing, at the caller's turn.
func TestSilentOnAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 1, Min: 1})
		pass(trusted + time.Second)
		silent := f.opened[0]
		silent.onPing(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		l := acquire(t, p, Key{}, "")
		if fake(l) == silent || !silent.closed.Load() {
			t.Error("the pool gave the sandbox that does not answer, or has not closed it; want another, and that one closed")
		}
		l.Release()
		if s := p.Stats(); s.Hits != 0 || s.Misses != 1 || s.LastError == nil {
			t.Errorf("%+v, want a miss and what was wrong", s)
		}
	})
}

// TestMissThatIsSoonReady: a sandbox that was not there when it was asked for is a miss, however soon it is there.
func TestMissThatIsSoonReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Hooks{Changed: func(Key, State, State) { time.Sleep(time.Second) }}
		p := newPool(t, &fakeBackend{}, Config{Max: 1, NoPrewarm: true, Hooks: []Hooks{slow}})
		acquire(t, p, Key{}, "").Release()
		if s := p.Stats(); s.Hits != 0 || s.Misses != 1 {
			t.Errorf("%+v, want a miss", s)
		}
	})
}

// TestCallerGivesUpDuringAPing: that says nothing about the sandbox.
func TestCallerGivesUpDuringAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 1, Min: 1})
		pass(trusted + time.Second)
		b := f.opened[0]
		b.onPing(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := p.Acquire(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's end", err)
		}
		if s := p.Stats(); s.Idle != 1 || b.closed.Load() {
			t.Errorf("%+v, want it idle again", s)
		}
	})
}

// TestB14ChecksNeverTouchWhatIsInUse: a sandbox that is being checked has no holder, and one
// in use is not checked.
func TestB14ChecksNeverTouchWhatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 1, Min: 1, HealthInterval: time.Minute, IdleTimeout: Unlimited, AcquireTimeout: Unlimited})
		pass(time.Second)
		b := f.opened[0]
		answer := make(chan error)
		b.onPing(func(context.Context) error { return <-answer })
		pass(time.Minute)
		if s := p.Stats(); s.Checking != 1 || s.Idle != 0 {
			t.Fatalf("%+v, want a check", s)
		}
		got := make(chan *Lease)
		go func() {
			l, _ := p.Acquire(context.Background(), nil)
			got <- l
		}()
		synctest.Wait()
		if s := p.Stats(); s.Waiting != 1 {
			t.Errorf("%+v, want the caller to wait for the check", s)
		}
		answer <- nil
		l := <-got
		if fake(l) != b {
			t.Errorf("a healthy sandbox was not given: fake(l) = %v, want %v", fake(l), b)
		}
		b.onPing(nil)
		pings := b.pings.Load()
		pass(time.Hour)
		if n := b.pings.Load(); n != pings || b.closed.Load() {
			t.Errorf("%d checks of what is in use, want n = %v, b.closed.Load() = false", n-pings, pings)
		}
		l.Release()
	})
}

func TestUnhealthyWhenChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 2, Min: 1, IdleTimeout: time.Hour})
		pass(time.Second)
		sick := errors.New("sick")
		f.opened[0].onPing(func(context.Context) error { return sick })
		pass(2 * time.Minute)
		if s := p.Stats(); !f.opened[0].closed.Load() || s.Idle != 1 || !errors.Is(s.LastError, sick) {
			t.Errorf("%+v, want it replaced, and why", s)
		}
	})
}

// TestLifetime: what is idle and too old is replaced.
func TestLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 1, Min: 1})
		pass(time.Hour + time.Minute)
		if s := p.Stats(); s.Idle != 1 || s.Created != 2 || !f.opened[0].closed.Load() {
			t.Errorf("%+v, want one replaced", s)
		}
	})
}

// TestB15FailuresAreNotTheEnd: a failed opening is returned to the waiter, frees its slot,
// and is tried again in the background, ever more seldom.
func TestB15FailuresAreNotTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("engine is down")
		var tries atomic.Int64
		f := &fakeBackend{failing: func(llmsandbox.Options) error { tries.Add(1); return broken }}
		p := newPool(t, f, Config{Max: 1, Min: 1})
		pass(10 * time.Second)
		if s := p.Stats(); s.CreateFailures != 4 || !errors.Is(s.LastError, broken) || s.Total != 0 {
			t.Errorf("%+v, want 4 attempts in 10s: after 0, 1, 3 and 7", s)
		}
		for range 3 {
			if _, err := p.Acquire(t.Context(), nil); !errors.Is(err, broken) {
				t.Errorf("%v, want why there is none", err)
			}
		}
		if s := p.Stats(); s.Waiting != 0 || s.Failures != 3 {
			t.Errorf("%+v, want no waiter", s)
		}
		before := tries.Load()
		pass(time.Hour)
		if n := tries.Load() - before; n < 59 || n > 62 {
			t.Errorf("%d attempts in an hour, want one a minute", n)
		}
		f.fail(nil)
		pass(2 * time.Minute)
		if s := p.Stats(); s.Idle != 1 {
			t.Errorf("%+v, want it to be filled again", s)
		}
	})
}

// TestNextInLineGoesOn: one failure is one waiter's.
func TestNextInLineGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("once")
		f := &fakeBackend{takes: time.Second}
		f.failing = func(llmsandbox.Options) error {
			f.fail(nil)
			return broken
		}
		p := newPool(t, f, Config{Max: 1, NoPrewarm: true})
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := p.Acquire(context.Background(), nil)
				results <- err
			}()
			synctest.Wait()
		}
		if err := <-results; !errors.Is(err, broken) {
			t.Errorf("the first: %v, want the failure", err)
		}
		if err := <-results; err != nil {
			t.Errorf("the second: %v", err)
		}
	})
}

// TestRefillIsLimited: the background opens few at a time, and not in a burst.
func TestRefillIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{takes: time.Second}, Config{Min: 10, RefillInterval: 100 * time.Millisecond})
		for range 100 {
			pass(50 * time.Millisecond)
			if s := p.Stats(); s.Creating > refillParallel {
				t.Fatalf("%+v: too many at a time, want Creating <= %v", s, refillParallel)
			}
		}
		pass(time.Second)
		if s := p.Stats(); s.Idle != 10 {
			t.Errorf("%+v, want 10", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		newPool(t, f, Config{Min: 10, RefillInterval: time.Second})
		pass(4500 * time.Millisecond)
		if opened, _, _ := f.count(); opened != 5 {
			t.Errorf("%d opened in 4.5s, want 5", opened)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Min: 2, NoPrewarm: true})
		pass(time.Second)
		acquire(t, p, Key{}, "").Release()
		pass(time.Second)
		if opened, _, _ := f.count(); opened != 1 {
			t.Errorf("%d opened, want only what was asked for", opened)
		}
	})
}
