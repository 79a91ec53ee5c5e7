package pool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestB16CloseWaits: for what is in use, until its context ends; then it says what it was.
func TestB16CloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Max: 3})
		kept, other := acquire(t, p, Key{}, ""), acquire(t, p, Key{}, "")
		time.AfterFunc(time.Second, other.Release)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start := time.Now()
		err := p.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fake(kept).id) || strings.Contains(err.Error(), fake(other).id) {
			t.Errorf("%v, want it to name %s alone", err, fake(kept).id)
		}
		if took := time.Since(start); took != time.Minute || !fake(kept).closed.Load() {
			t.Errorf("removed after %v, want a minute", took)
		}
		kept.Release()
		if again := p.Close(context.Background()); again == nil || again.Error() != err.Error() {
			t.Errorf("again: %v, want %v", again, err)
		}
		if s := p.Stats(); !s.Closed || s.Total != 0 {
			t.Errorf("%+v, want nothing", s)
		}
	})
}

// TestCloseInTheMiddle: of creations, temporary ones, resets and checks.
func TestCloseInTheMiddle(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *Pool, *fakeBackend){
		"creating": func(t *testing.T, p *Pool, f *fakeBackend) {
			f.takes = time.Hour
			go func() {
				if _, err := p.Acquire(context.Background(), Key{}, ""); !errors.Is(err, ErrClosed) {
					t.Errorf("who waits: %v, want ErrClosed", err)
				}
			}()
		},
		"temporary": func(t *testing.T, p *Pool, f *fakeBackend) {
			for range p.cfg.Max {
				l := acquire(t, p, Key{}, "")
				time.AfterFunc(time.Minute, l.Release)
			}
			f.takes = time.Hour
			go func() {
				if _, err := p.Acquire(context.Background(), Key{}, ""); !errors.Is(err, ErrClosed) {
					t.Errorf("who waits: %v, want ErrClosed", err)
				}
			}()
		},
		"resetting": func(t *testing.T, p *Pool, f *fakeBackend) {
			l := acquire(t, p, Key{}, "x")
			fake(l).reset = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
			l.Release()
		},
		"checking": func(t *testing.T, p *Pool, f *fakeBackend) {
			l := acquire(t, p, Key{}, "x")
			fake(l).onPing(func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			l.Release()
			pass(61 * time.Second)
			if s := p.Stats(); s.Checking != 1 {
				t.Errorf("%+v, want a check", s)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeBackend{}
				p := newPool(t, f, Config{Max: 2, Exhaustion: Temporary, Reuse: ReuseTenant, AcquireTimeout: Unlimited})
				begin(t, p, f)
				synctest.Wait()
				if err := p.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if _, alive, _ := f.count(); alive != 0 {
					t.Errorf("%d are left, want 0", alive)
				}
			})
		})
	}
}

// TestRemovalFails: its slot is free nevertheless, and the error is reported.
func TestRemovalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Max: 1})
		l := acquire(t, p, Key{}, "")
		fake(l).closed.Store(true) // as if another caller had
		fake(l).backend.alive--
		l.Release()
		acquire(t, p, Key{}, "").Release()
		if s := p.Stats(); s.LastError == nil || !strings.Contains(s.LastError.Error(), fake(l).id) {
			t.Errorf("%v, want which could not be removed", s.LastError)
		}
	})
}
