package pool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
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
				if _, err := p.Acquire(context.Background(), nil); !errors.Is(err, ErrClosed) {
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
				if _, err := p.Acquire(context.Background(), nil); !errors.Is(err, ErrClosed) {
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

// TestRunWithoutSandbox: the result says that nothing ran.
func TestRunWithoutSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeBackend{}, Config{Max: 1, Exhaustion: FailFast})
		acquire(t, p, Key{}, "").Release()
		if res, err := p.Run(t.Context(), "", &llmsandbox.RunOptions{Language: "cobol"}); !errors.Is(err, llmsandbox.ErrUnknownLanguage) ||
			res.Status != llmsandbox.StatusSetupFailed || res.ExitCode != -1 {
			t.Errorf("%v, %v, want ErrUnknownLanguage, StatusSetupFailed, ExitCode = -1", res, err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := p.Run(t.Context(), "", nil); !errors.Is(err, ErrClosed) || res.Status != llmsandbox.StatusSetupFailed || res.Reason != err.Error() {
			t.Errorf("%v, %v, want ErrClosed, StatusSetupFailed", res, err)
		}
	})
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
