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
	"sync"
	"time"
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

// A Replica is a server as the database has it. Its Beats are how often it has said that it lives.
type Replica struct {
	ID, URL string
	Beats   int64
}

// A Held is a sandbox that a server holds. Its Network is what the sandbox can reach, in a form that the server chooses.
type Held struct {
	Sandbox, Project, Replica string
	Network                   string
}

// A Store is the database of all replicas. Its methods may be called concurrently.
type Store interface {
	// Beat says that a replica is at a URL and lives, and returns all replicas that there are.
	Beat(ctx context.Context, id, url string) ([]Replica, error)
	// Leave drops a replica that has not beaten more often than that; negative: however often it has.
	Leave(ctx context.Context, id string, beats int64) error
	// Held returns the sandboxes that a replica holds, and those whose holder is no replica.
	Held(ctx context.Context, id string) ([]Held, error)
	// Holder returns who holds a sandbox. It reports false for one that nobody does.
	Holder(ctx context.Context, sandbox string) (h Held, ok bool, err error)
	// Take has h.Replica hold a sandbox that the replica from has held, and reports whether that still did. Where from is empty, nobody may have held it.
	Take(ctx context.Context, h Held, from string) (taken bool, err error)
	// KeepNetwork keeps what a sandbox can reach.
	KeepNetwork(ctx context.Context, sandbox, network string) error
	// Drop forgets a sandbox that has ended, if that replica holds it.
	Drop(ctx context.Context, sandbox, replica string) error
}

// A Member is this server among the replicas. It is safe for concurrent use.
type Member struct {
	Store
	ID, url string

	mu     sync.Mutex
	beaten time.Time           // when the last beat that succeeded was begun
	others map[string]sighting // by id
}

// A sighting is what was seen of a replica, and since when it is so.
type sighting struct {
	Replica
	since time.Time
	lives context.Context // it ends when the replica does
	gone  context.CancelFunc
}

// New is a server that the others reach at a URL.
func New(store Store, url string) *Member {
	return &Member{Store: store, ID: rand.Text(), url: url, others: map[string]sighting{}}
}

// Beat says that this server lives, and drops those that have been silent for too long.
func (m *Member) Beat(ctx context.Context) error {
	now := time.Now()
	all, err := m.Store.Beat(ctx, m.ID, m.url)
	if err != nil {
		return err
	}
	m.mu.Lock()
	before := m.others
	m.beaten, m.others = now, map[string]sighting{}
	var silent []Replica
	for _, r := range all {
		seen, ok := before[r.ID]
		if !ok || seen.Beats != r.Beats {
			seen.since = now
		}
		if !ok {
			seen.lives, seen.gone = context.WithCancel(context.Background())
		}
		seen.Replica = r
		if r.ID != m.ID && now.Sub(seen.since) > silence {
			silent = append(silent, r)
			continue
		}
		m.others[r.ID] = seen
		delete(before, r.ID)
	}
	for _, was := range before {
		was.gone()
	}
	m.mu.Unlock()
	for _, r := range silent {
		if err := m.Leave(ctx, r.ID, r.Beats); err != nil {
			return err
		}
	}
	return nil
}

// Current reports whether what this server holds is surely its own.
func (m *Member) Current() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.beaten) < stale
}

// At is where a replica is that lives, and what ends when it does not any more; empty: it does not, as far as this server has seen.
func (m *Member) At(id string) (url string, lives context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.others[id]
	return seen.URL, seen.lives
}

// Hold has this server hold a sandbox that nobody holds, or whose holder is dead, and returns where another holds it.
func (m *Member) Hold(ctx context.Context, project, sandbox string) (h Held, url string, err error) {
	for range 3 { // each time another was faster
		h, held, err := m.Holder(ctx, sandbox)
		if err != nil {
			return h, "", err
		}
		if held && h.Replica == m.ID {
			return h, "", nil
		}
		if at, _ := m.At(h.Replica); held && at != "" {
			return h, at, nil
		}
		from := h.Replica
		h.Project, h.Replica = project, m.ID
		if taken, err := m.Take(ctx, h, from); err != nil || taken {
			return h, "", err
		}
	}
	return h, "", fmt.Errorf("sandbox %s goes from server to server", sandbox)
}
