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
