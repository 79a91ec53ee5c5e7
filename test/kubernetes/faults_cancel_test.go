//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// Opening that is given up at any moment leaves nothing.
func TestFaultsOpenCancelled(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	o := p.sandbox(t, b)
	start := time.Now()
	testfaults.Close(t, p.open(t, b))
	once := time.Since(start)
	rng := rand.New(rand.NewPCG(6, 0))
	gaveUp := 0
	for range 20 {
		after := time.Duration(rng.Int64N(int64(once)))
		ctx, cancel := context.WithTimeout(testfaults.Context(t), after)
		sb, err := llmsandbox.Open(ctx, &o)
		cancel()
		if err == nil {
			testfaults.Close(t, sb)
			continue
		}
		gaveUp++
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up after %v: %v, want the context's own error", after, err)
		}
		list, err := b.List(testfaults.Context(t))
		if err != nil || len(list) > 0 {
			t.Errorf("given up after %v: the list has %+v, %v, want no error, no list", after, list, err)
		}
	}
	if gaveUp < 10 {
		t.Errorf("%d of 20 were given up: that shows little, want at least 10", gaveUp)
	}
	p.wantNothing(t, b)
}
