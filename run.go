package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layers"
	"github.com/llmsandbox/llmsandbox/security"
)

// RunOptions say how code is run. The zero value (or nil) runs it in the
// sandbox's language, in its working directory, without input.
type RunOptions struct {
	// Language is what the code is written in; empty means the sandbox's.
	Language string
	// Name is the main file's base name as the caller knows it; empty means main with
	// the language's ending. Its ending may matter to the language (main.mjs); it need not
	// be unique. The file is called otherwise while it runs, since runs may overlap, but
	// stderr has this name.
	Name string
	// Files are the other files of a project by their relative path. A run with
	// files lives in a private directory of its own, which goes when the run ends.
	Files map[string][]byte
	// Args are the program's arguments.
	Args []string
	// Standard is the language's standard, such as "c++20"; empty means the usual one.
	Standard string
	// Env is added to the sandbox's environment.
	Env map[string]string
	// Dir is the program's working directory, relative to the sandbox's; empty means
	// the sandbox's.
	Dir string
	// Stdin is the program's input; nil means none. Reading from it may go on
	// until its Read returns after the program has ended.
	Stdin io.Reader
	// Stdout and Stderr, when set, get the output as it is written, each chunk
	// once, in order. They are called from other goroutines, one call at a time
	// each. Their failure does not end the run: see ErrOutput.
	Stdout, Stderr io.Writer
	// Timeout bounds the run, its compilation included; 0 means the sandbox's
	// Limits.Timeout, Unlimited none.
	Timeout time.Duration
	// Libraries are installed in the sandbox first: see [Sandbox.Install]. That counts
	// against Timeout.
	Libraries []string
	// Artifacts, when set, take the place of the sandbox's ArtifactOptions.
	Artifacts *ArtifactOptions
	// KeepChildren leaves the processes that the program started in the
	// background running when it ends; otherwise they are killed.
	KeepChildren bool
	// Terminal gives the program a terminal of that size, which merges stderr into stdout.
	// [Process.Resize] changes the size.
	Terminal *WinSize
	// FreshLayout starts a new interpreter, where the program would otherwise be forked from one
	// that [Sandbox.Prepare], Options.Imports or a [Zygote] has started: its addresses and string
	// hashes are then its own, and it imports what it needs itself.
	FreshLayout bool
}

// runCounter gives each run in a sandbox a name of its own. It starts at a random
// place, since several handles may be attached to one sandbox.
type runCounter struct{ n atomic.Uint64 }

func (c *runCounter) next() string {
	c.n.CompareAndSwap(0, rand.Uint64()>>16)
	return strconv.FormatUint(c.n.Add(1), 36)
}

// Run opens a sandbox, runs code in it, and closes it. opts may be nil. For input, arguments,
// files, or more than one run use [Open] and [Sandbox.Run].
//
// Result and error are those of Sandbox.Run, and the error includes Close's. When Open fails
// the result's Status is StatusSetupFailed; it is never nil.
func Run(ctx context.Context, code string, opts *Options) (*Result, error) {
	sb, err := Open(layers.ForProgram(ctx, code, nil), opts)
	if err != nil {
		return &Result{Status: StatusSetupFailed, ExitCode: noExitCode, Reason: err.Error()}, err
	}
	res, err := sb.Run(ctx, code, nil)
	return res, errors.Join(err, sb.Close())
}

// Run executes code as a fresh process (after compiling it, where the language
// does) and returns what became of it. opts may be nil.
//
// Code that the sandbox's policy refuses is not run: Status is StatusRefused, without an
// error, also when the sandbox is closed.
//
// The error is nil whenever the program's end was observed, whatever it was. An
// error means that we failed: ErrClosed, ErrLost, ErrToolchain, ErrWorkdir, ErrInvalid, the
// context's error after everything was killed, or ErrOutput, with which the result
// is complete nevertheless. The result is never nil; with an error its Status says
// how far the run came.
func (s *Sandbox) Run(ctx context.Context, code string, opts *RunOptions) (*Result, error) {
	opts = cmp.Or(opts, &RunOptions{})
	lang, findings, res, err := s.checkRun(ctx, code, opts)
	if res != nil {
		return res, err
	}
	res, err = s.runChecked(ctx, lang, code, opts)
	res.Findings = findings
	return res, err
}

// checkRun finds a run's language and has the policy check its code. It returns a result when
// the run is over by that.
func (s *Sandbox) checkRun(ctx context.Context, code string, opts *RunOptions) (*language.Language, []security.Finding, *Result, error) {
	lang := s.language
	if opts.Language != "" {
		var err error
		if lang, err = all.Get(opts.Language); err != nil {
			res, err := s.failed(s.language.Name, err)
			return nil, nil, res, err
		}
	}
	findings, res, err := s.refuse(ctx, lang, security.Program{Name: opts.Name, Code: []byte(code), Files: opts.Files, Libraries: opts.Libraries})
	return lang, findings, res, err
}

// StartRun starts code as [Sandbox.Run] runs it, and returns once the program itself runs: after
// libraries are installed and code is compiled. ctx bounds that only: the program ends by
// itself, by Kill, at its timeout, or with the sandbox. The result of [Process.Wait] is that of
// Run, also when the policy refuses the code or it does not compile. opts may be nil.
func (s *Sandbox) StartRun(ctx context.Context, code string, opts *RunOptions) (*Process, error) {
	opts = cmp.Or(opts, &RunOptions{})
	lang, findings, refused, err := s.checkRun(ctx, code, opts)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		p := &Process{sandbox: s, detach: func(error) {}, done: make(chan struct{}), result: refused}
		close(p.done)
		return p, nil
	}
	r, err := s.newRun(lang, opts)
	if err != nil {
		return nil, err
	}
	r.findings = findings
	return s.follow(ctx, r, context.Cause, func(running context.Context) error {
		if err := r.install(running, opts.Libraries); err != nil {
			return err
		}
		if ran, err := r.executeAhead(running, code, opts); ran {
			return err
		}
		return r.executeCode(running, code, opts)
	})
}

// runChecked runs code that the policy lets pass.
func (s *Sandbox) runChecked(ctx context.Context, lang *language.Language, code string, opts *RunOptions) (*Result, error) {
	r, err := s.newRun(lang, opts)
	if err != nil {
		return s.failed(lang.Name, err)
	}
	if err := r.install(ctx, opts.Libraries); err != nil {
		return r.result(ctx, err)
	}
	if ran, err := r.executeAhead(ctx, code, opts); ran {
		res, err := r.result(ctx, err)
		r.collect(ctx, res, err)
		return res, err
	}
	err = r.executeCode(ctx, code, opts)
	res, err := r.result(ctx, err)
	r.collect(ctx, res, err)
	return res, err
}

func (r *run) executeCode(ctx context.Context, code string, opts *RunOptions) error {
	s := r.sandbox
	return s.tryPrograms(func() error {
		plan, err := s.planSource(ctx, r, s.runs.next(), code, opts)
		if err != nil {
			return err
		}
		return r.execute(ctx, plan)
	})
}

// newRun checks what does not depend on the language's plan.
func (s *Sandbox) newRun(lang *language.Language, opts *RunOptions) (*run, error) {
	r, err := s.newExecution(execution{
		env: opts.Env, dir: opts.Dir, stdin: opts.Stdin, stdout: opts.Stdout, stderr: opts.Stderr,
		timeout: opts.Timeout, keepChildren: opts.KeepChildren, terminal: opts.Terminal,
	})
	if err != nil {
		return nil, err
	}
	r.language = lang
	r.artifacts = s.artifacts
	if opts.Artifacts != nil {
		if r.artifacts, err = opts.Artifacts.resolve(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// planSource asks the language how to execute the code of the run of an id.
func (s *Sandbox) planSource(ctx context.Context, r *run, id, code string, opts *RunOptions) (language.Plan, error) {
	guest := s.machine.Guest()
	libraries, err := s.libraries.Dirs(ctx, r.language.Name)
	if err != nil {
		return language.Plan{}, err
	}
	src := language.Source{
		Code: []byte(code), Name: opts.Name, Args: opts.Args, Standard: opts.Standard, MemoryLimit: s.limits.Memory, CPULimit: s.limits.CPUs,
		RunID: id, Workdir: guest.Workdir, TempDir: guest.TempDir, Program: s.programs.choose, Libraries: libraries,
		Proxy: gateway.ProxyIn(s.environ()), TrustStore: gateway.TrustStoreIn(guest, s.environ()),
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Files)) {
		if err := checkProjectPath(name); err != nil {
			return language.Plan{}, err
		}
		src.Files = append(src.Files, language.File{Path: path.Clean(name), Data: opts.Files[name], Mode: 0o644})
	}
	plan, err := r.language.Plan(src)
	if err != nil {
		return plan, fmt.Errorf("prepare the %s code: %w", r.language.Title, err)
	}
	r.rename = func(w io.Writer) *language.Renamer { return language.NewRenamer(w, src, plan) }
	return plan, nil
}

// checkProjectPath refuses names that would leave the project's directory.
func checkProjectPath(name string) error {
	clean := path.Clean(name)
	if name == "" || clean == "." || path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(name, "\x00") {
		return fmt.Errorf("file %q: %w: use a path relative to the project, without '..'", name, ErrInvalid)
	}
	return nil
}

// failed is the result of a run that did not come to start.
func (s *Sandbox) failed(lang string, err error) (*Result, error) {
	return &Result{
		Status: StatusSetupFailed, ExitCode: noExitCode, SandboxID: s.ID(), Backend: s.backend, Language: lang,
		Reason: err.Error(), Capabilities: s.Capabilities(),
	}, err
}

// inlineFiles turns a plan's files into those of a start request.
func inlineFiles(files []language.File) []agentproto.InlineFile {
	out := make([]agentproto.InlineFile, len(files))
	for i, f := range files {
		out[i] = agentproto.InlineFile{Path: f.Path, Mode: f.Mode, Data: f.Data}
	}
	return out
}
