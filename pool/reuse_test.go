package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestB17TenantsNeverMeet: a sandbox of one tenant is given to no other.
func TestB17TenantsNeverMeet(t *testing.T) {
	for name, c := range map[string]struct {
		reuse         Reuse
		first, second string
		same          bool
	}{
		"the same tenant":     {ReuseTenant, "x", "x", true},
		"another tenant":      {ReuseTenant, "x", "y", false},
		"no tenant after one": {ReuseTenant, "x", "", false},
		"no tenant twice":     {ReuseTenant, "", "", false},
		"a tenant after none": {ReuseTenant, "", "x", false},
		"by default":          {ReuseNever, "x", "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, &fakeBackend{takes: time.Second}, Config{Max: 1, Reuse: c.reuse})
				first := acquire(t, p, Key{}, c.first)
				first.Release()
				pass(10 * time.Second)
				second := acquire(t, p, Key{}, c.second)
				if got := fake(first) == fake(second); got != c.same {
					t.Errorf("given again: %t, want %t", got, c.same)
				}
				uses, resets := 1, int64(0)
				if c.same {
					uses, resets = 2, 1
				}
				if second.Uses() != uses || fake(second).resets.Load() != resets {
					t.Errorf("%d uses and %d resets, want %d and %d", second.Uses(), fake(second).resets.Load(), uses, resets)
				}
				second.Release()
			})
		})
	}
}

// TestAbuse99: what could not be reset, or not in time, is removed.
func TestAbuse99(t *testing.T) {
	for name, reset := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return errors.New("a file is left") },
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, &fakeBackend{}, Config{Max: 1, Reuse: ReuseTenant})
				l := acquire(t, p, Key{}, "x")
				b := fake(l)
				b.reset = reset
				l.Release()
				next := acquire(t, p, Key{}, "x")
				if fake(next) == b || !b.closed.Load() || p.Stats().LastError == nil {
					t.Errorf("%+v: a sandbox was given again whose reset failed, want fake(next) != %v, b.closed.Load() = true, LastError not nil", p.Stats(), b)
				}
				next.Release()
			})
		})
	}
}

// TestUsedUp: a tenant gets the same sandbox MaxUses times.
func TestUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		p := newPool(t, f, Config{Max: 1, MaxUses: 3, Reuse: ReuseTenant})
		for i := range 9 {
			l := acquire(t, p, Key{}, "x")
			if want := i%3 + 1; l.Uses() != want {
				t.Errorf("use %d of it, want %d", l.Uses(), want)
			}
			l.Release()
			pass(time.Second)
		}
	})
}

// TestReusedWhileSomebodyElseWaits: who came first gets the place, not who it would fit.
func TestReusedWhileSomebodyElseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Max: 1, Reuse: ReuseTenant})
		l := acquire(t, p, Key{}, "x")
		order := make(chan string, 2)
		for _, tenant := range []string{"y", "x"} {
			go func() {
				l, err := p.Acquire(context.Background(), &AcquireOptions{Tenant: tenant})
				if err != nil {
					t.Error(err)
					return
				}
				order <- tenant
				l.Release()
			}()
			synctest.Wait()
		}
		l.Release()
		if first := <-order; first != "y" {
			t.Errorf("%s was served first, want y", first)
		}
		<-order
	})
}
