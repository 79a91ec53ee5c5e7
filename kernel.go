package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// KernelOptions say how a kernel is opened. The zero value (or nil) opens the richest
// one that the sandbox has for the language.
type KernelOptions struct {
	// Env is added to the sandbox's environment.
	Env map[string]string
	// Dir is the kernel's first working directory, relative to the sandbox's.
	Dir string
	// Libraries are installed in the sandbox first: see [Sandbox.Install].
	Libraries []string
	// Plain keeps to the language's own shell where the sandbox has a richer one:
	// Python without IPython, which opens in a fraction of the time.
	Plain bool
	// AllowInstall lets cells install libraries (%pip install), as [Sandbox.Install]
	// does: with our access to the package registries, as the code in the
	// cell says. Without it such a cell ends with an error.
	AllowInstall bool
	// Artifacts, when set, take the place of the sandbox's ArtifactOptions.
	Artifacts *ArtifactOptions
	// FreshLayout starts a new interpreter each time, as RunOptions.FreshLayout does.
	FreshLayout bool
}

// A Kernel is an interpreter in a sandbox that keeps its state between cells. It is safe
// for concurrent use: cells, and what is asked about them, queue in the order of their
// calls. What ends its process (a crash, a timeout that no interrupt ends, Restart) loses
// the state and no more: the next cell starts a new one.
type Kernel struct {
	sandbox   *Sandbox
	language  *language.Language
	opts      KernelOptions
	run       *run            // what a run has of options: environment, working directory
	artifacts ArtifactOptions // as resolved
	id        string
	kernel    *kernel.Kernel

	// These are of the driver's process. They belong to the holder of the turn.
	collection *collection // nil where no artifacts are captured
	ooms       oomWatch

	// The cell that ran when the kernel was attached to, set once kernel.Resumed is closed.
	attached    *Cell
	attachedErr error
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
	k, err := s.newKernel(l, s.runs.next(), opts)
	if err == nil {
		err = s.install(ctx, l.Name, k.opts.Libraries, nil)
	}
	if err == nil {
		k.kernel, err = kernel.Open(ctx, k.config())
	}
	if err != nil {
		return nil, fmt.Errorf("open a %s kernel: %w", l.Title, err)
	}
	return k, nil
}

// newKernel is a kernel without a process.
func (s *Sandbox) newKernel(l *language.Language, id string, opts *KernelOptions) (*Kernel, error) {
	k := &Kernel{sandbox: s, language: l, id: id, artifacts: s.artifacts}
	if opts != nil {
		k.opts = *opts
	}
	var err error
	if k.run, err = s.newExecution(execution{env: k.opts.Env, dir: k.opts.Dir, timeout: Unlimited}); err != nil {
		return nil, err
	}
	k.run.language = l
	if k.opts.Artifacts != nil {
		if k.artifacts, err = k.opts.Artifacts.resolve(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *Kernel) config() kernel.Config {
	return kernel.Config{ID: k.id, Language: k.language, Link: k.sandbox.link, Host: (*kernelHost)(k), Set: &k.sandbox.kernels, TempDir: k.sandbox.machine.Guest().TempDir}
}

// Kernels lists the kernels whose process runs in the sandbox, those of other handles too.
// The info has no Version and Flavor.
func (s *Sandbox) Kernels(ctx context.Context) ([]KernelInfo, error) {
	return agentlink.Call(ctx, s.link, "list the kernels", func(c *agentclient.Client) ([]KernelInfo, error) {
		processes, err := c.Processes(ctx)
		var infos []KernelInfo
		for _, p := range processes {
			if tag, ok := kernel.ParseTag(p.Tag); ok && p.Running {
				infos = append(infos, KernelInfo{ID: tag.Kernel, Language: tag.Language})
			}
		}
		return infos, err
	})
}

// AttachKernel takes over a kernel of the sandbox by its id, with all that its cells have
// defined: one that was detached, or whose handle is another one's or is gone. It fails with
// fs.ErrNotExist when there is none. A handle that has the kernel until then gets ErrDetached.
//
// When a cell runs just then, its output and its requests for input go on as running says
// (nil: without input), its timeout counts anew (0: none), and [Kernel.Wait] returns it.
//
// opts mean what they do in [Sandbox.Kernel], most of them for a process that is started
// later. It has no Libraries: use [Sandbox.Install].
func (s *Sandbox) AttachKernel(ctx context.Context, id string, opts *KernelOptions, running *CellOptions) (*Kernel, error) {
	if opts != nil && len(opts.Libraries) > 0 {
		return nil, fmt.Errorf("attach to kernel %s: %w: it runs, and finds no libraries that are installed now: use Install, then Restart", id, ErrInvalid)
	}
	k, err := s.attachKernel(ctx, id, opts, running)
	if err != nil {
		return nil, fmt.Errorf("attach to kernel %s: %w", id, err)
	}
	return k, nil
}

func (s *Sandbox) attachKernel(ctx context.Context, id string, opts *KernelOptions, cellOpts *CellOptions) (*Kernel, error) {
	if err := s.link.Alive(); err != nil {
		return nil, err
	}
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := client.Processes(ctx)
	if err != nil {
		return nil, s.link.Explain(ctx, err)
	}
	p := kernel.Process{Agent: client.Info().Instance}
	at := slices.IndexFunc(processes, func(info agentproto.ProcessInfo) bool {
		tag, ok := kernel.ParseTag(info.Tag)
		p.Tag = tag
		return ok && info.Running && tag.Kernel == id
	})
	if at < 0 {
		return nil, fmt.Errorf("%w: see Kernels for those there are", fs.ErrNotExist)
	}
	l, err := all.Get(p.Tag.Language)
	if err != nil {
		return nil, err
	}
	k, err := s.newKernel(l, id, opts)
	if err != nil {
		return nil, err
	}
	c, err := k.newCell("", cellOpts, 0)
	if err != nil {
		return nil, err
	}
	k.ooms = watchOOM(ctx, s.machine)
	if p.Tag.Artifacts {
		k.collection = s.newCollection(l, p.Tag.Run, k.artifacts, false, func(string) string { return "" })
		p.Artifacts = k.collection.root
	}
	p.Process, err = client.Attach(ctx, agentproto.AttachRequest{
		ID: processes[at].ID, OutOffset: agentproto.FirstKept, ErrOffset: agentproto.FirstKept, ControlOffset: agentproto.FirstKept,
	})
	if err != nil {
		return nil, s.link.Explain(ctx, err)
	}
	network := s.recordNetwork(ctx)
	var turn *kernel.Turn
	if k.kernel, turn, err = kernel.Attach(ctx, k.config(), p, c.Cell); err != nil {
		attempts(network, 0)
		return nil, err
	}
	go func() {
		defer turn.End()
		k.attached, k.attachedErr = k.finish(context.Background(), turn, c, network)
	}()
	return k, nil
}

// Wait returns what became of the cell that ran when [Sandbox.AttachKernel] took the kernel
// over, once it has ended, as [Kernel.Run] does; nil when none did. A cell that had ended just
// before, so that its end may not have reached the handle that ran it, is returned as well. Its output
// begins where the kernel was attached to. When ctx ends before, the cell goes on.
func (k *Kernel) Wait(ctx context.Context) (*Cell, error) {
	resumed := k.kernel.Resumed()
	if resumed == nil {
		return nil, nil
	}
	select {
	case <-resumed:
		return k.attached, k.attachedErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Detach lets the kernel go on without this handle, for [Sandbox.AttachKernel], once the cell
// that runs has ended. The handle then is closed. What background processes have written since
// the last cell is dropped.
func (k *Kernel) Detach(ctx context.Context) error { return k.kernel.Detach(ctx) }

// Info describes the kernel.
func (k *Kernel) Info() KernelInfo { return KernelInfo(k.kernel.Info()) }

// Close ends the kernel and all it started. A cell that goes on ends as killed. It may
// be called more than once.
func (k *Kernel) Close() error {
	k.kernel.Close()
	return nil
}

// Completion is what could stand in a place of the code.
type Completion struct {
	// Matches may take the place of the code's characters from Start to End, counted in
	// code points.
	Matches    []string
	Start, End int
}

// A Variable is one of a kernel's.
type Variable struct {
	Name string `json:"name"`
	// Type is what the language calls it.
	Type string `json:"type"`
	// Value is as the language shows it, shortened.
	Value string `json:"value"`
}

// Complete completes the code at a cursor, counted in code points.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (Completion, error) {
	e, err := k.kernel.Ask(ctx, kernel.Request{Op: kernel.OpComplete, Code: code, Cursor: &cursor})
	if err != nil {
		return Completion{}, err
	}
	return Completion{Matches: e.Matches, Start: e.Start, End: e.End}, nil
}

// Inspect describes what stands at a cursor, counted in code points: its documentation,
// signature or value. It is empty when nothing is known.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor int) (string, error) {
	e, err := k.kernel.Ask(ctx, kernel.Request{Op: kernel.OpInspect, Code: code, Cursor: &cursor})
	return e.Text, err
}

// Variables lists what cells have defined.
func (k *Kernel) Variables(ctx context.Context) ([]Variable, error) {
	e, err := k.kernel.Ask(ctx, kernel.Request{Op: kernel.OpVariables})
	if err != nil {
		return nil, err
	}
	variables := make([]Variable, len(e.Variables))
	for i, v := range e.Variables {
		variables[i] = Variable(v)
	}
	return variables, nil
}

// Reset forgets what cells have defined. The kernel's process lives on, and with it
// what a language cannot forget: loaded modules, the working directory. Restart forgets all.
func (k *Kernel) Reset(ctx context.Context) error {
	_, err := k.kernel.Ask(ctx, kernel.Request{Op: kernel.OpReset})
	return err
}

// Interrupt interrupts the cell that runs, if one does; its Run returns what became of
// it. The state is kept, but for languages that cannot (Cell.StateLost). Code may ignore
// an interrupt: then Restart ends it.
func (k *Kernel) Interrupt(ctx context.Context) error { return k.kernel.Interrupt(ctx) }

// Restart ends the kernel's process, with the cell that runs and all that cells have
// defined or started, and starts a new one.
func (k *Kernel) Restart(ctx context.Context) error { return k.kernel.Restart(ctx) }

// A kernelHost is a kernel as package kernel needs it.
type kernelHost Kernel

func (k *kernelHost) Install(ctx context.Context, libraries []string) ([]string, error) {
	if !k.opts.AllowInstall {
		return nil, errors.New("this kernel may not install libraries: its owner can allow it (KernelOptions.AllowInstall, --allow-install), or install them before")
	}
	if err := k.sandbox.install(ctx, k.language.Name, libraries, nil); err != nil {
		return nil, err
	}
	return k.sandbox.libraries.Dirs(ctx, k.language.Name)
}

func (k *kernelHost) Start(ctx context.Context) (kernel.Process, error) {
	s := k.sandbox
	client, err := s.link.Client(ctx)
	if err != nil {
		return kernel.Process{}, err
	}
	p := kernel.Process{Agent: client.Info().Instance}
	err = s.tryPrograms(func() error {
		p.Tag = kernel.Tag{Kernel: k.id, Language: k.language.Name, Run: s.runs.next(), Mark: kernel.NewMark(), Artifacts: !k.artifacts.Off}
		req, err := k.request(ctx, p.Tag)
		if err != nil {
			return err
		}
		if p.Artifacts = ""; k.collection != nil {
			p.Artifacts = k.collection.root
		}
		k.ooms = watchOOM(ctx, s.machine)
		if forked, err := k.fork(ctx, &p, req); forked {
			return err
		}
		s.dropUsedAhead(ctx)
		p.Process, err = client.Start(ctx, req)
		if agentlink.Code(err) == agentproto.CodeNotFound {
			return &missingProgramError{program: req.Argv[0], cause: err}
		}
		if err != nil {
			return s.link.Explain(ctx, err)
		}
		return nil
	})
	if missing, ok := errors.AsType[*missingProgramError](err); ok {
		install := cmp.Or(k.language.Kernel.Install, k.language.Install)
		err = fmt.Errorf("%s is not in this sandbox: %w: %s", missing.program, ErrToolchain, install)
	}
	return p, err
}

// fork has the driver forked from a prepared interpreter, if there is one. Otherwise forked is false, and it
// has not been started.
func (k *kernelHost) fork(ctx context.Context, p *kernel.Process, req agentproto.StartRequest) (forked bool, err error) {
	s := k.sandbox
	if k.language != s.language || s.language.Ahead == nil || !s.language.Ahead.Forks || k.collection == nil || k.opts.FreshLayout {
		return false, nil
	}
	a := s.takeAhead(ctx, 0)
	if a == nil {
		return false, nil
	}
	p.Process, err = s.forkKernel(ctx, a, k.run, k.collection, req)
	return s.giveAhead(ctx, a, err), err
}

// request is what starts a driver.
func (k *kernelHost) request(ctx context.Context, tag kernel.Tag) (req agentproto.StartRequest, err error) {
	s := k.sandbox
	env, err := s.libraries.Environ(ctx, k.run.environ)
	if err != nil {
		return req, err
	}
	libraries, err := s.libraries.Dirs(ctx, k.language.Name)
	if err != nil {
		return req, err
	}
	guest := s.machine.Guest()
	id := tag.Run
	dir := path.Join(guest.TempDir, ".kernel-"+id)
	plan, err := k.language.Kernel.Plan(language.KernelSource{
		ID: id, Dir: dir, Workdir: guest.Workdir, TempDir: guest.TempDir, Plain: k.opts.Plain,
		Libraries:   libraries,
		MemoryLimit: s.limits.Memory, CPULimit: s.limits.CPUs, Program: s.programs.choose,
		Proxy: gateway.ProxyIn(s.environ()), TrustStore: gateway.TrustStoreIn(guest, s.environ()),
	})
	if err != nil {
		return req, fmt.Errorf("prepare the %s kernel: %w", k.language.Title, err)
	}
	step := plan.Steps[0]
	env = environ.Override(env, step.Env)
	k.collection = nil
	if tag.Artifacts {
		k.collection = s.newCollection(k.language, id, k.artifacts, false, func(name string) string { return environ.Value(env, name) })
		plan.Files = append(plan.Files, k.collection.files()...)
		env = environ.Override(env, k.collection.env())
	}
	req = agentproto.StartRequest{
		Argv: step.Argv, Env: env,
		Dir: k.run.dir, Tag: tag.String(), Control: true, Rest: agentproto.RestAlways,
		Files: inlineFiles(plan.Files), RemoveAfter: append(plan.Cleanup, dir, tag.Description(guest.TempDir)),
	}
	if step.Dir != "" {
		req.Dir = step.Dir
	}
	return req, nil
}
