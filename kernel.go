package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// KernelOptions say how a kernel is opened. The zero value (or nil) opens the richest
// one that the sandbox has for the language.
type KernelOptions struct {
	// Env is added to the sandbox's environment.
	Env map[string]string
	// Dir is the kernel's first working folder, relative to the sandbox's.
	Dir string
	// Libraries are installed in the sandbox first: see [Sandbox.Install].
	Libraries []string
	// Plain keeps to the language's own shell where the sandbox has a richer one:
	// Python without IPython, which opens in a fraction of the time.
	Plain bool
	// AllowInstall lets cells install libraries (%pip install), as [Sandbox.Install]
	// does: with our access to the package registries, on the word of the code in the
	// cell. Without it such a cell ends with an error.
	AllowInstall bool
	// Artifacts, when set, take the place of the sandbox's ArtifactOptions.
	Artifacts *ArtifactOptions
}

// A Kernel is an interpreter in a sandbox that keeps its state between cells. It is safe
// for concurrent use: cells, and what is asked about them, queue in the order of their
// calls. What ends its process (a crash, a timeout that no interrupt ends, Restart) loses
// the state and no more: the next cell starts a new one.
type Kernel struct {
	sandbox  *Sandbox
	language *language.Language
	opts     KernelOptions
	run      *run // what a run has of options: environment, folder
	// artifacts are the options as resolved.
	artifacts ArtifactOptions

	id   string
	turn chan struct{} // holds a token while the driver is free
	// unsaid means that a driver has ended since the last cell, and no result has
	// reported it. It belongs to the holder of the turn.
	unsaid bool

	mu       sync.Mutex
	driver   *driver // nil: to be started
	closed   bool
	detached bool // and so closed: the process lives on
	info     KernelInfo
	stopped  chan struct{} // closed with the kernel

	// resumed is closed once attached and attachedErr, the cell that ran when the kernel was
	// attached to, are set; nil for a kernel that was not.
	resumed     chan struct{}
	attached    *Cell
	attachedErr error

	interrupting sync.Mutex
	active       *cellRun // guarded by interrupting
}

// KernelInfo describes a kernel's interpreter as it describes itself.
type KernelInfo struct {
	ID       string // by which [Sandbox.AttachKernel] finds the kernel
	Language string // as in Options.Language
	Version  string // of the interpreter, such as "3.11.2"
	Flavor   string // its shell: "ipython", "plain", ...
}

// Kernel opens a kernel of a language (empty: the sandbox's) and waits until it is
// ready. Nothing is installed for it and no network needed. It fails with
// ErrUnknownLanguage, ErrToolchain when the sandbox has not what the kernel needs,
// ErrUnsupported when the language has no kernel, and as Run does.
func (s *Sandbox) Kernel(ctx context.Context, lang string, opts *KernelOptions) (*Kernel, error) {
	l := s.language
	if lang != "" {
		var err error
		if l, err = all.Get(lang); err != nil {
			return nil, err
		}
	}
	if l.Kernel == nil {
		return nil, fmt.Errorf("open a %s kernel: %w: there is none for this language", l.Title, ErrUnsupported)
	}
	k, err := s.newKernel(l, opts)
	if err != nil {
		return nil, fmt.Errorf("open a %s kernel: %w", l.Title, err)
	}
	k.id = s.runs.next()
	if err := s.install(ctx, l.Name, k.opts.Libraries, nil); err != nil {
		return nil, fmt.Errorf("open a %s kernel: %w", l.Title, err)
	}
	if err := s.kernels.add(k); err != nil {
		return nil, err
	}
	if _, err := k.started(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open a %s kernel: %w", l.Title, err), k.Close())
	}
	k.turn <- struct{}{}
	return k, nil
}

// newKernel is a kernel without a process.
func (s *Sandbox) newKernel(l *language.Language, opts *KernelOptions) (*Kernel, error) {
	k := &Kernel{sandbox: s, language: l, turn: make(chan struct{}, 1), stopped: make(chan struct{})}
	if opts != nil {
		k.opts = *opts
	}
	r, err := s.newExecution(execution{env: k.opts.Env, dir: k.opts.Dir, timeout: Unlimited})
	if err != nil {
		return nil, err
	}
	r.language = l
	k.run = r
	k.artifacts = s.artifacts
	if k.opts.Artifacts != nil {
		if k.artifacts, err = k.opts.Artifacts.resolve(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Info describes the kernel.
func (k *Kernel) Info() KernelInfo {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.info
}

// Close ends the kernel and all it started. A cell that goes on ends as killed. It may
// be called more than once.
func (k *Kernel) Close() error {
	k.mu.Lock()
	first := !k.closed
	k.closed = true
	d := k.driver
	detached := k.detached
	k.mu.Unlock()
	if first {
		close(k.stopped)
	}
	if d != nil && !detached {
		d.stop()
	}
	if k.resumed != nil {
		<-k.resumed
	}
	k.sandbox.kernels.remove(k)
	return nil
}

// take waits for the kernel's turn and returns its driver, which is started when there
// is none. give must then be called.
func (k *Kernel) take(ctx context.Context) (*driver, error) {
	if err := k.alive(); err != nil {
		return nil, err
	}
	select {
	case <-k.turn:
	case <-k.stopped:
		return nil, k.alive()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d, err := k.started(ctx)
	if err != nil {
		k.give()
		return nil, err
	}
	return d, nil
}

func (k *Kernel) give() { k.turn <- struct{}{} }

// alive tells why the kernel cannot be used, if it cannot.
func (k *Kernel) alive() error {
	if err := k.sandbox.link.Alive(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.detached:
		return fmt.Errorf("the %s kernel goes on without this handle: %w: use AttachKernel", k.language.Title, ErrDetached)
	case k.closed:
		return fmt.Errorf("the %s kernel: %w", k.language.Title, ErrKernelClosed)
	}
	return nil
}

func (k *Kernel) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// kernels are those of a sandbox, which ends them.
type kernels struct {
	mu     sync.Mutex
	open   map[*Kernel]bool
	closed bool
}

func (s *kernels) add(k *Kernel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("open a kernel: %w", ErrClosed)
	}
	if s.open == nil {
		s.open = map[*Kernel]bool{}
	}
	s.open[k] = true
	return nil
}

func (s *kernels) remove(k *Kernel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
}

// close ends them all, for good.
func (s *kernels) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.closeOpen()
}

// closeOpen ends those that are open.
func (s *kernels) closeOpen() error {
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	var errs []error
	for k := range open {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
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
			if err := k.alive(); err != nil {
				return nil, err
			}
		default:
			return d, nil
		}
	}
	d, err := k.start(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.driver = d
	closed := k.closed
	k.mu.Unlock()
	if closed {
		d.kill()
		<-d.gone
		return nil, k.alive()
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
	k.unsaid = k.unsaid || !d.reported
	d.reported = true
	switch {
	case d.lost == nil:
		return
	case d.taken():
		k.leave()
		return
	}
	client, err := k.sandbox.link.Client(ctx)
	if err == nil && client.Info().Instance == d.instance {
		d.kill()
	}
}

// start starts a driver's process.
func (k *Kernel) start(ctx context.Context) (*driver, error) {
	s := k.sandbox
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	for tried := 0; ; tried++ {
		tag := kernelTag{kernel: k.id, language: k.language.Name, run: s.runs.next(), mark: newMark(), artifacts: !k.artifacts.Off}
		req, caught, err := k.request(ctx, tag)
		if err != nil {
			return nil, err
		}
		d := k.newDriver(ctx, client, tag)
		d.collection = caught
		s.dropAhead(ctx)
		d.process, err = client.Start(ctx, req)
		if err == nil {
			go d.follow()
			return d, nil
		}
		if agentlink.Code(err) != agentproto.CodeNotFound {
			return nil, s.link.Explain(ctx, err)
		}
		if tried == maxProgramAlternatives || !s.programs.reject(req.Argv[0]) {
			return nil, fmt.Errorf("%s is not in this sandbox: %w: %s", req.Argv[0], ErrToolchain, k.install())
		}
	}
}

// newDriver is a driver whose process is to be started or attached to.
func (k *Kernel) newDriver(ctx context.Context, client *agentclient.Client, tag kernelTag) *driver {
	return &driver{
		sandbox: k.sandbox, run: tag.run, mark: tag.mark, encoded: k.language.Kernel.Base64, instance: client.Info().Instance,
		events: make(chan kernel.Event), gone: make(chan struct{}), ooms: watchOOM(ctx, k.sandbox.machine),
	}
}

// request is what starts a driver.
func (k *Kernel) request(ctx context.Context, tag kernelTag) (req agentproto.StartRequest, caught *collection, err error) {
	s := k.sandbox
	env, err := s.libraryEnviron(ctx, k.run.environ)
	if err != nil {
		return req, nil, err
	}
	libraries, err := s.libraryFolders(ctx, k.language.Name)
	if err != nil {
		return req, nil, err
	}
	guest := s.machine.Guest()
	id := tag.run
	dir := path.Join(guest.Workdir, ".kernel-"+id)
	plan, err := k.language.Kernel.Plan(language.KernelSource{
		ID: id, Dir: dir, Workdir: guest.Workdir, TempDir: guest.TempDir, Plain: k.opts.Plain,
		Libraries:   libraries,
		MemoryLimit: s.limits.Memory, CPULimit: s.limits.CPUs, Program: s.programs.choose,
		Proxy: s.proxyAddress(), TrustStore: s.trustStore(),
	})
	if err != nil {
		return req, nil, fmt.Errorf("prepare the %s kernel: %w", k.language.Title, err)
	}
	step := plan.Steps[0]
	env = environ.Override(env, step.Env)
	if !k.artifacts.Off {
		caught = s.newCollection(k.language, id, k.artifacts, "", func(name string) string { return environ.Value(env, name) })
		plan.Files = append(plan.Files, caught.files()...)
		env = environ.Override(env, caught.env())
	}
	req = agentproto.StartRequest{
		Argv: step.Argv, Env: env,
		Dir: k.run.dir, Tag: tag.String(), Control: true, Rest: agentproto.RestAlways,
		Files: inlineFiles(plan.Files), RemoveAfter: append(plan.Cleanup, dir, k.descriptionFile(id)),
	}
	if step.Dir != "" {
		req.Dir = step.Dir
	}
	return req, caught, nil
}

func (k *Kernel) install() string {
	if k.language.Kernel.Install != "" {
		return k.language.Kernel.Install
	}
	return k.language.Install
}

// readyGrace bounds how long a driver may take until it is ready.
const readyGrace = 2 * time.Minute

// maxFirstOutput bounds what is kept of what a driver says when it cannot start.
const maxFirstOutput = 4 << 10

// ready waits until the driver says that it is.
func (k *Kernel) ready(ctx context.Context, d *driver) error {
	defer d.process.Busy()()
	output := bounded{most: maxFirstOutput}
	d.err.Begin(d.mark, &output)
	defer d.err.End()
	select {
	case e := <-d.events:
		if e.Event != kernel.EventReady {
			return fmt.Errorf("the kernel's driver broke its protocol: its first event is %q", e.Event)
		}
		k.mu.Lock()
		k.info = KernelInfo{ID: k.id, Language: k.language.Name, Version: e.Version, Flavor: e.Flavor}
		k.mu.Unlock()
		return nil
	case <-d.gone:
		d.err.End()
		if err := d.failed(); err != nil {
			return err
		}
		return fmt.Errorf("its process ended before it was ready (%s)%s", d.ending(), quoted(output.kept))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// quoted is a driver's output as the end of an error.
func quoted(output []byte) string {
	if text := strings.TrimSpace(string(output)); text != "" {
		return ": " + text
	}
	return ""
}
