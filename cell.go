package llmsandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/internal/signame"
	"github.com/llmsandbox/llmsandbox/security"
)

// CellOptions say how a cell is run. The zero value (or nil) runs it without input.
type CellOptions struct {
	// Stdin answers the code's request for a line of input, without its newline; nil, or
	// an error, answers it with end-of-file. Its context ends when the cell no longer waits for the
	// answer, at the latest with the cell. password means that the line should not be shown.
	Stdin func(ctx context.Context, prompt string, password bool) (string, error)
	// Stdout and Stderr, when set, get the output as in [RunOptions].
	Stdout, Stderr io.Writer
	// Timeout bounds the cell; 0 means the sandbox's Limits.Timeout, Unlimited none.
	// When it is over the cell is interrupted, and if it does not end by that, the
	// kernel's process is killed.
	Timeout time.Duration
}

// A Cell is what became of one.
type Cell struct {
	// Status is what became of the code: [StatusError] for an exception, [StatusTimeout],
	// [StatusOutputLimit], [StatusOutOfMemory], [StatusKilled] for an interrupt and for a
	// signal that ended the kernel, [StatusRefused], [StatusLost], [StatusSetupFailed].
	Status Status `json:"status"`
	// Count is the cell's number in its kernel's process, from 1.
	Count int `json:"count"`
	// Stdout and Stderr are what the code and the processes it started wrote, as in
	// [Result].
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
	// Value is that of the last expression by media type, "text/plain" among them; media
	// types that are not text have it as base64. Nil: there is none.
	Value map[string]string `json:"value,omitempty"`
	// Error is what the code ended with, when Status is StatusError and it was no exit.
	Error *CellError `json:"error,omitempty"`
	// ExitCode is that of a cell that exits (sys.exit) or has one (Bash), or of the
	// kernel's process when it ended; -1 otherwise.
	ExitCode int `json:"-"`
	// Signal is the name of the signal that ended the kernel's process.
	Signal string `json:"signal,omitempty"`
	// Artifacts and ArtifactsDropped are as in [Result].
	Artifacts        []Artifact `json:"artifacts"`
	ArtifactsDropped []string   `json:"artifacts_dropped,omitempty"`
	// Network and NetworkDropped are as in [Result].
	Network        []NetworkAttempt `json:"network,omitempty"`
	NetworkDropped int              `json:"network_dropped,omitempty"`
	// Findings are as in [Result].
	Findings []security.Finding `json:"findings,omitempty"`
	// Duration is the cell's wall time.
	Duration time.Duration `json:"-"`
	// Interrupted means that the cell was interrupted, and ended by that.
	Interrupted bool `json:"interrupted,omitempty"`
	// StateLost means that what cells have defined is gone: the next cell has a new process.
	StateLost bool `json:"state_lost,omitempty"`
	// Restarted means that the kernel's process had ended between the cells before this
	// one, which therefore found none of their state.
	Restarted bool `json:"restarted,omitempty"`
	// Reason is a sentence on why there is no ordinary outcome, or empty.
	Reason string `json:"reason,omitempty"`
	// Hints are as in [Result].
	Hints []Hint `json:"hints,omitempty"`
}

// OK reports whether the cell ended without an error.
func (c *Cell) OK() bool { return c.Status == StatusOK }

// A CellError is an error of a cell's code, as its language tells it.
type CellError struct {
	Name      string `json:"name"`                // "ZeroDivisionError"
	Message   string `json:"message"`             // "division by zero"
	Traceback string `json:"traceback,omitempty"` // with the cell's line numbers
}

// Run runs a cell and returns what became of it. opts may be nil. The error is nil whenever that was
// observed, whatever it was; otherwise it is as Run's of a sandbox. The cell is never nil.
// When ctx ends the cell is interrupted as by a timeout.
func (k *Kernel) Run(ctx context.Context, code string, opts *CellOptions) (*Cell, error) {
	findings, refused, err := k.sandbox.policy.Check(ctx, security.Program{Language: k.language.Name, Code: []byte(code)})
	if err != nil {
		return failedCell(err)
	}
	if refused != "" {
		return &Cell{Status: StatusRefused, ExitCode: noExitCode, Reason: refused, Findings: findings}, nil
	}
	cell, err := k.runChecked(ctx, code, opts)
	cell.Findings = findings
	return cell, err
}

// runChecked runs a cell that the policy lets pass.
func (k *Kernel) runChecked(ctx context.Context, code string, opts *CellOptions) (*Cell, error) {
	c, err := k.newCell(code, opts, k.sandbox.limits.Timeout)
	if err != nil {
		return failedCell(err)
	}
	turn, err := k.kernel.Take(ctx)
	if err != nil {
		return failedCell(err)
	}
	defer turn.End()
	network := k.sandbox.recordNetwork(ctx)
	if err := turn.Begin(ctx, c.Cell); err != nil {
		attempts(network, 0)
		return failedCell(err)
	}
	return k.finish(ctx, turn, c, network)
}

// A capturedCell is a cell whose output is kept.
type capturedCell struct {
	kernel.Cell
	out, err *capture
}

// newCell is a cell whose options have no timeout unless they or otherwise, which may be 0, say so.
func (k *Kernel) newCell(code string, opts *CellOptions, otherwise time.Duration) (*capturedCell, error) {
	opts = cmp.Or(opts, &CellOptions{})
	limits := Limits{Timeout: opts.Timeout}
	if limits.Timeout == 0 && otherwise == 0 {
		limits.Timeout = Unlimited
	}
	if err := limits.resolveTimeout(otherwise); err != nil {
		return nil, err
	}
	limit := k.sandbox.limits.Output
	out, errs := newCapture(limit, opts.Stdout), newCapture(limit, opts.Stderr)
	return &capturedCell{kernel.Cell{
		Code: code, Input: opts.Stdin, Stdout: out, Stderr: errs, OutputLimit: limit, Timeout: limits.Timeout,
	}, out, errs}, nil
}

// failedCell is a cell that did not come to start.
func failedCell(err error) (*Cell, error) {
	return &Cell{Status: failureStatus(err, time.Time{}), ExitCode: noExitCode, Reason: err.Error()}, err
}

// finish waits for the cell's end and returns what became of it; nil when none ran.
func (k *Kernel) finish(ctx context.Context, turn *kernel.Turn, c *capturedCell, network networkRecord) (*Cell, error) {
	o := turn.Wait()
	if o.Idle {
		attempts(network, 0)
		turn.PutBack(c.out.unforwarded(), c.err.unforwarded())
		k.collect(ctx, o, &Cell{}) // what earlier cells have made is none of the next one's
		return nil, nil
	}
	cell := k.result(ctx, o, c)
	cell.Network, cell.NetworkDropped = attempts(network, gateway.AnswerTime)
	cell.Hints = k.hints(cell)
	k.collect(ctx, o, cell)
	return cell, errors.Join(k.failure(ctx, o), captureErrors(c.out, c.err))
}

// hints returns what may help a cell that failed.
func (k *Kernel) hints(cell *Cell) []Hint {
	text := cell.Stderr
	if e := cell.Error; e != nil {
		text += "\n" + e.Traceback + "\n" + e.Name + ": " + e.Message
	}
	return k.sandbox.hints(k.language, cell.Status, text, cell.Network)
}

// collect gives a cell what it has produced. Nothing comes after the end of the process.
func (k *Kernel) collect(ctx context.Context, o kernel.Outcome, cell *Cell) {
	switch {
	case k.collection == nil || k.sandbox.link.Alive() != nil || o.Detached:
	case o.StateLost:
		cell.Artifacts, cell.ArtifactsDropped = k.collection.finish(ctx)
	default:
		cell.Artifacts, cell.ArtifactsDropped = k.collection.cell(ctx)
	}
}

// result turns what was observed of a cell into its Cell.
func (k *Kernel) result(ctx context.Context, o kernel.Outcome, c *capturedCell) *Cell {
	cell := &Cell{
		ExitCode: noExitCode, Count: o.Number, Stdout: c.out.text(), Stderr: c.err.text(),
		StdoutTruncated: c.out.cut(), StderrTruncated: c.err.cut(), Duration: o.Duration,
		StateLost: o.StateLost, Restarted: o.Restarted,
	}
	if o.Done != nil {
		cell.done(o.Done)
	} else {
		k.crashed(ctx, o, cell)
	}
	switch o.Stopped {
	case kernel.StopTimeout:
		cell.Status = StatusTimeout
		cell.Reason = fmt.Sprintf("the cell took longer than its timeout of %v", c.Timeout)
	case kernel.StopCancelled:
		cell.Status = StatusKilled
		cell.Reason = "the cell was cancelled"
	case kernel.StopOutput:
		cell.Status = StatusOutputLimit
		cell.Reason = fmt.Sprintf("the cell wrote more than %d bytes", c.OutputLimit)
	default:
		return cell
	}
	cell.Interrupted = o.Done != nil
	switch {
	case cell.StateLost && k.language.Kernel.Interrupt == language.InterruptNone:
		cell.Reason += "; " + k.language.Title + " cannot be interrupted, so the kernel's process was killed"
	case cell.StateLost:
		cell.Reason += " and did not end when it was interrupted, so the kernel's process was killed"
	default:
		cell.Reason += " and was interrupted"
	}
	return cell
}

// done reads the cell's end off the driver's report.
func (c *Cell) done(e *kernel.Event) {
	c.Value = e.Value
	if e.ExitCode != nil {
		c.ExitCode = *e.ExitCode
	}
	if f := e.Failure; f != nil {
		c.Error = &CellError{Name: f.Name, Message: f.Message, Traceback: f.Traceback}
	}
	switch e.Status {
	case kernel.DoneOK:
		c.Status = StatusOK
	case kernel.DoneError:
		c.Status = StatusError
	case kernel.DoneInterrupted:
		c.Status, c.Interrupted = StatusKilled, true
		c.Reason = "the cell was interrupted"
	case kernel.DoneExit:
		c.Status = StatusOK
		if c.ExitCode != 0 {
			c.Status = StatusError
		}
		if c.ExitCode != 0 && !e.StateLost {
			c.Reason = fmt.Sprintf("the cell called exit with code %d; the session keeps its state", c.ExitCode)
		}
	}
}

// crashed reads the cell's end off that of the kernel's process.
func (k *Kernel) crashed(ctx context.Context, o kernel.Outcome, cell *Cell) {
	cell.Status = StatusKilled
	switch o.Stopped {
	case kernel.StopRestart:
		cell.Reason = "the kernel was restarted"
		return
	case kernel.StopClose:
		cell.Reason = "the kernel was closed"
		return
	case kernel.StopInterrupt:
		cell.Interrupted = true
		cell.Reason = "the cell was interrupted; " + k.language.Title + " cannot do that and keep its state"
		return
	}
	if o.Err != nil {
		cell.Reason = o.Err.Error()
		if !o.Misbehaved {
			cell.Status = StatusLost
		}
		if why := k.ooms.lost(ctx, k.sandbox, o.Err); why != "" {
			cell.Status, cell.Reason = StatusOutOfMemory, why
		}
		return
	}
	cell.Reason = fmt.Sprintf("the kernel's process ended (%s)", o.Ending)
	if o.Exit.Signal != 0 {
		cell.Signal = signame.Name(o.Exit.Signal)
	} else {
		cell.ExitCode, cell.Status = int(o.Exit.Code), StatusError
	}
	switch {
	case o.Exit.Reason == agentproto.KilledDiskLimit:
		cell.Reason += ": " + k.sandbox.diskReached()
	case k.ooms.happened(ctx, o.Exit):
		cell.Status = StatusOutOfMemory
		cell.Reason += ": the sandbox reached its memory limit and a process was killed for it"
	}
}

// failure is Run's error.
func (k *Kernel) failure(ctx context.Context, o kernel.Outcome) error {
	switch {
	case o.Stopped == kernel.StopCancelled:
		return context.Cause(ctx)
	case o.Stopped == kernel.StopClose:
		return k.kernel.Alive()
	case o.Stopped == kernel.NotStopped || o.Stopped == kernel.StopInterrupt:
		if !o.Misbehaved { // else the end was observed: we have killed it
			return o.Err
		}
	}
	return nil
}

// cellFields are a Cell without its methods.
type cellFields Cell

// cellJSON is to a Cell what resultJSON is to a Result.
type cellJSON struct {
	Status     Status  `json:"status"`
	ExitCode   *int    `json:"exit_code,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	cellFields
}

// MarshalJSON writes the cell with snake_case names, as [Result] is written.
func (c Cell) MarshalJSON() ([]byte, error) {
	out := cellJSON{c.Status, observedCode(c.ExitCode), milliseconds(c.Duration), cellFields(c)}
	out.Artifacts = append([]Artifact{}, c.Artifacts...)
	return plainjson.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes, in place of all that the cell had. Times are whole microseconds there, and empty lists
// are nil.
func (c *Cell) UnmarshalJSON(b []byte) error {
	var in *cellJSON
	if err := json.Unmarshal(b, &in); err != nil || in == nil {
		return err
	}
	duration, err := fromMilliseconds(in.DurationMS)
	if err != nil {
		return fmt.Errorf("duration_ms: %w", err)
	}
	*c = Cell(in.cellFields)
	c.Status, c.ExitCode, c.Duration = in.Status, codeOf(in.ExitCode), duration
	c.Artifacts, c.ArtifactsDropped = unlessEmpty(c.Artifacts), unlessEmpty(c.ArtifactsDropped)
	c.Network, c.Findings, c.Hints = unlessEmpty(c.Network), unlessEmpty(c.Findings), unlessEmpty(c.Hints)
	return nil
}
