package llmsandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// A Process is a program in the sandbox that [Sandbox.Start] or [Sandbox.StartRun] has started,
// or that [Sandbox.AttachProcess] has found. Its output is read all the time. Its methods may be
// called concurrently.
type Process struct {
	sandbox *Sandbox
	id      uint64
	pid     int

	detach context.CancelCauseFunc
	done   chan struct{} // closed once result and err are set
	result *Result
	err    error
}

// Start starts a program with its arguments as [Sandbox.Exec] does, and returns once it
// runs. ctx bounds the start only: the process ends by itself, by Kill, at its timeout, or
// with the sandbox. opts may be nil.
func (s *Sandbox) Start(ctx context.Context, argv []string, opts *ExecOptions) (*Process, error) {
	r, err := s.newExec(argv, opts)
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, r, context.Cause, func(running context.Context) error {
		return r.execute(running, language.Plan{Steps: []language.Step{{Argv: argv}}})
	})
}

// AttachOutput says what becomes of the output and input of a process that is attached to.
type AttachOutput struct {
	// Stdin, Stdout and Stderr mean what they mean in [RunOptions].
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdoutOffset and StderrOffset say from which byte of the process's output on it is
	// wanted, counted from its start; 0 means from the first one that is still kept in
	// the sandbox. A byte that is no longer kept fails with ErrLost.
	StdoutOffset, StderrOffset int64
}

// AttachProcess takes over a process of the sandbox by its number: one that another handle
// or program has started, also with Run, as long as its end has not been delivered. It fails with
// fs.ErrNotExist when there is none. The handle that follows the process until then gets ErrDetached.
// The result's output begins where it is attached to, and counts as truncated unless that
// is the start. The result of a Run's process has the artifacts, as this handle's
// ArtifactOptions bound them, if the handle that began it collects any. opts may be nil.
func (s *Sandbox) AttachProcess(ctx context.Context, id uint64, opts *AttachOutput) (*Process, error) {
	opts = cmp.Or(opts, &AttachOutput{})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if opts.StdoutOffset < 0 || opts.StderrOffset < 0 {
		return nil, fmt.Errorf("attach to process %d: %w: an offset is negative", id, ErrInvalid)
	}
	r, err := s.newExecution(execution{stdin: opts.Stdin, stdout: opts.Stdout, stderr: opts.Stderr, timeout: Unlimited})
	if err != nil {
		return nil, err
	}
	detach := func(context.Context) error { return ErrDetached } // and not kill what is another's
	return s.follow(ctx, r, detach, func(running context.Context) error { return r.attach(running, id, opts) })
}

// follow sees a run to its end beside its caller, from the time on when its process runs.
// giveUp is the cause with which execute's context ends when ctx does before that.
func (s *Sandbox) follow(ctx context.Context, r *run, giveUp func(context.Context) error, execute func(context.Context) error) (*Process, error) {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &Process{sandbox: s, detach: cancel, done: make(chan struct{})}
	started := make(chan struct{})
	r.onStart = func(a *agentclient.Process) {
		p.id, p.pid = a.ID(), int(a.PID())
		close(started)
	}
	go func() {
		defer close(p.done)
		defer cancel(nil)
		err := execute(running)
		p.result, p.err = r.result(running, err)
		p.result.Findings = r.findings
		r.collect(running, p.result, err)
	}()
	select {
	case <-started:
		return p, nil
	case <-p.done:
		if p.err != nil {
			return nil, p.err
		}
		return p, nil // it has ended already
	case <-ctx.Done():
		cancel(giveUp(ctx))
		<-p.done
		return nil, context.Cause(ctx)
	}
}

// attach follows a process that runs already.
func (r *run) attach(ctx context.Context, id uint64, opts *AttachOutput) error {
	s := r.sandbox
	client, err := s.link.Client(ctx)
	if err != nil {
		return err
	}
	r.network = s.recordNetwork(ctx)
	r.ooms = watchOOM(ctx, s.machine)
	info, err := s.processInfo(ctx, client, id)
	if err != nil {
		return err
	}
	a, err := client.Attach(ctx, agentproto.AttachRequest{ID: id, OutOffset: kept(opts.StdoutOffset), ErrOffset: kept(opts.StderrOffset)})
	if err != nil {
		return fmt.Errorf("attach to process %d: %w", id, s.link.Explain(ctx, err))
	}
	r.started = time.UnixMilli(int64(info.StartMillis))
	r.adopt(info.Tag)
	out, errs := a.Offsets()
	if out > 0 {
		r.out.Truncate()
	}
	if errs > 0 {
		r.err.Truncate()
	}
	r.onStart(a)
	exit, err := s.link.Follow(ctx, client.Info(), a, agentlink.Streams{Stdin: r.opts.stdin, Stdout: r.out, Stderr: r.err})
	if err != nil {
		return err
	}
	r.ended(exit, false)
	r.wall = time.Duration(exit.WallMicros) * time.Microsecond
	return nil
}

// kept is the agent's offset for one of [AttachOutput].
func kept(offset int64) uint64 {
	if offset == 0 {
		return agentproto.FirstKept
	}
	return uint64(offset)
}

// ID is the sandbox's number of the process, by which AttachProcess finds it. It is never
// used twice.
func (p *Process) ID() uint64 { return p.id }

// PID is the process's pid inside the sandbox.
func (p *Process) PID() int { return p.pid }

// Done is closed when Wait returns at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns what became of the process once it has ended, as [Sandbox.Exec] does. When
// ctx ends before, it returns no result and the context's error, and the process goes on.
func (p *Process) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Signal sends the process a signal by its name or number: SIGINT, INT, 2. What the process
// has started gets none. That the process has ended is no error, here and in Interrupt, Kill and
// Resize.
func (p *Process) Signal(ctx context.Context, name string) error {
	number, ok := signame.Number(name)
	if !ok {
		return fmt.Errorf("signal process %d: %w: there is no signal %q", p.id, ErrInvalid, name)
	}
	return p.call(ctx, "signal", func(c *agentclient.Client) error { return c.Signal(ctx, p.id, number, false) })
}

// Interrupt sends SIGINT to the process and to those of its process group, as Ctrl-C on a
// terminal does.
func (p *Process) Interrupt(ctx context.Context) error {
	return p.call(ctx, "interrupt", func(c *agentclient.Client) error { return c.Signal(ctx, p.id, sigInt, true) })
}

// Kill kills the process with all that it has started, and returns once that has ended.
func (p *Process) Kill(ctx context.Context) error {
	return p.call(ctx, "kill", func(c *agentclient.Client) error { return c.Kill(ctx, p.id) })
}

// Resize changes the size of the process's terminal.
func (p *Process) Resize(ctx context.Context, size WinSize) error {
	return p.call(ctx, "resize the terminal of", func(c *agentclient.Client) error {
		return c.Resize(ctx, p.id, agentproto.WinSize(size))
	})
}

// Detach lets the process go on without this Process, whose Wait then returns ErrDetached
// and what it has seen of the output. What it has not yet read is kept in the sandbox for
// AttachProcess, and once that is much, the process waits for someone to read it.
func (p *Process) Detach() {
	p.detach(ErrDetached)
	<-p.done
}

func (p *Process) call(ctx context.Context, what string, do func(*agentclient.Client) error) error {
	_, err := agentlink.Call(ctx, p.sandbox.link, fmt.Sprintf("%s process %d", what, p.id), func(c *agentclient.Client) (struct{}, error) {
		err := do(c)
		if code := agentlink.Code(err); code == agentproto.CodeNotFound || code == agentproto.CodeLost {
			err = nil // it has ended
		}
		return struct{}{}, err
	})
	return err
}

// A ProcessInfo describes a process that Start, Exec, Shell or Run has started in the sandbox,
// through this handle or another one.
type ProcessInfo struct {
	ID      uint64 // see Process.ID
	PID     int
	Argv    []string
	Started time.Time // by the sandbox's clock
	// Running is false once it has ended. Then it is still listed as long as its end has not
	// been delivered, or what it has started runs on.
	Running bool
	// Of its output, the bytes from Start up to End are kept in the sandbox, counted from
	// the process's start.
	StdoutStart, StdoutEnd, StderrStart, StderrEnd int64
	// CPU and Memory (in bytes) are what the process and those that it has started use.
	CPU    time.Duration
	Memory int64
}

// processInfo is what the agent has of a process that Processes lists.
func (s *Sandbox) processInfo(ctx context.Context, client *agentclient.Client, id uint64) (agentproto.ProcessInfo, error) {
	infos, err := client.Processes(ctx)
	if err != nil {
		return agentproto.ProcessInfo{}, fmt.Errorf("list the processes in sandbox %s: %w", s.ID(), s.link.Explain(ctx, err))
	}
	for _, info := range infos {
		if info.ID == id && isProgram(info) {
			return info, nil
		}
	}
	return agentproto.ProcessInfo{}, fmt.Errorf("process %d in sandbox %s: %w: see Processes for those there are", id, s.ID(), fs.ErrNotExist)
}

// isProgram reports whether a process is neither a kernel nor an interpreter that waits for
// its code.
func isProgram(p agentproto.ProcessInfo) bool {
	_, isRun := parseRunTag(p.Tag)
	return p.Tag == "" || isRun && !p.Resting
}

// Processes lists what has been started in the sandbox, the oldest first. Kernels, and what
// programs inside have started themselves, are not in it.
func (s *Sandbox) Processes(ctx context.Context) ([]ProcessInfo, error) {
	return agentlink.Call(ctx, s.link, "list the processes", func(c *agentclient.Client) ([]ProcessInfo, error) {
		all, err := c.Processes(ctx)
		var infos []ProcessInfo
		for _, p := range all {
			if !isProgram(p) {
				continue
			}
			infos = append(infos, ProcessInfo{
				ID: p.ID, PID: int(p.PID), Argv: p.Argv, Started: time.UnixMilli(int64(p.StartMillis)), Running: p.Running,
				StdoutStart: int64(p.OutStart), StdoutEnd: int64(p.OutEnd), StderrStart: int64(p.ErrStart), StderrEnd: int64(p.ErrEnd),
				CPU: time.Duration(p.CPUMicros) * time.Microsecond, Memory: int64(p.RSS),
			})
		}
		return infos, err
	})
}
