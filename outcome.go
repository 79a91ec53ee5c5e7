package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// result turns what was observed of a run into its Result.
func (r *run) result(ctx context.Context, err error) (*Result, error) {
	s := r.sandbox
	res := &Result{
		SandboxID: s.ID(), Backend: s.backend, Capabilities: s.Capabilities(),
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
		return res, captureErrors(r.out, r.err)
	}
	if err != nil {
		err = r.blame(err)
		res.Status, res.Reason = failureStatus(err, r.started), err.Error()
		return res, err
	}
	r.outcome(ctx, res)
	return res, captureErrors(r.out, r.err)
}

// blame puts the cause of a failed run in words somebody can act on.
func (r *run) blame(err error) error {
	var missing *missingProgramError
	if errors.As(err, &missing) && r.language != nil {
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
		code := int(exit.Code)
		res.ExitCode = &code // also of one that wrote too much and ended before the kill reached it
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
	}
	if exit.Signal == 0 && exit.Code == 0 {
		res.Status = StatusOK
		return
	}
	if r.ooms.happened(ctx, exit) {
		res.Status = StatusOutOfMemory
		res.Reason = "the sandbox reached its memory limit and the kernel killed a process"
		if limit := r.sandbox.limits.Memory; limit > 0 {
			res.Reason = fmt.Sprintf("the sandbox reached its memory limit of %d MiB and the kernel killed a process", limit>>20)
		}
		return
	}
	if exit.Signal != 0 {
		res.Status = StatusKilled
		return
	}
	res.Status = StatusError
}
