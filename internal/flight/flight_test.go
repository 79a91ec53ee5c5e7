package flight

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// One does the work for all who want the same thing, whatever comes of it.
func TestOneForAll(t *testing.T) {
	for name, want := range map[string]error{
		"done": nil, "failed": errors.New("broken"), "took too long": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g Group[string, string]
				end := make(chan struct{})
				calls, shared := 0, 0
				var mu sync.Mutex
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						v, joined, err := g.Do(t.Context(), "k", nil, func(context.Context, func(backend.Progress)) (string, error) {
							calls++
							<-end
							return "it", want
						})
						if v != "it" || !errors.Is(err, want) {
							t.Errorf("got %q, %v, want \"it\", %v", v, err, want)
						}
						mu.Lock()
						defer mu.Unlock()
						if joined {
							shared++
						}
					})
				}
				synctest.Wait()
				// Another key does not wait.
				if v, joined, err := g.Do(t.Context(), "other", nil, func(context.Context, func(backend.Progress)) (string, error) { return "own", nil }); v != "own" || joined || err != nil {
					t.Errorf("other key: %q, %v, %v, want \"own\", false, no error", v, joined, err)
				}
				close(end)
				wg.Wait()
				if calls != 1 || shared != 2 {
					t.Errorf("%d calls, %d shared, want 1 and 2", calls, shared)
				}
				if len(g.work) != 0 {
					t.Errorf("left %v, want none", g.work)
				}
			})
		})
	}
}

// The one who began gives up; the work goes on for the other, who gets its reports too.
func TestFlightOutlivesItsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string, string]
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan struct{})
		first := make(chan error)
		go func() {
			_, _, err := g.Do(ctx, "k", nil, func(ctx context.Context, report func(backend.Progress)) (string, error) {
				<-end
				report(backend.Progress{Current: 7})
				return "x", ctx.Err()
			})
			first <- err
		}()
		synctest.Wait()
		seen := make(chan backend.Progress, 1)
		second := make(chan string)
		go func() {
			v, joined, err := g.Do(t.Context(), "k", func(p backend.Progress) { seen <- p }, nil)
			if !joined || err != nil {
				t.Errorf("the second gets %v, %v, want joined = true, no error", joined, err)
			}
			second <- v
		}()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first gets %v, want context.Canceled", err)
		}
		close(end)
		if v := <-second; v != "x" {
			t.Errorf("the second gets %q, want \"x\"", v)
		}
		if p := <-seen; p.Current != 7 {
			t.Errorf("the second sees %+v, want Current = 7", p)
		}
	})
}

// When no caller waits any more the work is cancelled, and has ended when the last returns.
func TestFlightEndsWithItsLast(t *testing.T) {
	var g Group[string, string]
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	_, _, err := g.Do(ctx, "k", nil, func(ctx context.Context, _ func(backend.Progress)) (string, error) {
		cancel()
		<-ctx.Done()
		ended = true
		return "", ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !ended {
		t.Errorf("got %v, ended %v, want context.Canceled, ended = true", err, ended)
	}
	v, _, err := g.Do(t.Context(), "k", nil, func(context.Context, func(backend.Progress)) (string, error) { return "new", nil })
	if err != nil || v != "new" {
		t.Errorf("afterwards: %q %v, want \"new\", no error", v, err)
	}
}
