package egress

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// A failure is why something that was allowed did not work, in a text that reveals
// nothing of this machine's own network.
type failure struct {
	what string
	kind failureKind
	err  error
}

type failureKind int

const (
	failedOther failureKind = iota
	failedName
	failedRefused
	failedUnreachable
	failedTimeout
)

func (f *failure) Error() string { return f.what }

func (f *failure) Unwrap() error { return f.err }

// describe says what became of a dial, without what the system says of its own network.
func describe(err error) error {
	f := &failure{what: "it could not be reached", err: err}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		f.what, f.kind = "it refused the connection", failedRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		f.what, f.kind = fmt.Sprintf("it did not answer within %v", dialTimeout), failedTimeout
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		f.what, f.kind = "there is no route to it from here", failedUnreachable
	}
	return f
}
