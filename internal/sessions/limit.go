package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrBusy is what a limit's callers get while as many calls are under way as may be.
var ErrBusy = errors.New("the server is busy")

// A Limit lets a number of calls run at a time, and lets some more wait for a while.
type Limit struct {
	slots    chan struct{}
	waiting  chan struct{}
	patience time.Duration
}

// NewLimit makes a limit of so many calls. Eight times as many may wait, each for patience.
func NewLimit(slots int, patience time.Duration) *Limit {
	const queue = 8 // for each slot
	return &Limit{slots: make(chan struct{}, slots), waiting: make(chan struct{}, queue*slots), patience: patience}
}

// Enter waits for a slot, which leave frees. It fails with ErrBusy.
func (l *Limit) Enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-l.slots }
	select {
	case l.slots <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return nil, fmt.Errorf("%w: %d calls under way and %d waiting: try again later", ErrBusy, cap(l.slots), cap(l.waiting))
	}
	patience := time.NewTimer(l.patience)
	defer patience.Stop()
	select {
	case l.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		return nil, fmt.Errorf("%w: %d calls under way, and none ended within %v: try again later", ErrBusy, cap(l.slots), l.patience)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
