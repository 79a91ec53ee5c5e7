package egress

import (
	"maps"
	"slices"
	"sync"
)

// openAttempts are the attempts that have not ended, as they were when they were last
// published.
type openAttempts struct {
	mu  sync.Mutex
	all map[*attempt]Attempt
}

// publish makes the attempt, as it now is, known to [Proxy.Open].
func (a *attempt) publish() {
	o := &a.p.open
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*attempt]Attempt{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o.all[a] = a.Attempt
}

// unpublish is called once the attempt has been logged.
func (a *attempt) unpublish() {
	o := &a.p.open
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, a)
}

// Open returns the attempts that have begun and not been logged yet, the oldest first.
// They have no Duration, and what was not known when they began may be missing.
func (p *Proxy) Open() []Attempt {
	p.open.mu.Lock()
	defer p.open.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.open.all), func(a, b Attempt) int { return a.Time.Compare(b.Time) })
}
