package pool

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
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
