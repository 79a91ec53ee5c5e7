package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"pgregory.net/rapid"
)

// A model is what the property test knows of a pool: who holds what, and who waits.
type model struct {
	t      *rapid.T
	pool   *Pool
	fake   *fakeBackend
	max    int
	failed atomic.Bool // creations fail

	mu      sync.Mutex
	held    map[*fakeBox]*Lease
	last    map[*fakeBox]string // the tenant that had it
	waiting []*request          // in the order of their calls
	all     sync.WaitGroup
}

type request struct {
	tenant string
	cancel context.CancelFunc
}

// acquire asks for a sandbox in the background, and checks what it gets.
func (m *model) acquire(key Key, tenant string) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &request{tenant: tenant, cancel: cancel}
	m.mu.Lock()
	m.waiting = append(m.waiting, r)
	m.mu.Unlock()
	m.all.Go(func() {
		defer cancel()
		l, err := m.pool.Acquire(ctx, &AcquireOptions{Key: key, Tenant: tenant})
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, other := range m.waiting {
			if other == r {
				m.waiting = append(m.waiting[:i], m.waiting[i+1:]...)
				break
			}
		}
		switch {
		case err == nil:
			m.got(l, key, tenant)
		case errors.Is(err, ErrExhausted), errors.Is(err, ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, errBroken):
		default:
			m.t.Errorf("acquire: %v", err)
		}
	})
}

var errBroken = errors.New("broken")

func (m *model) got(l *Lease, key Key, tenant string) {
	b := fake(l)
	if m.held[b] != nil {
		m.t.Errorf("%s was given to two", b.id)
	}
	if had, used := m.last[b]; used && (had == "" || had != tenant) {
		m.t.Errorf("%s of tenant %q was given to %q", b.id, had, tenant)
	}
	if b.closed.Load() || b.options.Language != key.Language {
		m.t.Errorf("got %s, which is removed (%t) or a %s one, for %s", b.id, b.closed.Load(), b.options.Language, key.Language)
	}
	m.held[b], m.last[b] = l, tenant
}

func (m *model) release(b *fakeBox) {
	m.mu.Lock()
	l := m.held[b]
	delete(m.held, b)
	m.mu.Unlock()
	l.Release()
}

// pickHeld draws one that a caller holds.
func (m *model) pickHeld(t *rapid.T) *fakeBox {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*fakeBox
	for _, b := range m.boxes() {
		if m.held[b] != nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		t.Skip("none is held")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
}

// boxes are all there were, in the order in which they were opened.
func (m *model) boxes() []*fakeBox {
	m.fake.mu.Lock()
	defer m.fake.mu.Unlock()
	return append([]*fakeBox(nil), m.fake.opened...)
}

// check verifies the invariants.
func (m *model) check(t *rapid.T, temporary bool) {
	synctest.Wait()
	s := m.pool.Stats()
	m.mu.Lock()
	defer m.mu.Unlock()
	if sum := s.Creating + s.Idle + s.InUse + s.Checking + s.Resetting + s.Removing; sum != s.Total || s.Total > m.max {
		t.Fatalf("%+v: the states sum up to %d, and at most %d may be, want sum = %d, Total <= %v", s, sum, m.max, s.Total, m.max)
	}
	_, alive, _ := m.fake.count()
	if alive > s.Total+s.Temporary {
		t.Fatalf("%d live, the pool knows of %d", alive, s.Total+s.Temporary)
	}
	if !temporary && s.Temporary > 0 || s.Temporary > m.max {
		t.Fatalf("%+v: %d temporary ones, want temporary = true or Temporary <= 0, Temporary <= %d", s, s.Temporary, m.max)
	}
	m.pool.mu.Lock()
	if n := len(m.pool.owed); n > m.max-m.pool.slots {
		t.Errorf("%d replacements are owed, for %d places", n, m.max-m.pool.slots)
	}
	m.pool.mu.Unlock()
	for b := range m.held {
		if b.closed.Load() {
			t.Fatalf("%s was removed while it was in use, want b.closed.Load() = false", b.id)
		}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// What rapid ends a check with must be seen outside the bubble.
		var ended any
		defer func() {
			if ended != nil {
				panic(ended)
			}
		}()
		synctest.Test(t, func(t *testing.T) {
			defer func() { ended = recover() }()
			max := rapid.IntRange(1, 4).Draw(rt, "max")
			exhaustion := rapid.SampledFrom([]Exhaustion{Wait, FailFast, Temporary}).Draw(rt, "exhaustion")
			cfg := Config{
				Max: max, Min: rapid.IntRange(0, max/2).Draw(rt, "min"), MaxUses: rapid.IntRange(0, 3).Draw(rt, "uses"),
				Keys:       []Key{{Language: "python"}, {Language: "bash"}},
				Exhaustion: exhaustion, Reuse: rapid.SampledFrom([]Reuse{ReuseNever, ReuseTenant}).Draw(rt, "reuse"),
				NoPrewarm:   rapid.Bool().Draw(rt, "no prewarm"),
				IdleTimeout: 10 * time.Second, Lifetime: 30 * time.Second, HealthInterval: 3 * time.Second,
			}
			m := &model{t: rt, max: max, held: map[*fakeBox]*Lease{}, last: map[*fakeBox]string{}}
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
			var draw sync.Mutex
			chance := func(percent int) bool {
				draw.Lock()
				defer draw.Unlock()
				return rng.IntN(100) < percent
			}
			m.fake = &fakeBackend{takes: time.Second}
			m.fake.failing = func(llmsandbox.Options) error {
				if m.failed.Load() && chance(70) {
					return errBroken
				}
				return nil
			}
			m.fake.made = func(b *fakeBox) {
				b.reset = func(context.Context) error {
					time.Sleep(100 * time.Millisecond)
					if chance(20) {
						return errBroken
					}
					return nil
				}
				b.closing = func() { time.Sleep(200 * time.Millisecond) }
			}
			cfg.open = m.fake.open
			p, err := New(&cfg)
			if err != nil {
				rt.Fatal(err)
			}
			m.pool = p
			keys := rapid.SampledFrom([]string{"python", "bash", "ruby"})
			tenants := rapid.SampledFrom([]string{"", "x", "y"})
			defer m.abandon()
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": func(t *rapid.T) { m.acquire(Key{Language: keys.Draw(t, "key")}, tenants.Draw(t, "tenant")) },
				"release": func(t *rapid.T) { m.release(m.pickHeld(t)) },
				"die":     func(t *rapid.T) { m.pickHeld(t).die() },
				"die idle": func(t *rapid.T) {
					for _, b := range m.boxes() {
						m.mu.Lock()
						free := m.held[b] == nil
						m.mu.Unlock()
						if free && !b.closed.Load() {
							b.die()
							return
						}
					}
					t.Skip("none is idle")
				},
				"cancel": func(t *rapid.T) {
					m.mu.Lock()
					defer m.mu.Unlock()
					if len(m.waiting) == 0 {
						t.Skip("no caller waits")
					}
					m.waiting[rapid.IntRange(0, len(m.waiting)-1).Draw(t, "who")].cancel()
				},
				"time":  func(t *rapid.T) { pass(time.Duration(rapid.IntRange(1, 8000).Draw(t, "ms")) * time.Millisecond) },
				"break": func(t *rapid.T) { m.failed.Store(!m.failed.Load()) },
				"":      func(t *rapid.T) { m.check(t, exhaustion == Temporary) },
			})
			m.finish(rt)
		})
	})
}

// abandon ends what a check that has failed has left.
func (m *model) abandon() {
	m.mu.Lock()
	for _, r := range m.waiting {
		r.cancel()
	}
	m.mu.Unlock()
	_ = m.pool.Close(cancelled())
	m.all.Wait()
}

// finish serves every waiting caller, and closes.
func (m *model) finish(t *rapid.T) {
	m.failed.Store(false)
	for range 200 {
		pass(2 * time.Second)
		synctest.Wait()
		m.mu.Lock()
		waiting := len(m.waiting)
		held := make([]*fakeBox, 0, len(m.held))
		for b := range m.held {
			held = append(held, b)
		}
		m.mu.Unlock()
		if waiting == 0 && len(held) == 0 {
			break
		}
		for _, b := range held {
			m.release(b)
		}
	}
	m.all.Wait()
	if s := m.pool.Stats(); s.Waiting != 0 || s.InUse != 0 {
		t.Errorf("%+v, want no waiter and nothing in use", s)
	}
	if err := m.pool.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, alive, _ := m.fake.count(); alive != 0 {
		t.Errorf("%d are left, want 0", alive)
	}
	for _, b := range m.boxes() {
		if !b.closed.Load() {
			t.Errorf("%s was never removed, want b.closed.Load() = true", b.id)
		}
	}
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	if len(m.pool.members) != 0 || m.pool.slots != 0 || m.pool.temporary != 0 || m.pool.filling != 0 || len(m.pool.kinds) > 2 {
		t.Errorf("the books do not balance: %s, want no members, slots = 0, temporary = 0, filling = 0, len(m.pool.kinds) <= 2", fmt.Sprint(m.pool.members, m.pool.slots, m.pool.temporary, m.pool.filling, len(m.pool.kinds)))
	}
}
