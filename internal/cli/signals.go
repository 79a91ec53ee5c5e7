package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/exitcode"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// graceTime is how long a command may clean up after SIGTERM or SIGHUP: longer than a backend may
// take to remove a sandbox.
const graceTime = 70 * time.Second

// A signalError is the cause of a context that a signal has ended.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "interrupted by " + signame.Name(uint32(e.signal)) }

// Unwrap makes it a cancellation to whoever only asks whether it is one.
func (e signalError) Unwrap() error { return context.Canceled }

// exitCode is the one with which a shell reports the end by the signal.
func (e signalError) exitCode() int { return exitcode.SignalBase + int(e.signal) }

// errorCode is the exit code of a command that failed: that of the signal which has ended ctx, if
// one has.
func errorCode(ctx context.Context, err error) int {
	var e signalError
	switch {
	case errors.As(context.Cause(ctx), &e):
		return e.exitCode()
	case errors.Is(err, llmsandbox.ErrRefused):
		return exitRefused
	}
	return exitOurFailure
}

// signals are those that end the command.
type signals struct {
	mu          sync.Mutex
	onInterrupt func() // gets the next SIGINT; nil: that ends the command
}

type signalsKey struct{}

// notifySignals returns a context that ends with SIGINT, SIGTERM or SIGHUP. The process exits when
// the command has not ended within the grace time after SIGTERM or SIGHUP, or at the second of
// these.
func notifySignals(grace time.Duration) context.Context {
	s := &signals{}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), signalsKey{}, s))
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		var force <-chan time.Time
		var first signalError
		for {
			select {
			case <-force:
			case sig := <-received:
				e := signalError{sig.(syscall.Signal)}
				if sig == os.Interrupt {
					if do := s.takeInterrupt(); do != nil {
						go do()
					} else {
						cancel(e)
					}
					continue
				}
				cancel(e)
				if force == nil {
					first, force = e, time.After(grace)
					continue
				}
			}
			fmt.Fprintln(stderr, "llmsandbox: ended before everything was removed; `llmsandbox gc` removes what is left")
			os.Exit(first.exitCode())
		}
	}()
	return ctx
}

// takeInterrupt returns what the next SIGINT does, once.
func (s *signals) takeInterrupt() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	do := s.onInterrupt
	s.onInterrupt = nil
	return do
}

// onInterrupt has the next SIGINT call do instead of ending the context of a command, until
// stopped. The one after it ends the context again.
func onInterrupt(ctx context.Context, do func()) (stop func()) {
	s, ok := ctx.Value(signalsKey{}).(*signals)
	if !ok {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onInterrupt = do
	return func() { s.takeInterrupt() }
}
