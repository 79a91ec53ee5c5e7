package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// result turns what was observed of a run into its Result.
func (r *run) result(ctx context.Context, err error) (*Result, error) {
	s := r.sandbox
	res := &Result{
		ExitCode: noExitCode, SandboxID: s.ID(), Backend: s.backend, Capabilities: s.Capabilities(),
		Stdout: r.out.text(), Stderr: r.err.text(),
		StdoutTruncated: r.out.cut(), StderrTruncated: r.err.cut(),
		CPU: r.cpu, PeakMemory: r.peak,
	}
	if r.language != nil {
		res.Language = r.language.Name
	}
	switch {
	case r.wall > 0:
		res.Duration = r.wall
	case !r.started.IsZero():
		res.Duration = time.Since(r.started)
	}
	settle := gateway.SettleTime
	if r.opts.keepChildren {
		settle = gateway.AnswerTime
	}
	res.Network, res.NetworkDropped = attempts(r.network, settle)
	if errors.Is(err, errRunTimeout) {
		return r.timedOutEarly(res)
	}
	if why := r.ooms.lost(ctx, r.sandbox, err); why != "" {
		res.Status, res.Reason = StatusOutOfMemory, why
		res.Hints = s.hints(r.language, res.Status, "", nil)
		return res, captureErrors(r.out, r.err)
	}
	if err != nil {
		err = r.blame(err)
		res.Status, res.Reason = failureStatus(err, r.started), err.Error()
		return res, err
	}
	r.outcome(ctx, res)
	res.Hints = s.hints(r.language, res.Status, res.Stderr, res.Network)
	if r.exit.Reason == agentproto.KilledDiskLimit {
		res.Hints = []Hint{{Kind: HintDisk}}
	}
	return res, captureErrors(r.out, r.err)
}

// blame says of a failed run what can be done about it.
func (r *run) blame(err error) error {
	if missing, ok := errors.AsType[*missingProgramError](err); ok && r.language != nil {
		return fmt.Errorf("%s is not in this sandbox: %w: %s", missing.program, ErrToolchain, r.language.Install)
	}
	return err
}

func failureStatus(err error, started time.Time) Status {
	switch {
	case errors.Is(err, ErrLost), errors.Is(err, ErrDetached):
		return StatusLost
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if started.IsZero() {
			return StatusSetupFailed
		}
		return StatusKilled
	default:
		return StatusSetupFailed
	}
}

// outcome reads the status off the last process's observed end.
func (r *run) outcome(ctx context.Context, res *Result) {
	exit := r.exit
	if exit.Signal != 0 {
		res.Signal = signame.Name(exit.Signal)
	} else {
		res.ExitCode = int(exit.Code) // also of one that wrote too much and ended before the kill reached it
	}
	switch exit.Reason {
	case agentproto.KilledTimeout:
		res.Status = StatusTimeout
		res.Reason = "the run took longer than its timeout and was killed with all it started"
		if r.timeout > 0 {
			res.Reason = fmt.Sprintf("the run took longer than its timeout of %v and was killed with all it started", r.timeout)
		}
		return
	case agentproto.KilledOutputLimit:
		res.Status = StatusOutputLimit
		res.Reason = fmt.Sprintf("the program wrote more than %d bytes: what is over that is dropped, and what still ran was killed", r.output)
		res.StdoutTruncated = res.StdoutTruncated || exit.OutCut && !r.compiling
		res.StderrTruncated = res.StderrTruncated || exit.ErrCut || exit.OutCut && r.compiling
		return
	case agentproto.KilledDiskLimit:
		res.Status, res.Reason = StatusKilled, r.sandbox.diskReached()
		return
	}
	if exit.Signal == 0 && exit.Code == 0 {
		res.Status = StatusOK
		return
	}
	if r.ooms.happened(ctx, exit) {
		res.Status = StatusOutOfMemory
		res.Reason = "the sandbox reached its memory limit and a process was killed for it"
		if limit := r.sandbox.limits.Memory; limit > 0 {
			res.Reason = fmt.Sprintf("the sandbox reached its memory limit of %d MiB and a process was killed for it", limit>>20)
		}
		return
	}
	if exit.Signal != 0 {
		res.Status = StatusKilled
		return
	}
	res.Status = StatusError
}

const (
	sigInt  = 2
	sigKill = 9
)

// diskReached says that files took more than the disk limit, where the kernel does not keep more from being written.
func (s *Sandbox) diskReached() string {
	limit := "its disk limit"
	if d := s.limits.Disk; d > 0 {
		limit = fmt.Sprintf("its disk limit of %d MiB", d>>20)
	}
	return "the files in the sandbox took more than " + limit + " and all that ran was killed: remove files, or open a sandbox with a higher limit"
}

// An oomWatch tells whether a process was killed for memory while a run went on.
type oomWatch struct {
	machine backend.Machine
	known   bool
	before  int64
}

func watchOOM(ctx context.Context, m backend.Machine) oomWatch {
	n, known := m.OOMKills(ctx)
	return oomWatch{machine: m, known: known, before: n}
}

// happened tells whether a run that failed did so because of memory: a kill was
// counted meanwhile, and the run's own process was killed or gave up. The
// agent's count, where it has one, is that of the process's own time.
func (w *oomWatch) happened(ctx context.Context, exit agentproto.Exit) bool {
	if exit.Signal != 0 && exit.Signal != sigKill {
		return false
	}
	if exit.OOMKnown {
		return exit.OOMKills > 0
	}
	if !w.known {
		return false
	}
	n, known := w.machine.OOMKills(ctx)
	return known && n > w.before
}

// lost tells why a run that was lost has run out of memory; "" if it has not, or was not lost.
func (w *oomWatch) lost(ctx context.Context, s *Sandbox, err error) string {
	var unobserved *agentlink.UnobservedError
	switch {
	case !errors.Is(err, ErrLost):
		return ""
	case s.killedForMemory():
		return "the sandbox reached " + s.memoryLimit() + " and was killed as a whole; the last of the output may be missing: open a new sandbox"
	case errors.As(err, &unobserved) && w.happened(ctx, unobserved.Exit):
		return "the sandbox reached " + s.memoryLimit() + " and the kernel killed the program's parent process too; the last of the output may be missing: free memory, such as files in memory, or open a new sandbox"
	}
	return ""
}

// killedForMemory tells whether the sandbox has ended because all of it was killed for
// memory: what ran in it was, too.
func (s *Sandbox) killedForMemory() bool {
	select {
	case <-s.machine.Done():
		return s.machine.End().KilledForMemory
	default:
		return false
	}
}

// memoryLimit names the limit.
func (s *Sandbox) memoryLimit() string {
	if m := s.limits.Memory; m > 0 {
		return fmt.Sprintf("its memory limit of %d MiB", m>>20)
	}
	return "its memory limit"
}
