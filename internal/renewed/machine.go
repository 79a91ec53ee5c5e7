// Package renewed has machines in whose place others may come: a sandbox that is made as new by
// creating it again stays one sandbox for those who use it.
package renewed

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Machine is one machine after the other. It has ended when one has that no other replaces.
type Machine struct {
	now   atomic.Pointer[one]
	mu    sync.Mutex // held while one comes in the place of another, or is ended
	done  chan struct{}
	ended sync.Once
}

// one is a machine, and whether anyone still waits for its end.
type one struct {
	backend.Machine
	left     chan struct{} // closed when it was replaced, or its handle was closed
	leftOnce sync.Once
}

var _ backend.Machine = (*Machine)(nil)

// New returns a Machine that is m until it is replaced.
func New(m backend.Machine) *Machine {
	r := &Machine{done: make(chan struct{})}
	r.put(m)
	return r
}

func (r *Machine) put(m backend.Machine) {
	now := &one{Machine: m, left: make(chan struct{})}
	r.now.Store(now)
	go r.follow(now)
}

// follow waits for the end of a machine, and of a replacement that is under way.
func (r *Machine) follow(m *one) {
	select {
	case <-m.Done():
	case <-m.left:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(m)
}

// look notes whether all has ended with a machine. The caller holds mu.
func (r *Machine) look(m *one) {
	select {
	case <-m.Done():
		if r.now.Load() == m {
			r.ended.Do(func() { close(r.done) })
		}
	default:
	}
}

func (m *one) leave() { m.leftOnce.Do(func() { close(m.left) }) }

// Replace puts what by returns for the machine in its place. While by runs, the end of the machine is not that of r. After an error it is.
func (r *Machine) Replace(by func(old backend.Machine) (backend.Machine, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.now.Load()
	next, err := by(old.Machine)
	if err != nil {
		return err
	}
	r.put(next)
	old.leave()
	return nil
}

// Done is closed when a machine has ended that no other replaces.
func (r *Machine) Done() <-chan struct{} { return r.done }

// Destroy waits for a replacement that is under way. After it, Done is closed, also where the machine's own handle is closed before that has
// seen the end.
func (r *Machine) Destroy(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.now.Load()
	defer r.look(m)
	err := m.Destroy(ctx)
	if err == nil {
		r.ended.Do(func() { close(r.done) })
	}
	return err
}

// Close waits for a replacement that is under way.
func (r *Machine) Close(endAgent func() bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.now.Load()
	defer r.look(m)
	defer m.leave()
	return m.Close(endAgent)
}

// Pauser is a machine's, or an error that says that its backend has none.
func Pauser(m backend.Machine) (backend.Pauser, error) {
	p, ok := m.(backend.Pauser)
	if !ok {
		return nil, fmt.Errorf("%w: the %s backend cannot pause sandboxes", backend.ErrUnsupported, m.Info().Backend)
	}
	return p, nil
}

// Pause implements [backend.Pauser]. It waits for a replacement that is under way.
func (r *Machine) Pause(ctx context.Context) error {
	return r.pauser(func(p backend.Pauser) error { return p.Pause(ctx) })
}

// Resume implements [backend.Pauser].
func (r *Machine) Resume(ctx context.Context) error {
	return r.pauser(func(p backend.Pauser) error { return p.Resume(ctx) })
}

func (r *Machine) pauser(do func(backend.Pauser) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := Pauser(r.now.Load().Machine)
	if err != nil {
		return err
	}
	return do(p)
}

// The other methods are those of the machine that there is now.

// ID implements [backend.Machine].
func (r *Machine) ID() string { return r.now.Load().ID() }

// Info implements [backend.Machine].
func (r *Machine) Info() backend.Info { return r.now.Load().Info() }

// Dial implements [backend.Machine].
func (r *Machine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	return r.now.Load().Dial(ctx)
}

// Guest implements [backend.Machine].
func (r *Machine) Guest() backend.Guest { return r.now.Load().Guest() }

// Capabilities implements [backend.Machine].
func (r *Machine) Capabilities() backend.Capabilities { return r.now.Load().Capabilities() }

// Usage implements [backend.Machine].
func (r *Machine) Usage(ctx context.Context) (backend.Usage, error) { return r.now.Load().Usage(ctx) }

// OOMKills implements [backend.Machine].
func (r *Machine) OOMKills(ctx context.Context) (int64, bool) { return r.now.Load().OOMKills(ctx) }

// SetDeadline implements [backend.Machine].
func (r *Machine) SetDeadline(ctx context.Context, at time.Time) error {
	return r.now.Load().SetDeadline(ctx, at)
}

// Commit implements [backend.Machine].
func (r *Machine) Commit(ctx context.Context, tag, overwrite string, files io.Reader) (string, []string, error) {
	return r.now.Load().Commit(ctx, tag, overwrite, files)
}

// End implements [backend.Machine].
func (r *Machine) End() backend.End { return r.now.Load().End() }
