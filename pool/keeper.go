package pool

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// keep does what time brings about, and opens sandboxes in the background, until the pool
// is closed. It wakes when the state has changed and when something is due.
func (p *Pool) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.life.Done():
			return
		case <-p.changed:
		case <-timer.C:
		}
		p.mu.Lock()
		var due deadline
		if !p.closed {
			now := time.Now()
			p.tend(now, &due)
			p.fill(now, &due)
		}
		p.settle()
		if due.set {
			timer.Reset(time.Until(due.at))
		} else {
			timer.Stop()
		}
	}
}

// A deadline is the earliest of some moments.
type deadline struct {
	at  time.Time
	set bool
}

func (d *deadline) add(at time.Time) {
	if !d.set || at.Before(d.at) {
		d.at, d.set = at, true
	}
}

// tend removes idle members that are too old or too many, and begins health checks.
func (p *Pool) tend(now time.Time, due *deadline) {
	for _, k := range p.kinds {
		spare := k.ready()
		if k.kept {
			spare -= p.cfg.Min
		}
		for _, m := range slices.Clone(k.idle) {
			expired := false
			if p.cfg.IdleTimeout > 0 && (m.tenant != "" || spare > 0) {
				at := m.since.Add(p.cfg.IdleTimeout)
				if expired = !now.Before(at); !expired {
					due.add(at)
				}
			}
			switch {
			case p.tooOld(m, now):
				p.remove(m, TooOld)
			case expired:
				p.remove(m, TimedOut)
			case !now.Before(m.verified.Add(p.cfg.HealthInterval)):
				p.check(m)
				continue
			default:
				due.add(m.verified.Add(p.cfg.HealthInterval))
				if p.cfg.Lifetime > 0 {
					due.add(m.created.Add(p.cfg.Lifetime))
				}
				continue
			}
			if m.tenant == "" {
				spare--
			}
		}
	}
}

// check asks an idle member for a sign of life. It cannot be acquired meanwhile.
func (p *Pool) check(m *member) {
	since := m.since
	p.move(m, Checking)
	p.work.Go(func() {
		err := p.ping(p.life, m)
		p.mu.Lock()
		defer p.unlock()
		switch {
		case p.closed:
			p.remove(m, Shutdown)
			return
		case err != nil:
			p.stats.LastError = err
			p.remove(m, Unhealthy)
		default:
			m.verified = time.Now()
			p.rest(m)
			m.since = since // a check is no use
			slices.SortStableFunc(m.kind.idle, func(a, b *member) int { return a.since.Compare(b.since) })
		}
		p.dispatch()
	})
}

func (p *Pool) ping(ctx context.Context, m *member) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := m.box.Ping(ctx); err != nil {
		return fmt.Errorf("sandbox %s of the pool gives no sign of life: %w", m.box.ID(), err)
	}
	return nil
}

// fill opens sandboxes that no caller waits for: in place of those that were removed after
// use, and up to Min of what is kept warm.
func (p *Pool) fill(now time.Time, due *deadline) {
	if p.cfg.NoPrewarm {
		return
	}
	for p.slots < p.cfg.Max && p.filling < refillParallel {
		k := p.wanted(now, due)
		if k == nil {
			return
		}
		if next := p.filled.Add(p.cfg.RefillInterval); now.Before(next) {
			due.add(next)
			return
		}
		p.filled = now
		p.create(k, true)
	}
}

// wanted is a kind of which there should be more.
func (p *Pool) wanted(now time.Time, due *deadline) *kind {
	may := func(k *kind) bool {
		if now.Before(k.retry) {
			due.add(k.retry)
			return false
		}
		return true
	}
	for _, k := range p.kept {
		if k.ready() < p.cfg.Min && may(k) {
			return k
		}
	}
	for _, k := range p.owed {
		if may(k) {
			return k
		}
	}
	return nil
}

// A member is a sandbox of the pool, from the beginning of its creation to the end of its
// removal. What changes is guarded by the pool's mutex.
type member struct {
	kind       *kind
	state      State
	background bool    // no caller waited when it was begun
	temporary  bool    // it takes no slot
	waiter     *waiter // whom a temporary one is for
	replace    bool    // another one is to come in its place

	box     box
	gone    chan struct{} // closed when it is removed
	created time.Time

	tenant          string // who had it; empty: no tenant
	holder          string // who has it
	uses            int
	since, verified time.Time // idle since, and seen alive
}

// A kind is what the pool knows of a key. It is forgotten when nothing is of it.
type kind struct {
	key  Key
	id   string
	kept bool

	members  int
	waiters  int
	creating int       // that any waiter can have
	checking int       // that have had no tenant
	idle     []*member // the longest idle first

	failures int       // in a row
	retry    time.Time // when the background tries again
}

// ready is how many are there for any tenant, or soon.
func (k *kind) ready() int {
	n := k.creating + k.checking
	for _, m := range k.idle {
		if m.tenant == "" {
			n++
		}
	}
	return n
}

// pick is the idle one for a tenant: its own, else the last that has had no tenant.
func (k *kind) pick(tenant string) *member {
	var fresh *member
	for _, m := range slices.Backward(k.idle) {
		switch {
		case m.tenant == "" && fresh == nil:
			fresh = m
		case m.tenant != "" && m.tenant == tenant:
			return m
		}
	}
	return fresh
}

// A waiter is an Acquire that waits.
type waiter struct {
	kind   *kind
	tenant string
	// covered reports whether a sandbox or its slot is being prepared.
	covered bool
	hit     bool // it was answered at once
	left    bool
	ready   chan answer // holds one
}

type answer struct {
	member *member
	err    error
}

// kindOf is the kind of a canonical key. The caller holds the lock, and gives it a member
// or a waiter, or calls drop.
func (p *Pool) kindOf(key Key) *kind {
	id := key.id()
	k := p.kinds[id]
	if k == nil {
		k = &kind{key: key, id: id}
		p.kinds[id] = k
	}
	return k
}

// drop forgets a kind of which there is nothing.
func (p *Pool) drop(k *kind) {
	if !k.kept && k.members == 0 && k.waiters == 0 && !slices.Contains(p.owed, k) {
		delete(p.kinds, k.id)
	}
}

// move changes a member's state and all that counts it.
func (p *Pool) move(m *member, to State) {
	from := m.state
	m.state = to
	k := m.kind
	if from == Idle {
		k.idle = slices.DeleteFunc(k.idle, func(o *member) bool { return o == m })
	}
	if !m.temporary {
		p.count[from]--
		p.count[to]++
		switch {
		case from == Creating:
			k.creating--
		case to == Creating:
			k.creating++
		}
		switch {
		case m.tenant != "":
		case from == Checking:
			k.checking--
		case to == Checking:
			k.checking++
		}
	}
	p.later(func(h Hooks) {
		if h.Changed != nil {
			h.Changed(k.key, from, to)
		}
	})
}

// rest makes a member idle.
func (p *Pool) rest(m *member) {
	p.move(m, Idle)
	m.since = time.Now()
	m.kind.idle = append(m.kind.idle, m)
}
