package podexec

import (
	"errors"
	"fmt"
)

var (
	// ErrGone: the pod or its container is not there, or runs no longer.
	ErrGone = errors.New("the pod or its container is gone")
	// ErrLost: the stream broke; what became of the program is not known.
	ErrLost = errors.New("the stream to the pod was lost")
	// ErrNoProgram: the container has no such program, or cannot start it.
	ErrNoProgram = errors.New("the program cannot be started in the container")
	// ErrTooMuch: a program said more than the caller wanted to read.
	ErrTooMuch = errors.New("the program says too much")
)

var (
	errOutOfStep = errors.New("the stream is out of step")
	errNoStatus  = errors.New("it ended without saying how the program did")
)

// An ExitError says that a program ended with another code than 0.
type ExitError struct {
	Code   int
	Stderr string // the first of it
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("the program ended with exit code %d", e.Code)
	}
	return fmt.Sprintf("the program ended with exit code %d and said %q", e.Code, e.Stderr)
}
