package llmsandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/supervisor"
)

// A Supervisor is a program that opens and owns a sandbox in place of the process that calls
// [Open], so that the sandbox outlives it. There is one process for each sandbox.
type Supervisor struct {
	// Command is the program with its arguments, which calls [Supervise]: a program may name
	// itself. The llmsandbox command does it as "llmsandbox supervise".
	Command []string
	// Config is for the function that returns the backend there, which has to be the one
	// of Options. It goes by the program's standard input, and may hold secrets.
	Config []byte
}

// An order is what a supervisor is started with: its Config, and the Options, whose fields that JSON leaves out are this process's own.
type order struct {
	Config      []byte
	TakeOver    bool   // of the sandbox Options.ID, with Options.Network
	Declaration []byte // of the language, if a file declares it
	Options     Options
}

// openSupervised has a supervisor open the sandbox, and attaches to it.
func openSupervised(ctx context.Context, o Options, lang *language.Language) (*Sandbox, error) {
	if err := o.Supervisor.check(o.Network); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if environments.IsPath(o.Environment) { // the supervisor has another working directory
		path, err := filepath.Abs(o.Environment)
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", o.Environment, err)
		}
		o.Environment = path
	}
	progress := func(text json.RawMessage) {
		var p backend.Progress
		if o.Progress != nil && json.Unmarshal(text, &p) == nil {
			o.Progress(p)
		}
	}
	started, err := supervisor.Start(ctx, o.Supervisor.Command, order{Config: o.Supervisor.Config, Declaration: lang.Declaration, Options: o}, progress)
	if err != nil {
		return nil, asTold(err)
	}
	s, err := Attach(ctx, started.ID, &AttachOptions{
		Backend: o.Backend, Language: o.Language, Limits: Limits{Timeout: o.Limits.Timeout, Output: o.Limits.Output},
		Progress: o.Progress, Artifacts: o.Artifacts, Policy: o.Policy, Logger: o.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, started.End())
	}
	return s, started.Release()
}

// supervise has a supervisor take a sandbox over.
func (t *TakeOver) supervise(ctx context.Context, id string) error {
	if err := t.Supervisor.check(t.Network); err != nil {
		return fmt.Errorf("take over sandbox %s: %w", id, err)
	}
	o := order{Config: t.Supervisor.Config, TakeOver: true, Options: Options{ID: id, Network: t.Network}}
	started, err := supervisor.Start(ctx, t.Supervisor.Command, o, func(json.RawMessage) {})
	if err != nil {
		return asTold(err)
	}
	return started.Release()
}

// check fails for a supervisor that cannot serve the network.
func (s *Supervisor) check(n Network) error {
	switch {
	case len(s.Command) == 0:
		return fmt.Errorf("%w: the supervisor has no Command", ErrInvalid)
	case n.Resolve != nil || n.Roots != nil || n.Hook != nil:
		return fmt.Errorf("%w: a supervisor serves the network, and has no use for Resolve, Roots and Hook of this process", ErrInvalid)
	}
	return nil
}

// Supervise is the whole of a [Supervisor]'s program: it opens the sandbox that it was started for
// on the backend that open returns for the Supervisor's Config, and owns it until it ends or ctx
// does. open may be nil for the embedded local backend. It reads the program's standard input and
// writes to its standard output; once the sandbox is open, the standard streams are
// /dev/null, and the working directory is /.
func Supervise(ctx context.Context, open func(config []byte) (backend.Backend, error)) error {
	s, err := openOrdered(ctx, open)
	if err != nil {
		supervisor.Say(supervisor.Answer{Error: &supervisor.Error{Text: err.Error(), Kind: kindOf(err)}})
		return err
	}
	served, err := supervisor.Serve(s.backend, s.ID(), owner{s})
	if err != nil {
		supervisor.Say(supervisor.Answer{Error: &supervisor.Error{Text: err.Error(), Kind: kindOf(err)}})
		return errors.Join(err, s.Close())
	}
	supervisor.Say(supervisor.Answer{ID: s.ID()})
	if err := supervisor.LetGo(); err != nil {
		return errors.Join(err, served.Close(), s.Close())
	}
	select {
	case <-s.Done():
	case <-ctx.Done():
	}
	return errors.Join(served.Close(), s.Close())
}

func openOrdered(ctx context.Context, open func([]byte) (backend.Backend, error)) (*Sandbox, error) {
	var o order
	if err := supervisor.Order(&o); err != nil {
		return nil, err
	}
	if o.Declaration != nil {
		if _, err := all.LoadText(o.Options.Language, o.Declaration); err != nil {
			return nil, err
		}
	}
	var b backend.Backend
	if open != nil {
		var err error
		if b, err = open(o.Config); err != nil {
			return nil, err
		}
	}
	if o.TakeOver { // of whatever language: the supervisor runs nothing
		return Attach(ctx, o.Options.ID, &AttachOptions{Backend: b, Language: DefaultLanguage, TakeOver: &TakeOver{Network: o.Options.Network}})
	}
	o.Options.Backend = b
	o.Options.Progress = func(p backend.Progress) {
		text, _ := json.Marshal(p) // it has a JSON form
		supervisor.Say(supervisor.Answer{Progress: text})
	}
	return Open(ctx, &o.Options)
}

// kinds are the error values that keep their meaning on the way from a supervisor; an error that
// is several of them is the first one.
var kinds = []struct {
	name string
	err  error
}{
	{"not_enforced", ErrNotEnforced}, {"unsupported", ErrUnsupported}, {"image_not_found", ErrImageNotFound}, {"image_invalid", ErrImageInvalid},
	{"unknown_language", ErrUnknownLanguage}, {"toolchain", ErrToolchain}, {"refused", ErrRefused}, {"lost", ErrLost}, {"closed", ErrClosed}, {"invalid", ErrInvalid},
	{"not_found", ErrNotFound}, {"environment_not_found", ErrEnvironmentNotFound}, {"volume_not_found", ErrVolumeNotFound},
	{"no_space", syscall.ENOSPC}, {"no_files", syscall.EMFILE}, // of the machine
}

func kindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// asTold gives a supervisor's error its meaning.
func asTold(err error) error {
	var told *supervisor.Error
	if !errors.As(err, &told) {
		return err
	}
	for _, k := range kinds {
		if k.name == told.Kind {
			return errclass.Of(k.err, err)
		}
	}
	return err
}

// owner answers for the sandbox of a supervisor.
type owner struct{ *Sandbox }

func (o owner) Kind(err error) string   { return kindOf(err) }
func (o owner) Record() *gateway.Record { return o.net.Record() }

func (o owner) Network() supervisor.Network {
	n := supervisor.Network{Mode: string(NetworkNone)}
	n.Sent, n.Received = o.net.Log.Total.Bytes()
	if on := o.net.Served(); on != nil {
		n.Mode, n.Allow, n.Env = on.Mode, on.Allow, on.Env
	}
	return n
}

func (o owner) SetNetwork(ctx context.Context, mode string, allow []string) error {
	return o.Sandbox.SetNetwork(ctx, Network{Mode: NetworkMode(mode), Allow: allow})
}

// A supervisedNetwork is a sandbox's network as its supervisor serves it.
type supervisedNetwork struct {
	Network
	environ []string // the sandbox's whole environment
}

// attachSupervisor finds the supervisor of a sandbox that was attached to, if it has one.
func (s *Sandbox) attachSupervisor(ctx context.Context) error {
	var err error
	if s.supervisor, err = supervisor.Find(ctx, s.backend, s.ID()); err != nil || s.supervisor == nil {
		return err
	}
	return s.askNetwork(ctx)
}

func (s *Sandbox) askNetwork(ctx context.Context) error {
	n, err := s.supervisor.Network(ctx)
	if err != nil {
		return asTold(err)
	}
	// What the sandbox was opened with may be out of date; what the handle was given is not.
	guest := s.machine.Guest()
	opened := gateway.EnvIn(guest, guest.Env)
	env := slices.DeleteFunc(slices.Clone(s.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(opened, kv) && environ.Value(n.Env, name) != ""
	})
	s.net.supervised.Store(&supervisedNetwork{Network{Mode: NetworkMode(n.Mode), Allow: n.Allow}, environ.AddMissing(env, n.Env)})
	return nil
}

// setSupervisedNetwork has the supervisor change the network.
func (s *Sandbox) setSupervisedNetwork(ctx context.Context, n Network) error {
	if n.Resolve != nil || n.Roots != nil || n.Hook != nil {
		return fmt.Errorf("change the network of sandbox %s: %w: its supervisor serves it, and has no use for Resolve, Roots and Hook of this process", s.ID(), ErrInvalid)
	}
	if err := s.supervisor.SetNetwork(ctx, supervisor.Network{Mode: string(n.Mode), Allow: n.Allow}); err != nil {
		return asTold(err)
	}
	return s.askNetwork(ctx)
}

// A networkRecord has what a run tries to reach, see [gateway.Record].
type networkRecord interface {
	End(settle time.Duration) (attempts []egress.Attempt, dropped int)
}

// recordNetwork begins a record; nil where there is no network, or another process serves it.
func (s *Sandbox) recordNetwork(ctx context.Context) networkRecord {
	if r := s.net.Record(); r != nil {
		return r
	}
	if n := s.net.supervised.Load(); n == nil || n.Mode == NetworkNone {
		return nil
	}
	const failed = "what a run has tried to reach is not known"
	r, err := s.supervisor.Record(ctx, func(err error) { s.link.Warn(failed, err) })
	if err != nil {
		s.link.Warn(failed, err)
		return nil
	}
	return r
}

// resetSupervised has the supervisor reset the sandbox.
func (s *Sandbox) resetSupervised(ctx context.Context) error {
	s.kernels.CloseOpen()
	s.dropAhead(ctx)
	err := s.replace(func(old backend.Machine) (backend.Machine, error) {
		if err := s.supervisor.Reset(ctx); err != nil {
			return nil, asTold(err)
		}
		next, err := s.attach(ctx) // it may have been created again
		if err != nil {
			return nil, asTold(err)
		}
		if err := old.Close(nil); err != nil {
			return nil, errors.Join(err, next.Close(nil))
		}
		return next, nil
	})
	if err != nil {
		return err
	}
	s.ClearArtifacts()
	s.libraries.Forget()
	return s.askNetwork(ctx)
}
