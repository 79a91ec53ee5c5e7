package pool

import (
	"errors"
	"fmt"
	"time"
)

// Errors that a pool's methods wrap.
var (
	// ErrExhausted: no sandbox became free; see ExhaustedError.
	ErrExhausted = errors.New("pool is exhausted")
	// ErrClosed: the pool was closed.
	ErrClosed = errors.New("pool is closed")
)

// An ExhaustedError says why an Acquire got nothing.
type ExhaustedError struct {
	Max      int           // sandboxes that the pool may hold
	InUse    int           // of these, when the Acquire gave up
	Creating int           // of these, when the Acquire gave up
	Waited   time.Duration // 0: it did not wait
}

func (e *ExhaustedError) Error() string {
	switch {
	case e.Waited == 0 && e.InUse == e.Max:
		return fmt.Sprintf("all %d sandboxes are in use: raise Max, release sooner, or let Acquire wait", e.Max)
	case e.Waited == 0:
		return fmt.Sprintf("none of %d sandboxes is free (%d are in use): raise Max, release sooner, or let Acquire wait", e.Max, e.InUse)
	case e.InUse == e.Max:
		return fmt.Sprintf("all %d sandboxes are in use and none became free within %v: raise Max, or release sooner", e.Max, e.Waited)
	default:
		return fmt.Sprintf("no sandbox became ready within %v (%d of at most %d are in use, %d are being created): raise AcquireTimeout if creating one takes so long, else Max", e.Waited, e.InUse, e.Max, e.Creating)
	}
}

func (e *ExhaustedError) Unwrap() error { return ErrExhausted }
