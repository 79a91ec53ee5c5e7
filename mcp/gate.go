package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errBusy: there are as many calls under way as there may be.
var errBusy = errors.New("the server is busy")

// A gate lets a number of calls through at a time, and lets some more wait for a while.
type gate struct {
	slots    chan struct{}
	waiting  chan struct{}
	patience time.Duration
}

func newGate(slots int, patience time.Duration) *gate {
	const queue = 8 // for each slot
	return &gate{slots: make(chan struct{}, slots), waiting: make(chan struct{}, queue*slots), patience: patience}
}

// enter waits for a slot, which leave frees. It fails with errBusy.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case g.waiting <- struct{}{}:
		defer func() { <-g.waiting }()
	default:
		return nil, fmt.Errorf("%w: %s under way and %d waiting: try again later", errBusy, count(cap(g.slots), "call"), cap(g.waiting))
	}
	patience := time.NewTimer(g.patience)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		return nil, fmt.Errorf("%w: %s under way, and none ended within %s: try again later", errBusy, count(cap(g.slots), "call"), span(g.patience))
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
