package mcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, time.Minute)
		leave, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := g.enter(t.Context()); !errors.Is(err, errBusy) || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		got := make(chan error, cap(g.waiting))
		for range cap(g.waiting) {
			go func() {
				leave, err := g.enter(t.Context())
				if err == nil {
					leave()
				}
				got <- err
			}()
		}
		synctest.Wait()
		begun = time.Now()
		if _, err := g.enter(t.Context()); !errors.Is(err, errBusy) || time.Since(begun) != 0 {
			t.Errorf("the queue is full: %v after %v", err, time.Since(begun))
		}
		leave()
		for range cap(g.waiting) {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
	})
}
