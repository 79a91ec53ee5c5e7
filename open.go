package llmsandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/gpus"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layers"
	"github.com/llmsandbox/llmsandbox/internal/limit"
	"github.com/llmsandbox/llmsandbox/internal/renewed"
	"github.com/llmsandbox/llmsandbox/internal/supervisor"
	"github.com/llmsandbox/llmsandbox/internal/warm"
)

// DefaultLanguage is what an empty language of Options means.
const DefaultLanguage = "python"

// Open starts a sandbox; nil options are the defaults. It fails with ErrInvalid for options that make no sense,
// ErrUnknownLanguage, ErrTemplateNotFound, ErrEnvironmentNotFound, ErrVolumeNotFound, ErrNotEnforced when a limit that was asked for cannot be
// enforced here, ErrImageNotFound or ErrImageInvalid, and ErrUnsupported when the
// backend cannot work on this machine, and ErrRefused when the policy refuses a library.
// On an error nothing is left behind.
func Open(ctx context.Context, opts *Options) (*Sandbox, error) {
	return open(ctx, opts, &opening{create: func(ctx context.Context, b backend.Backend, spec backend.Spec) (backend.Machine, error) {
		return b.Create(ctx, spec)
	}, prepare: func(ctx context.Context, s *Sandbox) error {
		if len(s.imports) == 0 {
			return nil
		}
		return s.Prepare(ctx)
	}})
}

// An opening is what Open does in its own way for a Zygote, and for a sandbox that one opens.
type opening struct {
	create  func(context.Context, backend.Backend, backend.Spec) (backend.Machine, error)
	prepare func(context.Context, *Sandbox) error
	zygote  bool
}

func open(ctx context.Context, opts *Options, how *opening) (*Sandbox, error) {
	o, err := cmp.Or(opts, &Options{}).WithTemplate()
	if err != nil {
		return nil, err
	}
	lang, err := o.language()
	if err != nil {
		return nil, err
	}
	o.Limits.Timeout = cmp.Or(o.Limits.Timeout, backend.RunTimeout(o.Backend))
	if o.Supervisor != nil {
		return openSupervised(ctx, o, lang)
	}
	limits, kernel, err := o.Limits.resolve()
	if err != nil {
		return nil, err
	}
	artifacts, err := o.Artifacts.resolve()
	if err != nil {
		return nil, err
	}
	if err := checkImports(lang, o.Imports, artifacts); err != nil {
		return nil, err
	}
	if o.Lifetime < 0 {
		return nil, fmt.Errorf("lifetime of %v: %w: it is a positive duration, or 0 for none", o.Lifetime, ErrInvalid)
	}
	if o.IdleTimeout < 0 || o.IdleTimeout > 0 && o.IdleTimeout < limit.MinTimeout {
		return nil, fmt.Errorf("Options.IdleTimeout is %v: %w: use at least %v, or 0 for none", o.IdleTimeout, ErrInvalid, limit.MinTimeout)
	}
	if o.ID == "" {
		o.ID = newID()
	} else if !validID(o.ID) {
		return nil, fmt.Errorf("sandbox id %q: %w: use 1 to 40 of a-z, 0-9 and '-', not '-' at an end", o.ID, ErrInvalid)
	}
	if err := o.Network.findPackages(ctx); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if err := checkSecrets(o); err != nil {
		return nil, err
	}
	if err := hostmount.Check(o.Mounts, nil); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	b, err := backendOrDefault(o.Backend)
	if err != nil {
		return nil, err
	}
	if err := checkVolumes(b, o); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if o.Sudo {
		o.User = cmp.Or(o.User, "1000:1000")
	}
	if err := checkKept(b, o); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if err := checkRoot(b, o); err != nil {
		return nil, err
	}
	if err := checkGPUs(b, o); err != nil {
		return nil, err
	}
	log := &gateway.Log{}
	network, err := planNetwork(o.Network, o.Secrets, log)
	if err != nil {
		return nil, err
	}
	defer network.Discard() // where it does not come to be used
	var networkEnv []string
	if network != nil {
		networkEnv = network.Env
	}
	env, err := envList(networkEnv, o.Env)
	if err != nil {
		return nil, err
	}
	spec := backend.Spec{
		ID: o.ID, Image: o.Image, Language: lang.Name, Limits: kernel, Labels: o.Labels,
		Env: env, BestEffort: o.BestEffort, Progress: o.Progress, Logger: o.Logger, IdleTimeout: o.IdleTimeout,
	}
	if o.Lifetime > 0 {
		spec.Deadline = time.Now().Add(o.Lifetime)
	}
	maker := newMaker(b)
	if o.KeepFiles {
		maker = inPlaceMaker(b)
	}
	environment, err := o.environment(maker, spec)
	if err != nil {
		return nil, err
	}
	var libraries *layers.Libraries
	if len(o.Libraries) > 0 {
		if libraries, err = maker.Libraries(lang, o.Libraries, layers.Options(o.Install), spec); err != nil {
			return nil, err
		}
	}
	if spec.Layers, err = maker.Caches(ctx, lang, spec); err != nil {
		return nil, err
	}
	if err := environment.AddTo(ctx, &spec); err != nil {
		return nil, asInstallError(err)
	}
	if !o.KeepFiles {
		if err := libraries.On(spec.Env).AddTo(ctx, &spec); err != nil {
			return nil, asInstallError(err)
		}
	}
	spec.Mounts, spec.Volumes, spec.WritableRoot, spec.User, spec.Sudo, spec.Workdir, spec.KeepFiles, spec.GPUs = o.Mounts, o.Volumes, o.WritableRoot, o.User, o.Sudo, o.Workdir, o.KeepFiles, o.GPUs // after the installations, which are not to see them
	machine, err := how.create(ctx, b, spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	again := o.Resettable && changesRoot(o)
	if again {
		machine = renewed.New(machine)
	}
	s := newSandbox(b, machine, lang, limits, o.Logger)
	s.policy = o.Policy
	if o.KeepFiles {
		s.keepsFiles = true
		s.libraries.KeepIn(o.Workdir)
	} else {
		s.libraries.Opened()
	}
	s.installing = installing{InstallOptions: o.Install, maker: maker, progress: o.Progress, opened: true, image: o.Image}
	s.keepArtifacts(artifacts)
	if again {
		s.made = &made{network: o.Network, renewer: b.(backend.Renewer)}
	} else if o.Resettable {
		s.made = s.remember(ctx, o.Network)
	}
	s.net.owner, s.net.lenient, s.net.secrets, s.net.Log = true, o.BestEffort, o.Secrets, log
	s.env = withTools(slices.DeleteFunc(slices.Clone(s.env), func(kv string) bool { return slices.Contains(networkEnv, kv) }), limits.CPUs)
	if how.zygote { // what it forks has the network of its own sandbox, by the same variables
		s.env = environ.AddMissing(s.env, slices.DeleteFunc(slices.Clone(gateway.EnvIn(s.machine.Guest(), networkEnv)), s.namesSecret))
		network, o.Network = nil, Network{}
	}
	if o.KeepFiles {
		if err := s.libraries.Add(ctx, libraries); err != nil {
			return nil, errors.Join(asInstallError(err), s.Close())
		}
	}
	if err := s.startNetwork(ctx, network, o.Network.Allow); err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), s.Close())
	}
	if err := s.allowImagePackages(ctx, o.Network); err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), s.Close())
	}
	s.link.Begin()
	s.imports, s.zygote = slices.Clone(o.Imports), how.zygote
	if err := how.prepare(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), s.Close())
	}
	return s, nil
}

// validUser reports whether a user is of the form that Options.User has.
func validUser(s string) bool {
	valid := func(name string) bool {
		other := func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_.-", r))
		}
		return name != "" && len(name) <= 64 && name[0] != '-' && !strings.ContainsFunc(name, other)
	}
	name, group, has := strings.Cut(s, ":")
	return valid(name) && (!has || valid(group))
}

func checkRoot(b backend.Backend, o Options) error {
	if !o.WritableRoot && o.User == "" && o.Workdir == "" {
		return nil
	}
	if _, ok := b.(backend.OwnRoots); !ok {
		return fmt.Errorf("open sandbox: %w: sandboxes of the %s backend have no WritableRoot, User or Workdir: use another one", ErrUnsupported, b.Name())
	}
	if err := hostmount.CheckWorkdir(o.Workdir, o.Mounts); err != nil && !o.KeepFiles {
		return fmt.Errorf("open sandbox: %w", err)
	}
	if _, ok := b.(backend.Renewer); !ok && o.Resettable && changesRoot(o) {
		return fmt.Errorf("open sandbox: %w: a sandbox of the %s backend with WritableRoot or User cannot be reset: leave out one or the other, and close it instead", ErrUnsupported, b.Name())
	}
	if o.User != "" && !validUser(o.User) {
		return errclass.Errorf(ErrInvalid, "open sandbox: user %q: use a name or a number, and ':' and a group if you like", o.User)
	}
	return nil
}

// checkKept refuses KeepFiles where files of a sandbox go with it, and what cannot be had beside it.
func checkKept(b backend.Backend, o Options) error {
	if !o.KeepFiles {
		return nil
	}
	keeper, ok := b.(backend.FileKeeper)
	switch {
	case !ok || !keeper.KeepsFiles():
		return fmt.Errorf("KeepFiles: %w: a sandbox's own files go with it: open it in an existing container or pod, or copy files out", ErrUnsupported)
	case o.Workdir == "":
		return fmt.Errorf("KeepFiles: %w: set Workdir to the directory of the container whose files are to stay", ErrInvalid)
	case o.Environment != "":
		return fmt.Errorf("environment %s: %w: environments are not installed into existing containers and pods: name libraries", o.Environment, ErrUnsupported)
	case o.Resettable:
		return fmt.Errorf("KeepFiles and Resettable: %w: the files are the container's, and nobody knows what they were like: leave out one of them", ErrUnsupported)
	}
	return hostmount.CheckKept(o.Workdir)
}

// changesRoot reports whether code can change more than its own directories.
func changesRoot(o Options) bool { return o.WritableRoot || o.User != "" }

func checkVolumes(b backend.Backend, o Options) error {
	if len(o.Volumes) == 0 {
		return nil
	}
	if _, err := volumesOf(b); err != nil {
		return err
	}
	return hostmount.CheckVolumes(o.Volumes, o.Mounts, nil, o.Workdir)
}

func checkGPUs(b backend.Backend, o Options) error {
	if _, err := gpus.Parse(o.GPUs); err != nil {
		return fmt.Errorf("open sandbox: %w", err)
	}
	if _, ok := b.(backend.GPUs); !ok && o.GPUs != "" {
		return fmt.Errorf("open sandbox: %w: sandboxes of the %s backend have no GPUs: use docker, podman or kubernetes", ErrUnsupported, b.Name())
	}
	return nil
}

// withTools is an environment in which package tools work, and the commands are found that they
// install for the user. These are last in PATH, so that code cannot replace a program. Numerical
// libraries start a thread for each CPU of the machine, which would wait for each other under a
// limit of CPUs; 0: there is none.
func withTools(env []string, cpus float64) []string {
	env = environ.AddMissing(env, all.Env())
	if cpus > 0 {
		env = environ.AddMissing(env, []string{"OMP_NUM_THREADS=" + strconv.Itoa(int(math.Ceil(cpus)))})
	}
	home, path := environ.Value(env, "HOME"), environ.Value(env, "PATH")
	if home == "" || path == "" {
		return env
	}
	return environ.Override(env, []string{"PATH=" + path + ":" + home + "/.local/bin"})
}

// language is the language of the options, whose policy lets the libraries pass.
func (o *Options) language() (*language.Language, error) {
	name := cmp.Or(o.Language, DefaultLanguage)
	lang, err := all.Get(name)
	if err != nil {
		return nil, err
	}
	if err := o.Policy.checkLibraries(lang, o.Libraries); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	return lang, nil
}

// AttachOptions say how an existing sandbox is used by [Attach].
type AttachOptions struct {
	// Backend holds the sandbox; nil means the embedded local one.
	Backend backend.Backend
	// Language is what Run executes by default; empty means the one the
	// sandbox was opened for.
	Language string
	// Limits bound the runs of this handle: Timeout and Output, with their
	// defaults. The other fields belong to the sandbox and must be zero.
	Limits Limits
	// Env is added to the environment of this handle's runs.
	Env map[string]string
	// Progress is called with long steps, such as an installation, as in Options.
	Progress func(backend.Progress)
	// Artifacts say what results carry beside the output, unless a run says otherwise.
	Artifacts ArtifactOptions
	// Policy is what the code and libraries of this handle are checked against.
	Policy Policy
	// Logger is what it is in Options, for this handle.
	Logger *slog.Logger
	// TakeOver gives the sandbox another owner; nil leaves it the one that it has.
	TakeOver *TakeOver
}

// A TakeOver gives a sandbox that has outlived its owner, which was killed, another one. It does not look whether that lives: two owners both serve
// its network, and each may end it. Only backends whose sandboxes outlive their owners for a while have it, which is Kubernetes; others fail with ErrUnsupported.
type TakeOver struct {
	// Supervisor is the new owner; nil: the process that attaches, whose handle ends the sandbox when it is closed.
	Supervisor *Supervisor
	// Network is what the sandbox can reach from now on, without secrets: those of Options.Secrets ended with the owner that had them.
	Network Network
}

// machine finds a sandbox's machine, and whether the handle is to own it.
func (t *TakeOver) machine(ctx context.Context, b backend.Backend, id string) (m backend.Machine, owner bool, err error) {
	if t == nil {
		m, err = b.Attach(ctx, id)
		return m, false, err
	}
	adopter, ok := b.(backend.Adopter)
	if !ok {
		return nil, false, fmt.Errorf("take over sandbox %s: %w: sandboxes of the %s backend end with their owners", id, ErrUnsupported, b.Name())
	}
	if t.Supervisor == nil {
		m, err = adopter.Adopt(ctx, id)
		return m, true, err
	}
	if err := t.supervise(ctx, id); err != nil {
		return nil, false, err
	}
	m, err = b.Attach(ctx, id)
	return m, false, err
}

// Attach returns a handle on a sandbox that lives, by its id, whichever process opened it. It
// fails with ErrNotFound when there is none. Closing the handle leaves the sandbox
// alone, unless the handle has taken it over; Destroy ends it.
func Attach(ctx context.Context, id string, opts *AttachOptions) (*Sandbox, error) {
	o := *cmp.Or(opts, &AttachOptions{})
	if !validID(id) {
		return nil, fmt.Errorf("sandbox id %q: %w", id, ErrInvalid)
	}
	if o.Limits.Memory != 0 || o.Limits.CPUs != 0 || o.Limits.PIDs != 0 || o.Limits.Disk != 0 {
		return nil, fmt.Errorf("attach to %s: %w: memory, cpus, pids and disk were set when the sandbox was opened", id, ErrInvalid)
	}
	limits, _, err := o.Limits.resolve()
	if err != nil {
		return nil, err
	}
	artifacts, err := o.Artifacts.resolve()
	if err != nil {
		return nil, err
	}
	b, err := backendOrDefault(o.Backend)
	if err != nil {
		return nil, err
	}
	machine, owner, err := o.TakeOver.machine(ctx, b, id)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil, err // and names it
		}
		return nil, fmt.Errorf("attach to sandbox %s: %w", id, err)
	}
	info := machine.Info()
	// Runtimes are sized by the sandbox's own limits, not by this handle's.
	limits.Memory, limits.CPUs, limits.PIDs, limits.Disk = info.Limits.Memory, info.Limits.CPUs, info.Limits.PIDs, info.Limits.Disk
	name := cmp.Or(o.Language, info.Language, DefaultLanguage)
	lang, err := all.Get(name)
	if err != nil && o.Language == "" {
		lang, err = unknownHere(name, err), nil
	}
	if err != nil {
		return nil, errors.Join(err, machine.Close(nil))
	}
	env, err := envList(withTools(gateway.EnvIn(machine.Guest(), machine.Guest().Env), limits.CPUs), o.Env)
	if err != nil {
		return nil, errors.Join(err, machine.Close(nil))
	}
	s := newSandbox(b, renewed.New(machine), lang, limits, o.Logger)
	s.link.SetPaused(info.Paused)
	s.attach = func(ctx context.Context) (backend.Machine, error) { return b.Attach(ctx, id) }
	s.env, s.policy, s.installing.progress = env, o.Policy, o.Progress
	s.keepArtifacts(artifacts)
	if owner {
		s.net.owner = true
		if err := s.SetNetwork(ctx, o.TakeOver.Network); err != nil {
			return nil, errors.Join(fmt.Errorf("take over sandbox %s: %w", id, err), s.Close())
		}
		return s, nil
	}
	if err := s.attachSupervisor(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("attach to sandbox %s: %w", id, err), s.machine.Close(nil))
	}
	return s, nil
}

// List returns the sandboxes that live on a backend (nil: the embedded local one)
// and that the caller may see.
func List(ctx context.Context, b backend.Backend) ([]backend.Info, error) {
	b, err := backendOrDefault(b)
	if err != nil {
		return nil, err
	}
	return b.List(ctx)
}

// GC removes what sandboxes have left whose owner no longer lives, and returns
// what it found. It never touches a sandbox whose owner lives.
func GC(ctx context.Context, b backend.Backend) ([]backend.Leftover, error) {
	b, err := backendOrDefault(b)
	if err != nil {
		return nil, err
	}
	left, err := b.GC(ctx)
	sockets, gone := supervisor.GC()
	for _, path := range sockets {
		left = append(left, backend.Leftover{Kind: "supervisor's socket", Name: path, Removed: true})
	}
	waited, failed := warm.GC()
	for _, path := range waited {
		left = append(left, backend.Leftover{Kind: "waiting sandbox's file", Name: path, Removed: true})
	}
	return left, errors.Join(err, gone, failed)
}

// validID tells whether an id is of [a-z0-9-], at most 40 bytes, with no '-' at an
// end. A regular expression would be compiled in every program that imports this.
func validID(id string) bool {
	if id == "" || len(id) > 40 || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return "sb-" + hex.EncodeToString(b[:])
}
