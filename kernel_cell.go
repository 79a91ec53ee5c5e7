package llmsandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/signame"
	"github.com/llmsandbox/llmsandbox/security"
)

// CellOptions say how a cell is run. The zero value (or nil) runs it without input.
type CellOptions struct {
	// Stdin answers the code's request for a line of input, without its newline; nil, or
	// an error, answers it with end-of-file. Its context ends when the cell no longer waits for the
	// answer any more, at the latest with the cell. password tells that the line should not be shown.
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
	Status Status
	// Count is the cell's number in its kernel's process, from 1.
	Count int
	// Stdout and Stderr are what the code and the processes it started wrote, as in
	// [Result].
	Stdout, Stderr                   string
	StdoutTruncated, StderrTruncated bool
	// Value is that of the last expression by media type, "text/plain" among them; media
	// types that are not text have it as base64. Nil: there is none.
	Value map[string]string
	// Error is what the code ended with, when Status is StatusError and it was no exit.
	Error *CellError
	// ExitCode is that of a cell that exits (sys.exit) or has one (Bash), or of the
	// kernel's process when it ended; nil otherwise.
	ExitCode *int
	// Signal is the name of the signal that ended the kernel's process.
	Signal string
	// Artifacts and ArtifactsDropped are as in [Result].
	Artifacts        []Artifact
	ArtifactsDropped []string
	// Network and NetworkDropped are as in [Result].
	Network        []NetworkAttempt
	NetworkDropped int
	// Findings are as in [Result].
	Findings []security.Finding
	// Duration is the cell's wall time.
	Duration time.Duration
	// Interrupted tells that the cell was interrupted, and ended by that.
	Interrupted bool
	// StateLost tells that what cells have defined is gone: the next cell has a new process.
	StateLost bool
	// Restarted tells that the kernel's process had ended between the cells before this
	// one, which therefore found none of their state.
	Restarted bool
	// Reason is a sentence on why there is no ordinary outcome, or empty.
	Reason string
}

// OK tells whether the cell ended without an error.
func (c *Cell) OK() bool { return c.Status == StatusOK }

// A CellError is an error of a cell's code, as its language tells it.
type CellError struct {
	Name      string // "ZeroDivisionError"
	Message   string // "division by zero"
	Traceback string // with the cell's line numbers
}

// result turns what was observed of a cell into its Cell.
func (c *cellRun) result(ctx context.Context) *Cell {
	cell := &Cell{
		Count: c.driver.cells, Stdout: c.out.text(), Stderr: c.err.text(),
		StdoutTruncated: c.out.cut(), StderrTruncated: c.err.cut(), Duration: time.Since(c.started),
	}
	if c.done == nil {
		cell.StateLost = true
		c.crashed(ctx, cell)
	} else {
		c.ended(cell)
	}
	if c.why != endItself {
		c.stopped(cell)
	}
	return cell
}

// ended reads the cell's end off the driver's word.
func (c *cellRun) ended(cell *Cell) {
	cell.StateLost = c.done.StateLost
	cell.Value = c.done.Value
	cell.ExitCode = c.done.ExitCode
	if c.done.Count > 0 {
		cell.Count = c.done.Count
	}
	if f := c.done.Failure; f != nil {
		cell.Error = &CellError{Name: f.Name, Message: f.Message, Traceback: f.Traceback}
	}
	switch c.done.Status {
	case kernel.DoneOK:
		cell.Status = StatusOK
	case kernel.DoneError:
		cell.Status = StatusError
	case kernel.DoneInterrupted:
		cell.Status, cell.Interrupted = StatusKilled, true
		cell.Reason = "the cell was interrupted"
	case kernel.DoneExit:
		cell.Status = StatusOK
		if *cell.ExitCode != 0 {
			cell.Status = StatusError
		}
	}
}

// crashed reads the cell's end off that of the kernel's process.
func (c *cellRun) crashed(ctx context.Context, cell *Cell) {
	d := c.driver
	cell.Status = StatusKilled
	switch {
	case c.restart.Load():
		cell.Reason = "the kernel was restarted"
		return
	case c.kernel.isClosed():
		cell.Reason = "the kernel was closed"
		return
	case c.byUser.Load() && c.kernel.language.Kernel.Interrupt == language.InterruptNone:
		cell.Interrupted = true
		cell.Reason = "the cell was interrupted; " + c.kernel.language.Title + " cannot do that and keep its state"
		return
	}
	if err := d.failed(); err != nil {
		cell.Reason = err.Error()
		if d.misled() == nil {
			cell.Status = StatusLost
		}
		if why := d.ooms.lost(ctx, c.kernel.sandbox, err); why != "" {
			cell.Status, cell.Reason = StatusOutOfMemory, why
		}
		return
	}
	cell.Reason = fmt.Sprintf("the kernel's process ended (%s)", d.ending())
	if d.exit.Signal != 0 {
		cell.Signal = signame.Name(d.exit.Signal)
	} else {
		code := int(d.exit.Code)
		cell.ExitCode, cell.Status = &code, StatusError
	}
	if d.ooms.happened(ctx, d.exit) {
		cell.Status = StatusOutOfMemory
		cell.Reason += ": the sandbox reached its memory limit and the kernel of the system killed a process"
	}
}

// stopped says that it was we who ended the cell.
func (c *cellRun) stopped(cell *Cell) {
	switch c.why {
	case endTimeout:
		cell.Status = StatusTimeout
		cell.Reason = fmt.Sprintf("the cell took longer than its timeout of %v", c.timeout)
	case endCancelled:
		cell.Status = StatusKilled
		cell.Reason = "the cell was cancelled"
	case endOutput:
		cell.Status = StatusOutputLimit
		cell.Reason = fmt.Sprintf("the cell wrote more than %d bytes", c.kernel.sandbox.limits.Output)
	}
	cell.Interrupted = c.done != nil
	switch {
	case cell.StateLost && c.kernel.language.Kernel.Interrupt == language.InterruptNone:
		cell.Reason += "; " + c.kernel.language.Title + " cannot be interrupted, so the kernel's process was killed"
	case cell.StateLost:
		cell.Reason += " and did not end when it was interrupted, so the kernel's process was killed"
	default:
		cell.Reason += " and was interrupted"
	}
}

// failure is Run's error.
func (c *cellRun) failure(ctx context.Context) error {
	switch {
	case c.why == endCancelled:
		return context.Cause(ctx)
	case c.done != nil || c.why != endItself || c.restart.Load():
		return nil
	case c.kernel.isClosed():
		return c.kernel.alive()
	case c.driver.misled() != nil:
		return nil // the end was observed: we have killed it
	}
	return c.driver.failed()
}

type cellJSON struct {
	Status           Status             `json:"status"`
	Count            int                `json:"count"`
	ExitCode         *int               `json:"exit_code,omitempty"`
	Signal           string             `json:"signal,omitempty"`
	Stdout           string             `json:"stdout"`
	Stderr           string             `json:"stderr"`
	StdoutTruncated  bool               `json:"stdout_truncated"`
	StderrTruncated  bool               `json:"stderr_truncated"`
	Value            map[string]string  `json:"value,omitempty"`
	Error            *cellErrorJSON     `json:"error,omitempty"`
	DurationMS       float64            `json:"duration_ms"`
	Artifacts        []Artifact         `json:"artifacts"`
	ArtifactsDropped []string           `json:"artifacts_dropped,omitempty"`
	Network          []NetworkAttempt   `json:"network,omitempty"`
	NetworkDropped   int                `json:"network_dropped,omitempty"`
	Findings         []security.Finding `json:"findings,omitempty"`
	Interrupted      bool               `json:"interrupted,omitempty"`
	StateLost        bool               `json:"state_lost,omitempty"`
	Restarted        bool               `json:"restarted,omitempty"`
	Reason           string             `json:"reason,omitempty"`
}

type cellErrorJSON struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

// MarshalJSON writes the cell with snake_case names, as [Result] is written.
func (c Cell) MarshalJSON() ([]byte, error) {
	out := cellJSON{
		Status: c.Status, Count: c.Count, ExitCode: c.ExitCode, Signal: c.Signal,
		Stdout: c.Stdout, Stderr: c.Stderr, StdoutTruncated: c.StdoutTruncated, StderrTruncated: c.StderrTruncated,
		Value: c.Value, DurationMS: milliseconds(c.Duration),
		Artifacts: append([]Artifact{}, c.Artifacts...), ArtifactsDropped: c.ArtifactsDropped,
		Network: c.Network, NetworkDropped: c.NetworkDropped, Findings: c.Findings,
		Interrupted: c.Interrupted, StateLost: c.StateLost, Restarted: c.Restarted, Reason: c.Reason,
	}
	if c.Error != nil {
		out.Error = (*cellErrorJSON)(c.Error)
	}
	return json.Marshal(out)
}
