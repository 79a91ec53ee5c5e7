package llmsandbox

import (
	"context"
	"io"
	"time"

	"github.com/llmsandbox/llmsandbox/security"
)

// CellOptions say how a cell is run. The zero value (or nil) runs it without input.
type CellOptions struct {
	// Stdin answers the code's request for a line of input, without its newline; nil, or
	// an error, answers it with end-of-file. Its context ends when nobody waits for the
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
