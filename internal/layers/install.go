package layers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// Limits of an installation. Packages run code of their own there (setup.py, configure,
// node-gyp), which no one has reviewed.
const (
	installMemory = 4 << 30 // where the disk is memory, what is written counts, too
	installPIDs   = 1024
	installDisk   = 4 << 30
	installOutput = 16 << 20
)

// libraryTree bounds what an installation may leave.
var libraryTree = layertree.Options{MaxBytes: installDisk, MaxFiles: 400_000, Links: true}

// installLocal is the copy of a local directory that is installed from, below the directory for temporary files.
const installLocal = ".llmsandbox-local"

// errInstallTimeout is the cause of a context that Options.Timeout has ended.
var errInstallTimeout = errors.New("the installation took longer than its timeout")

// fill makes dir the library directory of the request: of packages that are installed one by one, or
// with what the package tool installs in a sandbox, which no user's code has ever seen.
func (q *Libraries) fill(ctx context.Context, key, dir string) error {
	j := job{name: key, stage: stageInstall, plan: q.language.Libraries.Install, done: func(ctx context.Context, s Sandbox, target string) error {
		return takeOut(ctx, s, target, dir, libraryTree)
	}}
	if q.environment != nil {
		j.plan = func(src language.InstallSource) (language.Plan, error) {
			return q.language.Libraries.Environment.Install(src, q.environment.list)
		}
	} else {
		j.instead = func(ctx context.Context, s Sandbox, in installer) (bool, error) {
			return q.fromPackages(ctx, s, in, dir)
		}
	}
	return q.inSandbox(ctx, j)
}

// A job is what the package tool does in a sandbox of its own.
type job struct {
	name  string // of the library directory that it works on
	dir   string // that directory, unless it is below the one for temporary files
	stage string
	plan  planner
	// instead does without the package tool, and reports whether it could; nil: nothing does.
	instead func(context.Context, Sandbox, installer) (bool, error)
	done    func(ctx context.Context, s Sandbox, dir string) error // is called when the tool has succeeded
	// from has what another sandbox has found out; nil: it is found out.
	from *installer
	// layers are those of packages, which are libraries of the sandbox; by their keys.
	layers map[string]string
}

// An installer is what installs in a sandbox, and from where.
type installer struct {
	registries  language.Registries
	trusted     []string // addresses of registries
	accelerator accelerator
	src         language.InstallSource
}

// The stages of progress.
const (
	stageInstall = "install"
	stageResolve = "resolve"
	stagePrepare = "prepare"
)

// A planner makes what a package tool is to do.
type planner func(language.InstallSource) (language.Plan, error)

// inSandbox does a job.
func (q *Libraries) inSandbox(ctx context.Context, j job) error {
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, q.options.Timeout, errInstallTimeout)
	defer cancel()
	err := q.workIn(ctx, j)
	var failed *Error
	switch {
	case err == nil, errors.As(err, &failed):
		return err
	case outer.Err() != nil:
		return context.Cause(outer)
	case errors.Is(context.Cause(ctx), errInstallTimeout):
		return &Error{Language: q.language.Name, Libraries: q.libraries, Environment: q.environment.name(), Status: StatusTimeout, Err: fmt.Errorf("%w of %v", errInstallTimeout, q.options.Timeout)}
	}
	return q.fail(err)
}

// workIn makes the sandbox, and ends it.
func (q *Libraries) workIn(ctx context.Context, j job) (err error) {
	spec := backend.Spec{
		Image: q.spec.Image, Language: q.spec.Language, BestEffort: true, Progress: q.spec.Progress,
		Limits: backend.Limits{Memory: installMemory, PIDs: installPIDs, Disk: installDisk, CPUs: float64(runtime.NumCPU())},
	}
	if err := q.mountEnvironment(ctx, &spec); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(j.layers)) {
		q.mount(&spec, key, j.layers[key])
	}
	if j.from != nil && j.from.accelerator.source != "" {
		spec.Layers = append(spec.Layers, backend.Layer{Source: j.from.accelerator.source, Target: acceleratorDir})
	}
	var machine func() (language.Registries, error)
	if j.from == nil && q.options.Local == "" {
		machine = q.machineRegistries(ctx)
	}
	s, err := q.maker.Open(ctx, q.maker.Backend, q.language, spec, Limits{Output: installOutput, Timeout: q.options.Timeout})
	if err != nil {
		return fmt.Errorf("open the sandbox that installs: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := needs(ctx, s, q.language); err != nil {
		return err
	}
	in := j.from
	if in == nil {
		if in, err = q.findInstaller(ctx, s, j.stage, machine); err != nil {
			return err
		}
	}
	if len(in.registries.URLs) > 0 {
		if err := reachRegistries(ctx, s, in.registries, in.trusted); err != nil {
			return err
		}
	}
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	target := cmp.Or(j.dir, libraryDir(tempOf(s.Guest()), j.name))
	if err := client.Mkdir(ctx, target, 0o755, true); err != nil {
		return fmt.Errorf("make the folder of libraries: %w", err)
	}
	src := language.InstallSource{
		Libraries: q.libraries, Dir: target, TempDir: s.Guest().TempDir, Registries: in.registries, Host: s.Guest().Host, On: q.on,
		Accelerator: in.accelerator.program,
	}
	if q.options.Local != "" {
		src.Local = path.Join(src.TempDir, installLocal)
		if _, err := transfer.CopyIn(ctx, client, q.options.Local, src.Local, localLimits); err != nil {
			return fmt.Errorf("folder of libraries: %w", err)
		}
	}
	if j.instead != nil {
		in.src = src
		if made, err := j.instead(ctx, s, *in); made || err != nil {
			return err
		}
	}
	if err := q.runTool(ctx, s, src, j.stage, j.plan); err != nil {
		return err
	}
	return j.done(ctx, s, target)
}

// findInstaller finds out where libraries come from, and meanwhile brings the accelerator into the sandbox.
func (q *Libraries) findInstaller(ctx context.Context, s Sandbox, stage string, machine func() (language.Registries, error)) (*installer, error) {
	in := &installer{}
	work, ctx := errgroup.WithContext(ctx)
	if machine != nil {
		work.Go(func() (err error) {
			if in.registries, in.trusted, err = q.registries(machine, q.tools(ctx, s), s.Guest().Host); err != nil {
				err = fmt.Errorf("find out where libraries come from: %w", err)
			}
			return err
		})
	}
	if stage == stageInstall {
		work.Go(func() (err error) {
			in.accelerator, err = q.accelerator(ctx, s)
			return err
		})
	}
	return in, work.Wait()
}

// runTool runs the package tool.
func (q *Libraries) runTool(ctx context.Context, s Sandbox, src language.InstallSource, stage string, plan planner) error {
	output := newToolOutput(q.spec.Progress, backend.Progress{Stage: stage, Message: q.title()})
	timeout := q.options.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline), time.Millisecond))
	}
	res, err := s.Run(ctx, Run{Output: output, Timeout: timeout, Plan: func(program func(...string) string) (language.Plan, error) {
		src.Program = program
		p, err := plan(src)
		if err != nil {
			err = fmt.Errorf("plan the installation: %w", err)
		}
		return settleIn(src.TempDir, p), err
	}})
	if err != nil {
		return err
	}
	if res.Status == StatusOK {
		return nil
	}
	failed := &Error{Language: q.language.Name, Libraries: q.libraries, Environment: q.environment.name(), Status: res.Status, Output: explained(output.last(), res.Attempts, src.Registries.Credentials)}
	if res.Reason != "" {
		failed.Err = errors.New(res.Reason)
	}
	if res.Status == StatusTimeout {
		failed.Err = fmt.Errorf("%w of %v", errInstallTimeout, q.options.Timeout)
	}
	return failed
}

// needs fails when none of the alternatives of something that installing needs is there.
func needs(ctx context.Context, s Sandbox, lang *language.Language) error {
	for _, alternatives := range lang.Libraries.Needs {
		found := false
		for _, program := range alternatives {
			ok, err := inPath(ctx, s, program)
			if err != nil {
				return err
			}
			if found = found || ok; found {
				break
			}
		}
		if !found {
			return fmt.Errorf("%s is not in this place: %w: installing libraries of %s needs it: add it to the image, or to this machine for a sandbox without one",
				alternatives[0], language.ErrToolchain, lang.Title)
		}
	}
	return nil
}

// inPath reports whether a program is in the sandbox's PATH.
func inPath(ctx context.Context, s Sandbox, program string) (bool, error) {
	client, err := s.Client(ctx)
	if err != nil {
		return false, err
	}
	for _, dir := range pathDirs(s.Guest().Env) {
		_, err := client.Stat(ctx, path.Join(dir, program))
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case !absent(err):
			return false, fmt.Errorf("look for %s: %w", program, err)
		}
	}
	return false, nil
}

// absent reports whether the agent has answered that there is no such file, or none that can
// be reached.
func absent(err error) bool {
	switch agentlink.Code(err) {
	case agentproto.CodeNotFound, agentproto.CodeNotDir, agentproto.CodePermission, agentproto.CodeUnsafe:
		return true
	}
	return false
}

// pathDirs are the absolute directories of an environment's PATH.
func pathDirs(env []string) []string {
	var dirs []string
	for _, dir := range strings.Split(environ.Value(env, "PATH"), ":") {
		if path.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Bounds of what is kept of a package tool's output, which hostile packages write to, too.
const (
	maxToolLines = 30
	maxToolLine  = 500
)

// toolOutput keeps the last lines that a tool writes, and reports each as the Output of a step. It
// may be written to from several goroutines; each writes whole pieces.
type toolOutput struct {
	report func(backend.Progress) // may be nil
	step   backend.Progress

	mu      sync.Mutex
	partial []byte
	lines   []string
}

func newToolOutput(report func(backend.Progress), step backend.Progress) *toolOutput {
	return &toolOutput{report: report, step: step}
}

// Write never fails.
func (w *toolOutput) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := maxToolLine - len(w.partial); room > 0 {
			w.partial = append(w.partial, line[:min(len(line), room)]...)
		}
		if ended {
			w.end()
		}
		rest = after
	}
	return len(p), nil
}

// end takes the line so far. Of a line that was drawn over, a progress bar, only the last
// state counts.
func (w *toolOutput) end() {
	text := strings.TrimRight(string(w.partial), " \t\r")
	text = text[strings.LastIndexByte(text, '\r')+1:]
	w.partial = w.partial[:0]
	text = strings.ToValidUTF8(termsafe.String(text), "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(w.lines) == maxToolLines {
		w.lines = append(w.lines[:0], w.lines[1:]...)
	}
	w.lines = append(w.lines, text)
	if w.report != nil {
		w.step.Output = text
		w.report(w.step)
	}
}

// last returns the last lines.
func (w *toolOutput) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	return strings.Join(w.lines, "\n")
}
