package layers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestFlights(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err    error // of the first
		gaveUp bool  // its context has ended by then
		calls  int32
		want   error // of those who wait
	}{
		"one does it for all":                    {nil, false, 1, nil},
		"one fails for all":                      {broken, false, 1, broken},
		"one takes too long for all":             {context.DeadlineExceeded, false, 1, context.DeadlineExceeded},
		"one gives up, others work":              {context.Canceled, true, 2, nil},
		"one gives up with a cause, others work": {context.DeadlineExceeded, true, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f flights
				var calls atomic.Int32
				first := make(chan struct{})
				work := func() (string, error) {
					if calls.Add(1) == 1 {
						<-first
						return "", c.err
					}
					return "again", nil
				}
				var wg sync.WaitGroup
				patience, giveUp := context.WithCancelCause(t.Context())
				defer giveUp(nil)
				wg.Go(func() {
					if _, err := f.do(patience, t, "k", work); !errors.Is(err, c.err) {
						t.Errorf("first: got %v, want %v", err, c.err)
					}
				})
				synctest.Wait()
				wg.Go(func() {
					if _, err := f.do(t.Context(), t, "k", work); !errors.Is(err, c.want) {
						t.Errorf("second: got %v, want %v", err, c.want)
					}
				})
				wg.Go(func() { // another key does not wait
					if v, err := f.do(t.Context(), t, "other", func() (string, error) { return "own", nil }); v != "own" || err != nil {
						t.Errorf("other key: %q, %v, want v = \"own\", no error", v, err)
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				wg.Go(func() { // nor does who gives up
					if _, err := f.do(ctx, t, "k", work); !errors.Is(err, context.Canceled) && ctx.Err() == nil {
						t.Errorf("given up: %v, want context.Canceled or an error", err)
					}
				})
				synctest.Wait()
				cancel()
				synctest.Wait()
				if c.gaveUp {
					giveUp(c.err)
				}
				close(first)
				wg.Wait()
				if n := calls.Load(); n != c.calls {
					t.Errorf("%d calls, want %d", n, c.calls)
				}
				if len(f.now) != 0 {
					t.Errorf("left %v, want none", f.now)
				}
			})
		})
	}
}

// TestFlightsOfAnyBackend: a caller's own need not be one that Go can compare.
func TestFlightsOfAnyBackend(t *testing.T) {
	var f flights
	wrapped := struct {
		backend.Backend
		tags []string
	}{tags: []string{"a"}}
	if v, err := f.do(t.Context(), wrapped, "k", func() (string, error) { return "own", nil }); v != "own" || err != nil {
		t.Errorf("got %q, %v, want own", v, err)
	}
}
