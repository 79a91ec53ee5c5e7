// Package replicas is how several servers of one backend and one database agree on which of them holds which sandbox: the others send it the requests
// for that sandbox, and one of them takes it when its holder has died.
//
// A server lives as long as it says so: it counts in the database, and the others watch whether the count goes on, each by its own clock. So clocks need not
// agree, and may be set.
package replicas

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

const (
	// Pause is between two beats.
	Pause = 2 * time.Second
	// silence is how long a server may say nothing until another drops it. An agent waits a minute for an owner that has died: what is left of it is
	// for taking many sandboxes.
	silence = 5 * Pause
	// stale is how long after its last beat a server still counts on what it holds. Nobody has dropped it by then.
	stale = silence / 2
)

// A Held is a sandbox and the server that holds it.
type Held struct{ Sandbox, Project, Holder, Network string }

// A Member is this server among the replicas. It is safe for concurrent use.
type Member struct {
	ID    string
	store database.Replicas
	url   string

	mu     sync.Mutex
	beaten time.Time           // when the last beat that succeeded was begun
	others map[string]sighting // by id
}

// A sighting is what was seen of a server, and since when it is so.
type sighting struct {
	url   string
	beats int64
	since time.Time
	lives context.Context // it ends when the server does
	gone  context.CancelFunc
}

// New is a server that the others reach at a URL.
func New(store database.Replicas, url string) *Member {
	return &Member{store: store, ID: strings.ToLower(rand.Text()[:13]), url: url, others: map[string]sighting{}}
}

// NewName makes an id that nobody can guess of something that this server alone has. By tells whose it is.
func (m *Member) NewName() string { return m.ID + "-" + strings.ToLower(rand.Text()) }

// By is where the server is that has made an id, as At returns it; empty: it was this one, or none that lives.
func (m *Member) By(name string) (url string, lives context.Context) {
	id, _, ok := strings.Cut(name, "-")
	if !ok || id == m.ID {
		return "", nil
	}
	return m.At(id)
}

// Beat says that this server lives, and drops those that have been silent for too long.
func (m *Member) Beat(ctx context.Context) error {
	now := time.Now()
	m.mu.Lock()
	before := maps.Clone(m.others)
	m.mu.Unlock()
	others, silent := map[string]sighting{}, map[string]int64{}
	err := m.store.Beat(ctx, m.ID, m.url, func(id, url string, beats int64) {
		seen, ok := before[id]
		if !ok {
			seen.lives, seen.gone = context.WithCancel(context.Background())
		}
		if !ok || seen.beats != beats {
			seen.since = now
		}
		seen.url, seen.beats = url, beats
		if id != m.ID && now.Sub(seen.since) > silence {
			silent[id] = beats
			return
		}
		others[id] = seen
		delete(before, id)
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.beaten, m.others = now, others
	m.mu.Unlock()
	for _, was := range before {
		was.gone()
	}
	for id, beats := range silent {
		if err := m.store.Leave(ctx, id, beats); err != nil {
			return err
		}
	}
	return nil
}

// Leave says that this server ends, so that the others need not wait until it is silent.
func (m *Member) Leave(ctx context.Context) error { return m.store.Leave(ctx, m.ID, -1) }

// Current reports whether what this server holds is surely its own.
func (m *Member) Current() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.beaten) < stale
}

// At is where a server is that lives, and what ends when it does not any more; empty: it does not, as far as this server has seen.
func (m *Member) At(id string) (url string, lives context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.others[id]
	return seen.url, seen.lives
}

// Holder is the server that holds a sandbox; empty: none does.
func (m *Member) Holder(ctx context.Context, sandbox string) (string, error) {
	holder, _, err := m.store.Holder(ctx, sandbox)
	return holder, err
}

// Held are the sandboxes that this server holds, and those whose holder has died.
func (m *Member) Held(ctx context.Context) (all []Held, err error) {
	return all, m.store.Held(ctx, m.ID, func(sandbox, project, holder, network string) {
		all = append(all, Held{sandbox, project, holder, network})
	})
}

// Make has this server hold a sandbox that is to be made.
func (m *Member) Make(ctx context.Context, project, sandbox, network string) error {
	_, err := m.store.Take(ctx, sandbox, project, network, m.ID, "")
	return err
}

// Hold has this server hold a sandbox that nobody holds, or whose holder is dead, and returns what that can reach, or where another holds it.
func (m *Member) Hold(ctx context.Context, project, sandbox string) (network, url string, err error) {
	for range 3 { // each time another was faster
		holder, network, err := m.store.Holder(ctx, sandbox)
		if err != nil || holder == m.ID {
			return network, "", err
		}
		if at, _ := m.At(holder); at != "" {
			return "", at, nil
		}
		if taken, err := m.store.Take(ctx, sandbox, project, "", m.ID, holder); err != nil || taken {
			return network, "", err
		}
	}
	return "", "", fmt.Errorf("sandbox %s goes from server to server", sandbox)
}

// KeepNetwork keeps what a sandbox can reach, for who takes it.
func (m *Member) KeepNetwork(ctx context.Context, sandbox, network string) error {
	return m.store.KeepNetwork(ctx, sandbox, network)
}

// Drop forgets a sandbox that has ended, if that server holds it.
func (m *Member) Drop(ctx context.Context, sandbox, holder string) error {
	return m.store.Drop(ctx, sandbox, holder)
}
