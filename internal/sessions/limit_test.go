package sessions

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(1, time.Minute)
		leave, err := l.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := l.Enter(t.Context()); !errors.Is(err, ErrBusy) || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v, want ErrBusy, time.Since(begun) = 1m", err, time.Since(begun))
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Enter(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
		got := make(chan error, cap(l.waiting))
		for range cap(l.waiting) {
			go func() {
				leave, err := l.Enter(t.Context())
				if err == nil {
					leave()
				}
				got <- err
			}()
		}
		synctest.Wait()
		begun = time.Now()
		if _, err := l.Enter(t.Context()); !errors.Is(err, ErrBusy) || time.Since(begun) != 0 {
			t.Errorf("the queue is full: %v after %v, want ErrBusy, time.Since(begun) = 0", err, time.Since(begun))
		}
		leave()
		for range cap(l.waiting) {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
	})
}
