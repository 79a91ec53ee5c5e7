package llmsandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

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
	if err := d.end(); err != nil {
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
	return c.driver.end()
}
