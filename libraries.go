package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layers"
)

// InstallOptions say how libraries are installed. The zero value installs from the
// registries that this machine's package tools are configured for.
type InstallOptions struct {
	// Offline uses only what is cached or in Local; no network.
	Offline bool
	// Local is a directory of this machine with wheels, tarballs or gems to install from.
	Local string
	// Timeout bounds one installation; 0 means ten minutes.
	Timeout time.Duration
}

// Install makes libraries of the sandbox's language importable for all later runs,
// commands and kernels. Each is named as its ecosystem names it, with a version
// constraint if need be: "six", "requests>=2,<3", "@types/node@20", "nokogiri:1.15.0".
//
// They are installed in a sandbox of their own, which has no files of this one, network to
// nothing but the package registries, and its own limits; what it makes is cached by
// language, toolchain, image and list, and copied into this sandbox. A list that is cached
// needs no network. Installing one that the sandbox has already does nothing, and so does
// an empty one. opts may be nil; then Options.Install counts.
//
// It fails with ErrInvalid for what is no name of a library, before anything runs, with an
// *InstallError when the package tool failed, with ErrToolchain when there is none, and
// with ErrUnsupported for a language or backend that has no libraries.
func (s *Sandbox) Install(ctx context.Context, libraries []string, opts *InstallOptions) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	return s.install(ctx, s.language.Name, libraries, opts)
}

func (s *Sandbox) install(ctx context.Context, lang string, libraries []string, opts *InstallOptions) error {
	if len(libraries) == 0 {
		return nil
	}
	language, err := all.Get(lang)
	if err != nil {
		return err
	}
	if err := s.policy.checkLibraries(language, libraries); err != nil {
		return err
	}
	opts = cmp.Or(opts, &s.installing.InstallOptions)
	info := s.machine.Info()
	spec := backend.Spec{Image: info.Image, Language: info.Language, Progress: s.installing.progress}
	if s.installing.opened {
		spec.Image = s.installing.image
	}
	list, err := s.installing.maker.Libraries(language, libraries, layers.Options(*opts), spec)
	if err != nil {
		return err
	}
	return asInstallError(s.libraries.Add(ctx, list.On(s.machine.Guest().Env)))
}

// installing is how libraries are installed for a sandbox.
type installing struct {
	InstallOptions // where a call has none
	maker          layers.Maker
	progress       func(backend.Progress)
	opened         bool   // by this handle
	image          string // that the sandbox was opened with, if it was by this handle
}

// An InstallError says why libraries could not be installed: there is no such package,
// it does not build, its versions conflict, or it took too long. It wraps ErrInstall, and
// Err if there is one.
type InstallError struct {
	Language  string
	Libraries []string // canonical, sorted
	// Environment is the name of the environment that they are; empty when they are none.
	Environment string
	// Status is what became of the package tool; empty when it did not come to run.
	Status Status
	// Output are the package tool's own last lines.
	Output string
	// Err is the cause when it was not the package tool.
	Err error
}

// Error says what failed, why, and the tool's last lines.
func (e *InstallError) Error() string {
	return (&layers.Error{Language: e.Language, Libraries: e.Libraries, Environment: e.Environment, Status: string(e.Status), Output: e.Output, Err: e.Err}).Error()
}

// Unwrap makes errors.Is find ErrInstall and the cause.
func (e *InstallError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrInstall}
	}
	return []error{ErrInstall, e.Err}
}

// asInstallError makes an InstallError of what says the same.
func asInstallError(err error) error {
	var failed *layers.Error
	if !errors.As(err, &failed) {
		return err
	}
	return &InstallError{Language: failed.Language, Libraries: failed.Libraries, Environment: failed.Environment, Status: Status(failed.Status), Output: failed.Output, Err: failed.Err}
}

// A makingSandbox is a sandbox that a layer is made in, as package layers sees it.
type makingSandbox struct {
	*Sandbox
	port uint16 // of its proxy; 0 is the usual one
}

// newMaker is the maker of a backend's layers.
func newMaker(b backend.Backend) layers.Maker { return layers.Maker{Backend: b, Open: openMaking} }

func openMaking(ctx context.Context, b backend.Backend, lang *language.Language, spec backend.Spec, limits layers.Limits) (layers.Sandbox, error) {
	s, err := newMaking(ctx, b, lang, spec, limits)
	if err != nil {
		return nil, err
	}
	return s, nil // not a nil *makingSandbox in an interface
}

func newMaking(ctx context.Context, b backend.Backend, lang *language.Language, spec backend.Spec, limits layers.Limits) (*makingSandbox, error) {
	spec.ID = newID()
	machine, err := b.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &makingSandbox{Sandbox: newSandbox(b, machine, lang, Limits{Memory: spec.Limits.Memory, Output: limits.Output, Timeout: limits.Timeout}, nil)}, nil
}

// Ports of proxies of sandboxes that install beside another one: below those that the kernel hands out, above that of sandboxes.
const (
	firstMakingPort = 28500
	makingPorts     = 1000
)

// inPlaceMaker installs libraries in a container or pod that exists. It has its own network, which code may use as well, and what
// serves another sandbox in it has the usual port.
func inPlaceMaker(b backend.Backend) layers.Maker {
	open := func(ctx context.Context, b backend.Backend, lang *language.Language, spec backend.Spec, limits layers.Limits) (layers.Sandbox, error) {
		s, err := newMaking(ctx, b, lang, spec, limits)
		if err != nil {
			return nil, err
		}
		s.net.lenient, s.port = true, firstMakingPort+mathrand.N[uint16](makingPorts)
		return s, nil
	}
	return layers.Maker{Backend: b, Open: open, InPlace: true}
}

func (s *makingSandbox) Client(ctx context.Context) (*agentclient.Client, error) {
	return s.link.Client(ctx)
}

func (s *makingSandbox) Guest() backend.Guest { return s.machine.Guest() }

func (s *makingSandbox) Run(ctx context.Context, o layers.Run) (layers.Outcome, error) {
	var r *run
	err := s.tryPrograms(func() error {
		plan, err := o.Plan(s.programs.choose)
		if err != nil {
			return err
		}
		if r, err = s.newExecution(execution{stdout: o.Output, stderr: o.Output, timeout: o.Timeout}); err != nil {
			return err
		}
		r.language = s.language
		return r.execute(ctx, plan)
	})
	if r == nil {
		return layers.Outcome{}, err
	}
	res, err := r.result(ctx, err)
	out := layers.Outcome{Status: string(res.Status), Reason: res.Reason, Stdout: res.Stdout, Stderr: res.Stderr}
	for _, a := range res.Network {
		out.Attempts = append(out.Attempts, egress.Attempt(a))
	}
	return out, err
}

func (s *makingSandbox) Reach(ctx context.Context, policy *egress.Policy) error {
	plan, err := gateway.NewPlan(egress.Config{Policy: policy}, s.net.Log, s.port)
	if err != nil {
		return fmt.Errorf("reach the registries: %w", err)
	}
	return s.startNetwork(ctx, plan, nil)
}

// errRunTimeout is the cause of a context that a run's own timeout has ended.
var errRunTimeout = errors.New("the run took longer than its timeout")

// install installs a run's own libraries, which counts against its timeout.
func (r *run) install(ctx context.Context, libraries []string) error {
	if len(libraries) == 0 {
		return nil
	}
	r.started = time.Now()
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, errRunTimeout)
		defer cancel()
	}
	err := r.sandbox.install(ctx, r.language.Name, libraries, nil)
	if err != nil && errors.Is(context.Cause(ctx), errRunTimeout) {
		return errRunTimeout
	}
	return err
}

// timedOutEarly is the result of a run whose timeout ended the installation of its
// libraries: the program was never started.
func (r *run) timedOutEarly(res *Result) (*Result, error) {
	res.Status = StatusTimeout
	res.Reason = fmt.Sprintf("installing the run's libraries took longer than its timeout of %v; the program was not started", r.timeout)
	res.Hints = r.sandbox.hints(nil, res.Status, "", nil)
	return res, nil
}
