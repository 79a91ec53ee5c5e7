// Package kernel runs kernels: interpreters in a sandbox that keep their state between
// cells. Each is one process, its driver, which reads requests and writes events as lines of
// JSON: docs/kernel-protocol.md describes that protocol.
//
// All that comes from a driver may be forged by the code in it. It is checked for its
// form and bounded in size here; what it claims is the code's own claim about itself.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/bounded"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// ErrClosed: the kernel was closed.
var ErrClosed = errors.New("kernel is closed")

// A Host is what a kernel needs of its sandbox beside the link to the agent.
type Host interface {
	// Start starts a process of the kernel's driver.
	Start(ctx context.Context) (Process, error)
	// Install installs libraries that a cell asks for, and returns the directories of all
	// that are installed.
	Install(ctx context.Context, libraries []string) (dirs []string, err error)
}

// Config describes a kernel.
type Config struct {
	ID       string
	Language *language.Language
	Link     *agentlink.Link
	Host     Host
	Set      *Set
	// TempDir is the sandbox's directory for temporary files.
	TempDir string
}

// A Kernel is one handle on an interpreter.
type Kernel struct {
	Config

	turn chan struct{} // holds a token while the driver is free
	// lost means that a driver has ended since the last cell, and no outcome has reported
	// it. It belongs to the holder of the turn.
	lost bool

	mu       sync.Mutex
	driver   *driver // nil: to be started
	closed   bool
	detached bool // implies closed: the process lives on
	info     Info
	stopped  chan struct{} // closed with the kernel

	// resumed is closed at the end of the turn that Attach returned; nil without Attach.
	resumed chan struct{}

	interrupting sync.Mutex
	active       *running // guarded by interrupting
}

// Info describes a kernel's interpreter as it describes itself.
type Info struct {
	ID       string
	Language string
	Version  string
	Flavor   string
}

func newKernel(c Config) *Kernel {
	return &Kernel{Config: c, turn: make(chan struct{}, 1), stopped: make(chan struct{}), info: Info{ID: c.ID, Language: c.Language.Name}}
}

// Open starts a kernel and waits until it is ready.
func Open(ctx context.Context, c Config) (*Kernel, error) {
	k := newKernel(c)
	if !c.Set.add(k) {
		return nil, c.Link.Alive()
	}
	if _, err := k.started(ctx); err != nil {
		k.Close()
		return nil, err
	}
	k.turn <- struct{}{}
	return k, nil
}

// Info describes the kernel.
func (k *Kernel) Info() Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.info
}

// Close ends the kernel and all it started, and waits for the turn that Attach returned. It
// may be called more than once.
func (k *Kernel) Close() {
	d, detached := k.close(false)
	if d != nil && !detached {
		d.stop()
	}
	if k.resumed != nil {
		<-k.resumed
	}
	k.Set.remove(k)
}

// close closes the handle. With detach, its process lives on.
func (k *Kernel) close(detach bool) (d *driver, detached bool) {
	k.mu.Lock()
	first := !k.closed
	k.closed, k.detached = true, k.detached || detach
	d, detached = k.driver, k.detached
	k.mu.Unlock()
	if first {
		close(k.stopped)
	}
	return d, detached
}

// leave closes the handle and lets the process live.
func (k *Kernel) leave() {
	k.close(true)
	k.Set.remove(k)
}

// Alive returns why the kernel cannot be used, or nil.
func (k *Kernel) Alive() error {
	if err := k.Link.Alive(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.detached:
		return fmt.Errorf("the %s kernel goes on without this handle: %w: use AttachKernel", k.Language.Title, agentlink.ErrDetached)
	case k.closed:
		return fmt.Errorf("the %s kernel: %w", k.Language.Title, ErrClosed)
	}
	return nil
}

func (k *Kernel) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// A Turn is the use of a kernel's driver, by one caller at a time.
type Turn struct {
	kernel  *Kernel
	driver  *driver
	running *running // nil before Begin
	busy    func()   // tells the agent that the driver works no longer
	resumes bool     // it is the one that Attach returned
}

// Take waits for the kernel's turn, and starts a driver when there is none. End must then be
// called.
func (k *Kernel) Take(ctx context.Context) (*Turn, error) {
	if err := k.Alive(); err != nil {
		return nil, err
	}
	select {
	case <-k.turn:
	case <-k.stopped:
		return nil, k.Alive()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d, err := k.started(ctx)
	if err != nil {
		k.turn <- struct{}{}
		return nil, err
	}
	return &Turn{kernel: k, driver: d}, nil
}

// End lets the next caller use the driver.
func (t *Turn) End() {
	if t.running != nil {
		t.driver.process.Acknowledge() // another handle begins after this cell
		t.busy()
	}
	if t.resumes {
		close(t.kernel.resumed)
	}
	t.kernel.turn <- struct{}{}
}

// started returns the kernel's driver, having started it where there is none that
// lives. The caller has the turn.
func (k *Kernel) started(ctx context.Context) (*driver, error) {
	k.mu.Lock()
	d := k.driver
	k.mu.Unlock()
	if d != nil {
		select {
		case <-d.gone:
			k.discard(ctx, d)
			if err := k.Alive(); err != nil {
				return nil, err
			}
		default:
			return d, nil
		}
	}
	p, err := k.Host.Start(ctx)
	if err != nil {
		return nil, err
	}
	d = k.newDriver(p)
	go d.follow()
	k.mu.Lock()
	k.driver = d
	closed := k.closed
	k.mu.Unlock()
	if closed {
		d.kill()
		<-d.gone
		return nil, k.Alive()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyGrace, fmt.Errorf("it was not ready after %v", readyGrace))
	defer cancel()
	if err := k.ready(ctx, d); err != nil {
		d.kill()
		<-d.gone
		return nil, err
	}
	return d, nil
}

// discard notes that a driver has ended, and ends one whose stream was lost: nothing can
// make use of its state any more. The caller has the turn.
func (k *Kernel) discard(ctx context.Context, d *driver) {
	k.lost = k.lost || !d.reported
	d.reported = true
	switch {
	case d.lost == nil:
		return
	case d.taken():
		k.leave()
		return
	}
	client, err := k.Link.Client(ctx)
	if err == nil && client.Info().Instance == d.process.Agent {
		d.kill()
	}
}

// readyGrace bounds how long a driver may take until it is ready.
const readyGrace = 2 * time.Minute

// maxFirstOutput bounds what is kept of what a driver writes when it cannot start.
const maxFirstOutput = 4 << 10

// ready waits until the driver says that it is.
func (k *Kernel) ready(ctx context.Context, d *driver) error {
	defer d.process.Busy()()
	output := bounded.Writer{Most: maxFirstOutput}
	d.err.Begin(d.process.Tag.Mark, &output)
	defer d.err.End()
	select {
	case e := <-d.events:
		if e.Event != EventReady {
			return fmt.Errorf("%w: its first event is %q", ErrProtocol, e.Event)
		}
		k.describe(e.Version, e.Flavor)
		return nil
	case <-d.gone:
		d.err.End()
		if err := d.unknown(); err != nil {
			return err
		}
		text := strings.TrimSpace(string(output.Kept))
		if text != "" {
			text = ": " + text
		}
		return fmt.Errorf("its process ended before it was ready (%s)%s", ending(d.exit), text)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *Kernel) describe(version, flavor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.info.Version, k.info.Flavor = version, flavor
}

// Restart ends the kernel's process, with the cell that runs and all that cells have
// defined or started, and starts a new one.
func (k *Kernel) Restart(ctx context.Context) error {
	k.mu.Lock()
	d := k.driver
	k.mu.Unlock()
	k.interrupting.Lock()
	if k.active != nil {
		k.active.restart.Store(true)
	}
	k.interrupting.Unlock()
	if d != nil {
		ended := make(chan struct{})
		go func() { d.stop(); close(ended) }()
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	t, err := k.Take(ctx)
	if err != nil {
		return fmt.Errorf("restart the %s kernel: %w", k.Language.Title, err)
	}
	k.lost = false // the caller knows
	t.End()
	return nil
}

// A Set is the open kernels of a sandbox. The zero value is an empty one.
type Set struct {
	mu     sync.Mutex
	open   map[*Kernel]bool
	closed bool
}

// add reports false when the set was closed.
func (s *Set) add(k *Kernel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.open == nil {
		s.open = map[*Kernel]bool{}
	}
	s.open[k] = true
	return true
}

func (s *Set) remove(k *Kernel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
}

// Close closes all kernels, and lets none be added.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.CloseOpen()
}

// CloseOpen closes the kernels that are open.
func (s *Set) CloseOpen() {
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for k := range open {
		k.Close()
	}
}
