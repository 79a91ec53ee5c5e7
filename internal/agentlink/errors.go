package agentlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

var (
	// ErrClosed: the sandbox was closed, or has ended.
	ErrClosed = errors.New("sandbox is closed")
	// ErrLost: the sandbox or the stream into it went away, so that what became of the
	// program cannot be known.
	ErrLost = errors.New("outcome is lost")
	// ErrDetached: the process goes on without this handle.
	ErrDetached = errors.New("detached")
)

// An UnobservedError is the end of a process whose subreaper was killed, so that
// what became of it is not known.
type UnobservedError struct {
	Exit agentproto.Exit // what is known nevertheless
}

func (e *UnobservedError) Error() string {
	return "the process's end was not observed: " + ErrLost.Error()
}

func (e *UnobservedError) Unwrap() error { return ErrLost }

// Explain adds to an error what the sandbox's own end says about it.
func (l *Link) Explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, agentproto.ErrStreamLost) {
		if gone := l.Alive(); gone != nil {
			return fmt.Errorf("%w: %w", gone, ErrLost)
		}
		// Where the sandbox is gone, the next call to it says why.
		if cerr := l.callAgain(ctx); cerr != nil {
			return fmt.Errorf("the stream into the sandbox was lost (%s): %w: %w", err, ErrLost, cerr)
		}
		return fmt.Errorf("the stream into the sandbox was lost: %w: %w", ErrLost, err)
	}
	switch Code(err) {
	case agentproto.CodeLost:
		return fmt.Errorf("%w: %w", ErrLost, err)
	case agentproto.CodeCancelled: // another handle has attached to the process
		return fmt.Errorf("%w: %w", ErrDetached, err)
	}
	return err
}

// Code is the code of the error that the agent answered with; 0 where err is none of its.
func Code(err error) agentproto.ErrorCode {
	var refused *agentproto.Error
	if !errors.As(err, &refused) {
		return 0
	}
	return refused.Code
}

// callAgain calls the agent after a stream to it was lost.
func (l *Link) callAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	for range attachTries {
		client, err := l.Client(ctx)
		if err != nil {
			return err
		}
		if err := client.Ping(ctx); !errors.Is(err, agentproto.ErrStreamLost) {
			return nil // it lives, or is too busy to say so
		}
		select { // it may be the stream that is known to be lost
		case <-client.Done():
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// Warn logs an error that no caller gets: nothing waits for what failed, or it was made good.
// That something has ended or is gone already is none. Neither code nor output is logged.
func (l *Link) Warn(what string, err error, args ...any) {
	if l.log == nil || err == nil || errors.Is(err, ErrClosed) || errors.Is(err, fs.ErrNotExist) || Code(err) == agentproto.CodeLost {
		return
	}
	l.log.Warn(what, append(args, "error", err)...)
}
