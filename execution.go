package llmsandbox

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/security"
)

// An execution is what Run and Exec have in common of their options.
type execution struct {
	env            map[string]string
	dir            string
	user           string
	stdin          io.Reader
	stdout, stderr io.Writer
	timeout        time.Duration
	keepChildren   bool
	terminal       *WinSize
}

// A run is one execution on its way from options to result.
type run struct {
	sandbox  *Sandbox
	language *language.Language // nil for Exec
	opts     execution
	environ  []string
	dir      string
	timeout  time.Duration // 0: none
	output   int64         // 0: no limit
	out, err *capture
	onStart  func(*agentclient.Process) // nil unless there is a Process; not of a compiler
	findings []security.Finding         // of the policy, where there is a Process
	// rename is set for a Run, whose files have other names than the caller knows.
	rename func(io.Writer) *language.Renamer
	// artifacts say what is collected, by collection, which is nil where nothing is.
	artifacts  ArtifactOptions
	collection *collection

	started time.Time
	wall    time.Duration   // by the sandbox's clock, of a process that was attached to
	exit    agentproto.Exit // of the last step that ran
	// compiling tells that it was a compile step, whose output is our stderr.
	compiling bool
	cpu       time.Duration
	peak      int64
	ooms      oomWatch
	network   networkRecord // nil without a network
}

func (s *Sandbox) newExecution(o execution) (*run, error) {
	if err := s.link.Alive(); err != nil {
		return nil, err
	}
	limits := Limits{Timeout: o.timeout}
	if o.timeout == 0 && s.limits.Timeout == 0 {
		limits.Timeout = Unlimited
	}
	if err := limits.resolveTimeout(s.limits.Timeout); err != nil {
		return nil, err
	}
	env, err := envList(s.environ(), o.env)
	if err != nil {
		return nil, err
	}
	guest := s.machine.Guest()
	dir := o.dir
	if !path.IsAbs(dir) {
		dir = path.Join(guest.Workdir, dir)
	}
	if strings.Contains(dir, "\x00") {
		return nil, fmt.Errorf("working folder %q: %w: it holds a NUL", o.dir, ErrInvalid)
	}
	return &run{
		sandbox: s, opts: o, environ: env, dir: dir, timeout: limits.Timeout, output: s.limits.Output,
		out: newCapture(s.limits.Output, o.stdout), err: newCapture(s.limits.Output, o.stderr),
	}, nil
}

// A missingProgramError tells that a step's program is not in the sandbox.
type missingProgramError struct {
	program string
	cause   error
}

func (e *missingProgramError) Error() string { return e.cause.Error() }
func (e *missingProgramError) Unwrap() error { return e.cause }

// begin starts the run's time, unless it runs already: installing the run's libraries counts too.
func (r *run) begin() {
	if r.started.IsZero() {
		r.started = time.Now()
	}
}

// execute runs a plan's steps in order until one fails.
func (r *run) execute(ctx context.Context, plan language.Plan) error {
	r.begin()
	env, err := r.sandbox.libraries.Environ(ctx, r.environ)
	if err != nil {
		return err
	}
	r.capture(&plan, env)
	if r.network == nil {
		r.network = r.sandbox.recordNetwork(ctx)
	}
	r.ooms = watchOOM(ctx, r.sandbox.machine)
	return r.steps(ctx, plan, env, 0)
}

// steps runs those of a plan from one on, in an environment.
func (r *run) steps(ctx context.Context, plan language.Plan, env []string, from int) error {
	for i, step := range plan.Steps {
		if i < from {
			continue
		}
		last := i == len(plan.Steps)-1
		req := agentproto.StartRequest{
			Argv: step.Argv, Env: environ.AddMissing(env, step.Env),
			Dir: r.dir, User: r.opts.user,
		}
		if r.collection != nil && !step.Compile {
			req.Env = environ.Override(req.Env, r.collection.env())
			req.Tag = runTag{r.collection.id, r.opts.keepChildren}.String()
		}
		if step.Dir != "" {
			req.Dir = step.Dir
		}
		if i == 0 {
			req.Files = inlineFiles(plan.Files)
		}
		if last {
			req.RemoveAfter = plan.Cleanup
			req.KeepChildren = r.opts.keepChildren
		}
		done, err := r.step(ctx, req, step.Compile)
		if err != nil || done {
			if !last {
				r.cleanup(ctx, plan.Cleanup)
			}
			return err
		}
	}
	return nil
}

// step runs one process; done tells that the run ends with it.
func (r *run) step(ctx context.Context, req agentproto.StartRequest, compile bool) (done bool, err error) {
	if r.timeout > 0 {
		left := r.timeout - time.Since(r.started)
		req.TimeoutMillis = uint64(max(left, time.Millisecond).Milliseconds())
	}
	if r.output > 0 {
		req.OutputLimit = uint64(max(r.output-r.out.written()-r.err.written(), 1))
	}
	stderr, flush := r.stderr()
	defer flush()
	std := agentlink.Streams{Stdout: r.out, Stderr: stderr, OnStart: r.onStart}
	switch {
	case compile: // what a compiler prints is no output of the program
		stdout, flush := r.stderr()
		defer flush()
		std.Stdout, std.OnStart = stdout, nil
	case r.opts.terminal != nil:
		req.PTY = (*agentproto.WinSize)(r.opts.terminal)
		std.Stdin = r.opts.stdin
	default:
		std.Stdin, req.Stdin = r.opts.stdin, r.opts.stdin != nil
	}
	r.sandbox.dropUsedAhead(ctx)
	exit, err := r.sandbox.link.Run(ctx, req, std)
	if err != nil {
		if agentlink.Code(err) == agentproto.CodeNotFound && len(req.Argv) > 0 {
			return true, &missingProgramError{program: req.Argv[0], cause: err}
		}
		return true, err
	}
	return r.ended(exit, compile), nil
}

// ended notes how a step has ended, and reports whether it has failed.
func (r *run) ended(exit agentproto.Exit, compile bool) (failed bool) {
	r.exit, r.compiling = exit, compile
	r.cpu += time.Duration(exit.CPUMicros) * time.Microsecond
	r.peak = max(r.peak, int64(exit.PeakRSS))
	return exit.Code != 0 || exit.Signal != 0 || exit.Reason != agentproto.NotKilled
}

// stderr is what one stream of a step writes to the run's stderr with; flush ends that.
func (r *run) stderr() (w io.Writer, flush func()) {
	if r.rename == nil {
		return r.err, func() {}
	}
	names := r.rename(r.err)
	return names, func() { _ = names.Flush() } // a capture's Write does not fail
}

// cleanup removes a run's files after a step that was not the last. What cannot be
// removed goes with the sandbox.
func (r *run) cleanup(ctx context.Context, paths []string) {
	client, err := r.sandbox.link.Client(ctx)
	if err != nil {
		return
	}
	for _, p := range paths {
		r.sandbox.link.Warn("a run's files could not be removed", client.Remove(ctx, p, agentclient.RemoveOptions{Recursive: true, Missing: true}), "path", p)
	}
}
