package image

import (
	"context"
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The one who began gives up; the work goes on for the other, who gets its reports too.
func TestFlightOutlivesItsFirst(t *testing.T) {
	var f flights
	ctx, cancel := context.WithCancel(t.Context())
	began, end := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := f.do(ctx, "k", nil, func(ctx context.Context, report func(backend.Progress)) (Image, error) {
			close(began)
			<-end
			report(backend.Progress{Current: 7})
			return Image{ID: "x", Made: true}, ctx.Err()
		})
		first <- err
	}()
	<-began
	seen := make(chan backend.Progress, 1)
	second := make(chan Image)
	go func() {
		img, err := f.do(t.Context(), "k", func(p backend.Progress) { seen <- p }, nil)
		if err != nil {
			t.Error(err)
		}
		second <- img
	}()
	f.waitFor("k", 2)
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first gets %v, want context.Canceled", err)
	}
	close(end)
	if img := <-second; img.ID != "x" || img.Made {
		t.Errorf("the second gets %+v, want ID = \"x\", Made false", img)
	}
	if p := <-seen; p.Current != 7 {
		t.Errorf("the second sees %+v, want Current = 7", p)
	}
}

// waitFor spins until so many wait: there is no event for it.
func (f *flights) waitFor(key string, n int) {
	for {
		f.mu.Lock()
		w := f.work[key]
		ok := w != nil && w.waiting == n
		if ok {
			w.mu.Lock()
			ok = w.reporter > 0
			w.mu.Unlock()
		}
		f.mu.Unlock()
		if ok {
			return
		}
	}
}

// When no caller waits any more the work is cancelled, and has ended when the last returns.
func TestFlightEndsWithItsLast(t *testing.T) {
	var f flights
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	_, err := f.do(ctx, "k", nil, func(ctx context.Context, _ func(backend.Progress)) (Image, error) {
		cancel()
		<-ctx.Done()
		ended = true
		return Image{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !ended {
		t.Errorf("got %v, ended %v, want context.Canceled, ended = true", err, ended)
	}
	img, err := f.do(t.Context(), "k", nil, func(context.Context, func(backend.Progress)) (Image, error) { return Image{ID: "new"}, nil })
	if err != nil || img.ID != "new" {
		t.Errorf("afterwards: %+v %v, want no error, ID = \"new\"", img, err)
	}
}
