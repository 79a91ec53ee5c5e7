// Package pool keeps warm sandboxes, created before they are asked for, over any backend.
//
// A pool holds sandboxes of one or several keys, at most Max together. What a caller has
// acquired no other caller has; what is released is removed and replaced by a new one, unless
// the caller named a tenant and asked for reuse.
//
// One mutex owns the state. It is never held while a sandbox is opened, checked, reset or
// removed, nor while a hook is called: what changes the state begins such work in a
// goroutine that the pool waits for in Close.
package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Pool is safe for concurrent use.
type Pool struct {
	cfg  Config
	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup
	// changed wakes the keeper; it holds one.
	changed chan struct{}
	empty   chan struct{} // closed when the pool is closed and holds nothing

	mu        sync.Mutex
	closed    bool
	closeErr  error
	drained   bool // empty is closed
	members   map[*member]struct{}
	kinds     map[string]*kind
	kept      []*kind // of Config.Keys
	waiters   []*waiter
	owed      []*kind // to be opened in place of removed ones, the oldest first
	slots     int     // members that are not temporary
	temporary int
	filling   int       // being created in the background
	filled    time.Time // when the last such creation began
	count     map[State]int
	stats     Stats // the sums
	events    []func(Hooks)
}

// New makes a pool and begins to fill it. It fails with llmsandbox.ErrInvalid for a
// Config that makes no sense. The pool must be closed.
func New(config *Config) (*Pool, error) {
	cfg, err := cmp.Or(config, &Config{}).resolve()
	if err != nil {
		return nil, err
	}
	p := &Pool{
		cfg: cfg, changed: make(chan struct{}, 1), empty: make(chan struct{}),
		members: map[*member]struct{}{}, kinds: map[string]*kind{}, count: map[State]int{},
	}
	p.life, p.end = context.WithCancel(context.Background())
	for _, key := range cfg.Keys {
		k := p.kindOf(key)
		if !k.kept {
			k.kept = true
			p.kept = append(p.kept, k)
		}
	}
	p.work.Go(p.keep)
	return p, nil
}

// unlock gives the lock back after the state has changed.
func (p *Pool) unlock() {
	p.settle()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// settle gives the lock back and calls the hooks, but not the keeper.
func (p *Pool) settle() {
	events := p.events
	p.events = nil
	if p.closed && len(p.members) == 0 && !p.drained {
		p.drained = true
		close(p.empty)
	}
	p.mu.Unlock()
	for _, e := range events {
		p.fire(e)
	}
}

// AcquireOptions say which sandbox a caller needs. The zero value (or nil) is one of
// Config.Options for no tenant.
type AcquireOptions struct {
	// Key says how the sandbox is opened; its empty fields are those of Config.Options.
	Key
	// Tenant is the party the sandbox is used for. Only the same tenant may get a sandbox
	// again: see Config.Reuse.
	Tenant string
}

// Acquire returns a sandbox that is the caller's alone until it is released. opts may be nil.
//
// Those who wait are served in the order of their calls. It fails with ErrExhausted,
// ErrClosed, the context's error, or why no sandbox could be opened.
func (p *Pool) Acquire(ctx context.Context, opts *AcquireOptions) (*Lease, error) {
	start := time.Now()
	o := *cmp.Or(opts, &AcquireOptions{})
	key, err := p.cfg.canonical(o.Key)
	if err != nil {
		return nil, err
	}
	m, hit, err := p.acquire(ctx, key, o.Tenant)
	a := Acquisition{Key: key, Wait: time.Since(start), Hit: hit, Err: err}
	p.fire(func(h Hooks) {
		if h.Acquired != nil {
			h.Acquired(ctx, a)
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.stats.Failures++
		return nil, err
	case hit:
		p.stats.Hits++
	default:
		p.stats.Misses++
	}
	return &Lease{pool: p, member: m, uses: m.uses}, nil
}

func (p *Pool) acquire(ctx context.Context, key Key, tenant string) (_ *member, hit bool, _ error) {
	var timeout <-chan time.Time
	if p.cfg.AcquireTimeout > 0 {
		timeout = time.After(p.cfg.AcquireTimeout)
	}
	for again := false; ; again = true {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		w, err := p.queue(key, tenant, again)
		if err != nil {
			return nil, false, err
		}
		var a answer
		if w.hit {
			a = <-w.ready
		} else if a, err = p.wait(ctx, w, timeout); err != nil {
			return nil, false, err
		}
		if a.err != nil {
			return nil, false, a.err
		}
		if p.alive(ctx, a.member) {
			return a.member, w.hit, nil
		}
	}
}

// queue puts an Acquire in line, at its head when it was there before.
func (p *Pool) queue(key Key, tenant string, again bool) (*waiter, error) {
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return nil, ErrClosed
	}
	w := &waiter{kind: p.kindOf(key), tenant: tenant, ready: make(chan answer, 1)}
	w.kind.waiters++
	if again {
		p.waiters = slices.Insert(p.waiters, 0, w)
	} else {
		p.waiters = append(p.waiters, w)
	}
	p.dispatch()
	w.hit = len(w.ready) > 0
	if w.hit || w.covered || p.cfg.Exhaustion == Wait {
		return w, nil
	}
	p.waiters = slices.DeleteFunc(p.waiters, func(o *waiter) bool { return o == w })
	if p.cfg.Exhaustion == Temporary && p.temporary < p.cfg.Max {
		p.createTemporary(w)
		return w, nil
	}
	w.kind.waiters--
	p.drop(w.kind)
	return nil, p.exhausted(0)
}

func (p *Pool) exhausted(waited time.Duration) error {
	return &ExhaustedError{Max: p.cfg.Max, InUse: p.count[InUse], Creating: p.count[Creating], Waited: waited}
}

// wait waits for a waiter's answer.
func (p *Pool) wait(ctx context.Context, w *waiter, timeout <-chan time.Time) (answer, error) {
	select {
	case a := <-w.ready:
		return a, nil
	case <-ctx.Done():
		if a, answered := p.leave(w); answered && a.member != nil {
			p.unused(a.member)
		}
		return answer{}, context.Cause(ctx)
	case <-timeout:
		if a, answered := p.leave(w); answered {
			return a, nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return answer{}, p.exhausted(p.cfg.AcquireTimeout)
	}
}

// alive reports whether a member can be given to whom it was handed; otherwise it is
// removed, or idle again if only the caller has given up.
func (p *Pool) alive(ctx context.Context, m *member) bool {
	if time.Since(m.verified) < trusted {
		return true
	}
	err := p.ping(ctx, m)
	if err != nil && ctx.Err() != nil {
		p.unused(m)
		return false
	}
	p.mu.Lock()
	defer p.unlock()
	m.verified = time.Now()
	if err == nil {
		return true
	}
	p.stats.LastError = err
	if m.state == InUse { // else Close has not waited for it
		p.remove(m, Unhealthy)
	}
	return false
}

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
	zygotes := p.cfg.zygotes.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeErr = errors.Join(p.closeErr, zygotes)
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

// Stats are counts of sandboxes.
type Stats struct {
	Max, Min int
	// Total is how many the pool holds, in any state, without Temporary ones.
	Total                                                int
	Creating, Idle, InUse, Checking, Resetting, Removing int
	// Temporary are those above Max, in any state. They are in no other count.
	Temporary int
	// Waiting is how many Acquires wait.
	Waiting int
	// Hits are the Acquires that found a warm sandbox, Misses those that waited for one,
	// Failures those that got none.
	Hits, Misses, Failures uint64
	// Created and Destroyed count sandboxes, CreateFailures attempts.
	Created, CreateFailures, Destroyed uint64
	// LastError is the last failure of the pool's own work: opening in the background or
	// for a caller, a reset, a removal. Nil: there was none.
	LastError error
	Closed    bool
}

// Stats reports what the pool holds.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Max, s.Min, s.Closed, s.Total = p.cfg.Max, p.cfg.Min, p.closed, p.slots
	s.Creating, s.Idle, s.InUse = p.count[Creating], p.count[Idle], p.count[InUse]
	s.Checking, s.Resetting, s.Removing = p.count[Checking], p.count[Resetting], p.count[Removing]
	s.Temporary, s.Waiting = p.temporary, len(p.waiters)
	return s
}
