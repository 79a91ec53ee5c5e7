package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// create begins to open a sandbox of a kind, which takes a slot. The caller holds the lock.
func (p *Pool) create(k *kind, background bool) {
	if i := slices.Index(p.owed, k); i >= 0 {
		p.owed = slices.Delete(p.owed, i, i+1)
	}
	p.begin(&member{kind: k, background: background})
	p.trimOwed()
}

// trimOwed gives up replacements whose place another sandbox has taken.
func (p *Pool) trimOwed() {
	for len(p.owed) > 0 && len(p.owed) > p.cfg.Max-p.slots {
		k := p.owed[0]
		p.owed = p.owed[1:]
		p.drop(k)
	}
}

// createTemporary begins to open a sandbox above Max for one waiter.
func (p *Pool) createTemporary(w *waiter) {
	p.begin(&member{kind: w.kind, temporary: true, waiter: w})
}

func (p *Pool) begin(m *member) {
	m.kind.members++
	p.members[m] = struct{}{}
	if m.temporary {
		p.temporary++
	} else {
		p.slots++
	}
	if m.background {
		p.filling++
	}
	p.move(m, Creating)
	p.work.Go(func() { p.open(m) })
}

// forget takes a member off the books.
func (p *Pool) forget(m *member) {
	p.move(m, None)
	delete(p.members, m)
	m.kind.members--
	if m.temporary {
		p.temporary--
	} else {
		p.slots--
	}
	p.drop(m.kind)
}

// open opens a member's sandbox.
func (p *Pool) open(m *member) {
	k := m.kind
	start := time.Now()
	b, err := p.cfg.open(p.life, p.cfg.options(k.key))
	now := time.Now()
	if err != nil {
		err = fmt.Errorf("create a %s sandbox for the pool: %w", k.key.Language, err)
	}
	p.mu.Lock()
	defer p.unlock()
	p.later(func(h Hooks) {
		if h.Created != nil {
			h.Created(Creation{Key: k.key, Duration: now.Sub(start), Background: m.background, Err: err})
		}
	})
	if m.background {
		p.filling--
	}
	switch {
	case err != nil && p.closed:
		p.forget(m)
		p.refuse(m)
		return
	case err != nil:
		p.failed(m, err)
		return
	}
	p.stats.Created++
	k.failures, k.retry = 0, time.Time{}
	m.box, m.gone, m.created, m.verified = b, make(chan struct{}), now, now
	p.work.Go(func() { p.watch(m) })
	switch {
	case p.closed:
		p.remove(m, Shutdown)
		p.refuse(m)
	case m.temporary && m.waiter.left:
		p.remove(m, Surplus)
	case m.temporary:
		p.hand(m, m.waiter)
	default:
		p.rest(m)
		p.dispatch()
	}
}

// refuse returns to the caller that waits for a temporary member that the pool was closed.
func (p *Pool) refuse(m *member) {
	if m.temporary && !m.waiter.left {
		m.waiter.answer(answer{err: ErrClosed}, p)
	}
}

// failed is what a creation's failure means: a caller who counted on it gets the error, and
// the slot serves the next in line. What fails in the background is tried again later.
func (p *Pool) failed(m *member, err error) {
	k := m.kind
	p.stats.CreateFailures++
	p.stats.LastError = err
	k.failures++
	k.retry = time.Now().Add(backoff(k.failures))
	p.forget(m)
	switch {
	case m.temporary && !m.waiter.left:
		m.waiter.answer(answer{err: err}, p)
	case !m.temporary && p.inLine(k) > k.creating:
		i := slices.IndexFunc(p.waiters, func(w *waiter) bool { return w.kind == k })
		w := p.waiters[i]
		p.waiters = slices.Delete(p.waiters, i, i+1)
		w.answer(answer{err: err}, p)
	}
	p.dispatch()
}

func (p *Pool) inLine(k *kind) (n int) {
	for _, w := range p.waiters {
		if w.kind == k {
			n++
		}
	}
	return n
}

func backoff(failures int) time.Duration {
	return min(firstBackoff<<min(failures-1, 10), lastBackoff)
}

// watch notices the end of a sandbox. One in use is seen to when it is released.
func (p *Pool) watch(m *member) {
	select {
	case <-m.gone:
		return
	case <-m.box.Done():
	}
	p.mu.Lock()
	defer p.unlock()
	if m.state == Idle {
		p.remove(m, Died)
		p.dispatch()
	}
}

// remove begins to remove a member. Its slot is free when it has been removed.
func (p *Pool) remove(m *member, why Reason) {
	p.move(m, Removing)
	close(m.gone)
	p.work.Go(func() {
		start := time.Now()
		err := m.box.Close()
		took := time.Since(start)
		if err != nil {
			err = fmt.Errorf("remove sandbox %s of the pool: %w", m.box.ID(), err)
		}
		p.mu.Lock()
		defer p.unlock()
		p.stats.Destroyed++
		if err != nil {
			p.stats.LastError = err
		}
		p.later(func(h Hooks) {
			if h.Destroyed != nil {
				h.Destroyed(Destruction{Key: m.kind.key, Reason: why, Duration: took, Err: err})
			}
		})
		if m.replace && !p.closed && !p.cfg.NoPrewarm {
			p.owed = append(p.owed, m.kind)
		}
		p.forget(m)
		p.dispatch()
		p.trimOwed()
	})
}

// box is what a pool needs of a sandbox.
type box interface {
	ID() string
	Done() <-chan struct{}
	// Ping waits for a sign of life from inside.
	Ping(context.Context) error
	Reset(context.Context) error
	Close() error
}

type opener func(context.Context, llmsandbox.Options) (box, error)

// warm is a real one.
type warm struct {
	*llmsandbox.Sandbox
	prepare bool // start its interpreter ahead
}

func (w warm) Ping(ctx context.Context) error {
	_, err := w.Stat(ctx, w.Workdir())
	return err
}

func (w warm) Reset(ctx context.Context) error {
	if err := w.Sandbox.Reset(ctx); err != nil {
		return err
	}
	return w.ready(ctx)
}

// ready starts the interpreter. That there is no way, or no interpreter, is for the one who
// runs something to hear.
func (w warm) ready(ctx context.Context) error {
	if !w.prepare {
		return nil
	}
	err := w.Prepare(ctx)
	if errors.Is(err, llmsandbox.ErrUnsupported) || errors.Is(err, llmsandbox.ErrToolchain) {
		return nil
	}
	return err
}

// opening opens a real one.
func (c *Config) opening(ctx context.Context, o llmsandbox.Options) (box, error) {
	open := func() (*llmsandbox.Sandbox, error) { return llmsandbox.Open(ctx, &o) }
	id := Key{Language: o.Language, Image: o.Image, Libraries: o.Libraries, Environment: o.Environment}.id()
	forked := c.forked[id]
	if forked {
		open = func() (*llmsandbox.Sandbox, error) { return c.zygotes.open(ctx, id, o) }
	}
	sb, err := open()
	if err != nil {
		return nil, err
	}
	w := warm{Sandbox: sb, prepare: c.Prepare && len(o.Imports) == 0 && !forked} // or Open has started it
	if err := w.ready(ctx); err != nil {
		return nil, errors.Join(err, sb.Close())
	}
	return w, nil
}

// zygotes are those of a pool, by the ids of the keys that sandboxes were opened of.
type zygotes struct {
	mu sync.Mutex
	of map[string]*zygote
}

type zygote struct {
	mu sync.Mutex // held while it is started
	z  *llmsandbox.Zygote
}

// open opens a sandbox with these options from the zygote of their key.
func (all *zygotes) open(ctx context.Context, id string, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	all.mu.Lock()
	if all.of[id] == nil {
		all.of[id] = &zygote{}
	}
	one := all.of[id]
	all.mu.Unlock()
	z, err := one.get(ctx, o)
	if err != nil {
		return nil, err
	}
	return z.Open(ctx)
}

func (one *zygote) get(ctx context.Context, o llmsandbox.Options) (z *llmsandbox.Zygote, err error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.z == nil {
		one.z, err = llmsandbox.NewZygote(ctx, &o)
	}
	return one.z, err
}

// close is called once nothing is opened any more.
func (all *zygotes) close() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	var errs []error
	for _, one := range all.of {
		if one.z != nil {
			errs = append(errs, one.z.Close())
		}
	}
	clear(all.of)
	return errors.Join(errs...)
}
