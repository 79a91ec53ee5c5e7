package pool

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
