package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layers"
	"github.com/llmsandbox/llmsandbox/internal/renewed"
	"github.com/llmsandbox/llmsandbox/internal/supervisor"
)

// A Sandbox is one isolated place with its own files and processes, from [Open] or
// [Attach] to Close. It is safe for concurrent use.
type Sandbox struct {
	machine  backend.Machine
	backend  string
	language *language.Language
	limits   Limits
	env      []string
	policy   Policy

	// artifacts say what results carry, produced what they have carried.
	artifacts ArtifactOptions
	produced  produced

	net sandboxNetwork
	// supervisor is the process that owns the sandbox; nil where that is not known to this user.
	supervisor *supervisor.Client
	attach     func(context.Context) (backend.Machine, error) // again; nil: it was not attached to
	link       *agentlink.Link
	programs   programs
	runs       runCounter
	ahead      heldAhead
	imports    []string // of Options
	zygote     bool     // its interpreter is forked into other sandboxes: see Zygote

	libraries  *layers.Installed
	installing installing

	kernels kernel.Set

	keepsFiles bool // see Options.KeepFiles

	// made is what Open has made, for Reset; nil: it was not asked for.
	made *made

	closeOnce sync.Once
	closeErr  error
}

// newSandbox is a handle on a machine of a backend. What a caller may choose beside it is
// the caller's to set.
func newSandbox(b backend.Backend, machine backend.Machine, lang *language.Language, limits Limits, log *slog.Logger) *Sandbox {
	link := agentlink.New(machine, log)
	return &Sandbox{
		machine: machine, backend: b.Name(), language: lang, limits: limits, env: machine.Guest().Env, link: link,
		net:       sandboxNetwork{Network: gateway.NewNetwork(link, machine)},
		libraries: layers.NewInstalled(link, machine), installing: installing{maker: newMaker(b)},
	}
}

// ID is the sandbox's id, by which [Attach] finds it.
func (s *Sandbox) ID() string { return s.machine.ID() }

// Backend is the name of the backend that runs the sandbox.
func (s *Sandbox) Backend() string { return s.backend }

// Language is the name of the language that Run executes by default.
func (s *Sandbox) Language() string { return s.language.Name }

// Labels are those that the sandbox was opened with.
func (s *Sandbox) Labels() map[string]string { return maps.Clone(s.machine.Info().Labels) }

// Workdir is the sandbox's writable working directory.
func (s *Sandbox) Workdir() string { return s.machine.Guest().Workdir }

// Capabilities says control by control what is enforced for this sandbox, and by
// what, or why it is not.
func (s *Sandbox) Capabilities() backend.Capabilities { return s.net.Declare(s.machine.Capabilities()) }

// Usage returns what the sandbox as a whole uses, as far as it is known.
func (s *Sandbox) Usage(ctx context.Context) (backend.Usage, error) {
	if err := s.link.Lives(); err != nil {
		return backend.Usage{}, err
	}
	return s.machine.Usage(ctx)
}

// SetDeadline has the sandbox end at that time, whatever runs in it, in place of the
// deadline it had; the zero time is never. Any handle may do that, and [List] shows it.
// With an error the deadline may be either.
func (s *Sandbox) SetDeadline(ctx context.Context, at time.Time) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	if err := s.machine.SetDeadline(ctx, at); err != nil {
		return fmt.Errorf("sandbox %s: set its deadline: %w", s.ID(), err)
	}
	return nil
}

// Deadline is when the sandbox ends, and whether it does: what it was opened or attached to
// with, or this handle's last SetDeadline. [List] tells what other handles have set.
func (s *Sandbox) Deadline() (at time.Time, set bool) {
	at = s.machine.Info().Deadline
	return at, !at.IsZero()
}

// Pause stops all that runs in the sandbox until Resume. Processes, memory, files and
// connections stay as they are, and so does what is left of every time limit: the deadline moves by as
// long as the sandbox is paused. Until then this handle's methods that need the sandbox fail with ErrPaused, and what other
// handles ask for waits. Destroy and Close work as ever. It fails with ErrPaused where it is
// paused already, and with ErrUnsupported where the backend, or this machine, cannot: after an error the
// sandbox goes on.
func (s *Sandbox) Pause(ctx context.Context) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	s.link.SetPaused(true) // before it is, so that nothing is asked of it in vain
	p, err := renewed.Pauser(s.machine)
	if err == nil {
		err = p.Pause(ctx)
	}
	if err != nil && !errors.Is(err, ErrPaused) {
		s.link.SetPaused(false)
	}
	if err != nil {
		return fmt.Errorf("pause sandbox %s: %w", s.ID(), err)
	}
	return nil
}

// Resume lets a sandbox that was paused, by any handle, go on. One that is not paused goes on
// anyway. After an error it may be paused still.
func (s *Sandbox) Resume(ctx context.Context) error {
	if err := s.link.Lives(); err != nil {
		return err
	}
	p, err := renewed.Pauser(s.machine)
	if err == nil {
		err = p.Resume(ctx)
	}
	if err != nil {
		return fmt.Errorf("resume sandbox %s: %w", s.ID(), err)
	}
	s.link.SetPaused(false)
	return nil
}

// Paused reports whether the sandbox is paused, by this handle or before it was attached to. [List] tells what other handles have done.
func (s *Sandbox) Paused() bool {
	_, is := s.link.Paused()
	return is
}

// Done is closed when the sandbox has ended, for whatever reason.
func (s *Sandbox) Done() <-chan struct{} { return s.machine.Done() }

// Close ends the sandbox and removes all of it: processes, files, mounts. A
// sandbox that [Attach] returned lives on, and only the connection is closed. Close
// may be called more than once, and while runs go on: they end as lost.
func (s *Sandbox) Close() error {
	s.closeOnce.Do(func() {
		s.link.Leave()
		s.net.Stop()
		_, paused := s.link.Paused()
		if !paused {
			s.kernels.Close()
		}
		s.closeErr = s.machine.Close(s.link.Shutdown)
		s.link.Close()
		if paused { // they could not end before, and in a sandbox that lives on they do not
			s.kernels.Close()
		}
		if s.supervisor != nil {
			s.supervisor.Close()
		}
		s.net.mu.Lock() // a change under way fails by now
		defer s.net.mu.Unlock()
		s.net.Stop()
	})
	return s.closeErr
}

// Destroy ends the sandbox and removes all of it, also when it was attached to.
func (s *Sandbox) Destroy(ctx context.Context) error {
	s.link.Leave()
	err := s.machine.Destroy(ctx)
	return errors.Join(err, s.Close())
}
