package pool

import (
	"context"
	"errors"
	"time"
)

// Hooks are called with what happens in a pool; each may be nil. They are called from many
// goroutines, with nothing locked, and must not block.
type Hooks struct {
	// Acquired reports the end of an Acquire. ctx is the caller's.
	Acquired func(ctx context.Context, a Acquisition)
	// Created reports the end of the opening of a sandbox.
	Created func(Creation)
	// Destroyed reports the end of a sandbox's removal.
	Destroyed func(Destruction)
	// Changed is called when a sandbox is in another state. Changes of different sandboxes
	// may be called in another order than things happened.
	Changed func(key Key, from, to State)
}

// An Acquisition is an Acquire that has ended.
type Acquisition struct {
	Key  Key
	Wait time.Duration
	// Hit reports whether a warm sandbox was there.
	Hit bool
	Err error // nil: the caller has a sandbox
}

// Outcome is one of "hit", "miss", "exhausted", "cancelled" and "failed".
func (a Acquisition) Outcome() string {
	switch {
	case errors.Is(a.Err, ErrExhausted):
		return "exhausted"
	case errors.Is(a.Err, context.Canceled), errors.Is(a.Err, context.DeadlineExceeded):
		return "cancelled"
	case a.Err != nil:
		return "failed"
	case a.Hit:
		return "hit"
	default:
		return "miss"
	}
}

// A Creation is an attempt to open a sandbox.
type Creation struct {
	Key      Key
	Duration time.Duration
	// Background means that no caller waited for it when it began.
	Background bool
	Err        error
}

// A Destruction is a sandbox's removal.
type Destruction struct {
	Key      Key
	Reason   Reason
	Duration time.Duration
	Err      error
}

// A State is one of a pool's sandbox.
type State string

// The states. None is before the first and after the last.
const (
	None      State = ""
	Creating  State = "creating"
	Idle      State = "idle"
	InUse     State = "in_use"
	Checking  State = "checking"
	Resetting State = "resetting"
	Removing  State = "removing"
)

// A Reason says why a sandbox was removed.
type Reason string

// The reasons.
const (
	Released  Reason = "released"  // it was used, and is not given again
	Died      Reason = "died"      // it ended by itself
	Unhealthy Reason = "unhealthy" // it gave no sign of life
	NotReset  Reason = "not_reset" // it could not be made as new
	TimedOut  Reason = "idle"      // it was not asked for during IdleTimeout
	TooOld    Reason = "lifetime"
	UsedUp    Reason = "uses"
	Evicted   Reason = "evicted"   // a sandbox of another key or tenant needed its place
	Surplus   Reason = "temporary" // it was above Max
	Shutdown  Reason = "closed"    // the pool was closed
)

// fire calls what pick finds in each of the hooks.
func (p *Pool) fire(call func(Hooks)) {
	for _, h := range p.cfg.Hooks {
		call(h)
	}
}

// later calls hooks once the lock is given back.
func (p *Pool) later(call func(Hooks)) {
	if len(p.cfg.Hooks) > 0 {
		p.events = append(p.events, call)
	}
}
