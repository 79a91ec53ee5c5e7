package ctxend

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A late context's deadline comes before its end.
type late struct {
	context.Context
	deadline time.Time
}

func (c late) Deadline() (time.Time, bool) { return c.deadline, true }

func TestEnded(t *testing.T) {
	why := errors.New("enough")
	ended, end := context.WithCancelCause(t.Context())
	end(why)
	soon, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer stop()
	far, stopFar := context.WithTimeout(t.Context(), time.Hour)
	defer stopFar()
	for name, c := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"without a deadline":      {t.Context(), false},
		"with time left":          {far, false},
		"that has ended":          {ended, true},
		"whose deadline is over":  {late{soon, time.Now()}, true},
		"ended before a deadline": {late{ended, time.Now().Add(time.Hour)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Ended(c.ctx); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if got := context.Cause(c.ctx); c.want != errors.Is(got, why) {
				t.Errorf("because of %v, want c.want = errors.Is(got, why)", got)
			}
		})
	}
}

func TestClosed(t *testing.T) {
	c := make(chan struct{})
	if Closed(c) {
		t.Error("an open channel is said to be closed")
	}
	close(c)
	if !Closed(c) {
		t.Error("a closed channel is said to be open")
	}
}
