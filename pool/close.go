package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Close takes no more requests, waits for the sandboxes in use until ctx ends, and
// removes all. Those that were in use when ctx ended are named in the error, which wraps
// the context's. When Close returns nothing is left. More than once is the same as once.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.end()
		for _, w := range p.waiters {
			w.answer(answer{err: ErrClosed}, p)
		}
		p.waiters, p.owed = nil, nil
		for m := range p.members {
			if m.state == Idle {
				p.remove(m, Shutdown)
			}
		}
	}
	p.unlock()
	select {
	case <-p.empty:
	case <-ctx.Done():
		p.abandon(context.Cause(ctx))
		<-p.empty
	}
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closeErr
}

// abandon removes what is in use.
func (p *Pool) abandon(cause error) {
	p.mu.Lock()
	defer p.unlock()
	var used []string
	for m := range p.members {
		if m.state == InUse {
			used = append(used, m.box.ID())
			p.remove(m, Shutdown)
		}
	}
	if len(used) > 0 {
		slices.Sort(used)
		p.closeErr = errors.Join(p.closeErr, fmt.Errorf("close pool: %d sandboxes were still in use and are removed (%s): %w", len(used), strings.Join(used, ", "), cause))
	}
}
