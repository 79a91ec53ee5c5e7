package ctxlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New()
		if err := m.Lock(t.Context()); err != nil {
			t.Fatalf("a free one: got %v, want nil", err)
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		gaveUp, took := make(chan error, 1), make(chan error, 1)
		go func() { gaveUp <- m.Lock(ctx) }()
		go func() { took <- m.Lock(t.Context()) }()
		synctest.Wait()
		cancel(why)
		if err := <-gaveUp; err != why {
			t.Errorf("given up: got %v, want %v", err, why)
		}
		synctest.Wait()
		if len(took) != 0 {
			t.Errorf("taken twice: got %v, want to wait", <-took)
		}
		m.Unlock()
		if err := <-took; err != nil {
			t.Errorf("after it was given back: got %v, want nil", err)
		}
	})
}
