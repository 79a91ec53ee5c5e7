package pool

import (
	"slices"
	"time"
)

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
