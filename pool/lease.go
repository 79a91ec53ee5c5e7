package pool

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

// A Lease is a sandbox that is in use. It is safe for concurrent use.
type Lease struct {
	pool   *Pool
	member *member
	uses   int
	once   sync.Once
}

// Sandbox is the sandbox. It must not be closed, nor used after Release.
func (l *Lease) Sandbox() *llmsandbox.Sandbox { return l.member.box.(warm).Sandbox }

// Uses is how many have had the sandbox so far, this one included.
func (l *Lease) Uses() int { return l.uses }

// Run acquires a sandbox, runs code in it as [llmsandbox.Sandbox.Run] does, and releases it.
// The sandbox is one for the language of opts, which may be nil, and for no tenant. The result
// is never nil; its Status is StatusSetupFailed when no sandbox could be acquired.
func (p *Pool) Run(ctx context.Context, code string, opts *llmsandbox.RunOptions) (*llmsandbox.Result, error) {
	var o AcquireOptions
	if opts != nil {
		o.Language = opts.Language
	}
	lease, err := p.Acquire(ctx, &o)
	if err != nil {
		return &llmsandbox.Result{Status: llmsandbox.StatusSetupFailed, ExitCode: -1, Language: o.Language, Reason: err.Error()}, err
	}
	defer lease.Release()
	return lease.Sandbox().Run(ctx, code, opts)
}

// Release gives the sandbox back and does not wait for what becomes of it; more than once
// is the same as once.
func (l *Lease) Release() { l.once.Do(func() { l.pool.release(l.member) }) }

func (p *Pool) release(m *member) {
	p.mu.Lock()
	defer p.unlock()
	if m.state != InUse {
		return // Close has not waited for it
	}
	m.replace, m.tenant = !m.temporary, m.holder
	switch {
	case p.closed:
		p.remove(m, Shutdown)
	case m.temporary:
		p.remove(m, Surplus)
	case ended(m):
		p.remove(m, Died)
	case p.cfg.MaxUses > 0 && m.uses >= p.cfg.MaxUses:
		p.remove(m, UsedUp)
	case p.tooOld(m, time.Now()):
		p.remove(m, TooOld)
	case p.cfg.Reuse != ReuseTenant || m.tenant == "":
		p.remove(m, Released)
	default:
		p.move(m, Resetting)
		p.work.Go(func() { p.reset(m) })
	}
}

// reset makes a member as new, or removes it.
func (p *Pool) reset(m *member) {
	ctx, cancel := context.WithTimeout(p.life, p.cfg.ResetTimeout)
	err := m.box.Reset(ctx)
	cancel()
	p.mu.Lock()
	defer p.unlock()
	switch {
	case p.closed:
		p.remove(m, Shutdown)
	case err != nil:
		p.stats.LastError = fmt.Errorf("reset sandbox %s of the pool: %w", m.box.ID(), err)
		p.remove(m, NotReset)
	default:
		m.verified, m.replace = time.Now(), false
		p.rest(m)
	}
	p.dispatch()
}

// unused takes back a member that its waiter did not want any more.
func (p *Pool) unused(m *member) {
	p.mu.Lock()
	defer p.unlock()
	if m.state != InUse {
		return
	}
	m.uses--
	switch {
	case p.closed:
		p.remove(m, Shutdown)
	case m.temporary:
		p.remove(m, Surplus)
	default:
		p.rest(m)
	}
	p.dispatch()
}

// dispatch serves those who wait, in the order in which they came: with an idle sandbox,
// with one that is being created, with a new one where there is a place, with a place that
// is becoming free, or with the place of an idle one of another key or tenant, the longest
// idle first. No caller is served before one who came earlier and could have had that
// sandbox or its place. The caller holds the lock.
func (p *Pool) dispatch() {
	if len(p.waiters) == 0 {
		return
	}
	cover := map[*kind]int{}
	promised := 0
	rest := p.waiters[:0]
	for _, w := range p.waiters {
		if m := p.take(w); m != nil {
			p.hand(m, w)
			continue
		}
		w.covered = true
		switch {
		case cover[w.kind] < w.kind.creating:
			cover[w.kind]++
		case p.slots < p.cfg.Max:
			p.create(w.kind, false)
			cover[w.kind]++
		case promised < p.freeing() || p.evict():
			promised++
		default:
			w.covered = false
		}
		rest = append(rest, w)
	}
	clear(p.waiters[len(rest):])
	p.waiters = rest
}

// freeing are those that will be idle or removed without any caller's action.
func (p *Pool) freeing() int { return p.count[Checking] + p.count[Resetting] + p.count[Removing] }

// take returns an idle member for a waiter; those that are unfit it removes.
func (p *Pool) take(w *waiter) *member {
	for {
		m := w.kind.pick(w.tenant)
		if m == nil {
			return nil
		}
		switch {
		case ended(m):
			p.remove(m, Died)
		case p.tooOld(m, time.Now()):
			p.remove(m, TooOld)
		default:
			return m
		}
	}
}

func ended(m *member) bool {
	return ctxend.Closed(m.box.Done())
}

func (p *Pool) tooOld(m *member, now time.Time) bool {
	return p.cfg.Lifetime > 0 && now.Sub(m.created) >= p.cfg.Lifetime
}

// hand gives a member to a waiter and takes the waiter out of the queue.
func (p *Pool) hand(m *member, w *waiter) {
	p.move(m, InUse)
	m.uses++
	m.holder = w.tenant
	w.answer(answer{member: m}, p)
}

func (w *waiter) answer(a answer, p *Pool) {
	w.kind.waiters--
	w.ready <- a
	p.drop(w.kind)
}

// evict removes the longest idle of all, if there is one.
func (p *Pool) evict() bool {
	var longest *member
	for _, k := range p.kinds {
		if len(k.idle) > 0 && (longest == nil || k.idle[0].since.Before(longest.since)) {
			longest = k.idle[0]
		}
	}
	if longest == nil {
		return false
	}
	p.remove(longest, Evicted)
	return true
}

// leave takes a waiter out of line. When it was answered already, the answer is returned.
func (p *Pool) leave(w *waiter) (answer, bool) {
	p.mu.Lock()
	defer p.unlock()
	select {
	case a := <-w.ready:
		return a, true
	default:
	}
	w.left = true
	if i := slices.Index(p.waiters, w); i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
	}
	w.kind.waiters--
	p.drop(w.kind)
	return answer{}, false
}
