package engine

import (
	"context"
	"errors"
	"testing"
)

func TestAttempts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("broken")
	var a attempts
	none := func() error { t.Error("fill was called"); return nil }

	filling, release, filled := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := a.try(ctx, "slow", func() error { close(filling); <-release; return context.Cause(ctx) })
		filled <- err
	}()
	<-filling
	if failed, err := a.try(t.Context(), "other", func() error { return nil }); failed || err != nil {
		t.Errorf("another key during a fill: got %v, %v, want false, nil", failed, err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(broken)
	if failed, err := a.try(ended, "slow", none); failed || !errors.Is(err, broken) {
		t.Errorf("a caller whose context ends while it waits: got %v, %v, want false, %v", failed, err, broken)
	}
	cancel()
	close(release)
	if err := <-filled; !errors.Is(err, context.Canceled) {
		t.Errorf("a fill whose context ends: got %v, want %v", err, context.Canceled)
	}

	if failed, err := a.try(t.Context(), "slow", func() error { return broken }); failed || !errors.Is(err, broken) {
		t.Errorf("after a fill that was cancelled: got %v, %v, want false, %v", failed, err, broken)
	}
	if failed, err := a.try(t.Context(), "slow", none); !failed || err != nil {
		t.Errorf("after a fill that failed: got %v, %v, want true, nil", failed, err)
	}
}
