package kubernetes

import (
	"context"
	"fmt"
	"io"
	"time"
)

// stallWait is how long a container that is brought something may take nothing and say
// nothing. The time for all of it is the caller's.
const stallWait = 30 * time.Second

// A stallError is the cause of a context's end: nothing has moved for that long.
type stallError struct{ wait time.Duration }

func (e *stallError) Error() string {
	return fmt.Sprintf("the container has taken and said nothing for %v: its node hangs or has too much to do: try again, later or on another node", e.wait)
}

// A pacer ends a context when nothing moves. Its methods may be called concurrently.
type pacer struct {
	wait   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// pace returns a context that ends, with a stallError, when its pacer's moved is not called
// for that long. The caller must call end.
func pace(ctx context.Context, wait time.Duration) (context.Context, *pacer) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &pacer{wait, time.AfterFunc(wait, func() { cancel(&stallError{wait}) }), cancel}
}

func (p *pacer) moved() { p.timer.Reset(p.wait) }

// rest has only the parent end the context, until something moves.
func (p *pacer) rest() { p.timer.Stop() }

func (p *pacer) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// A pacedWriter reports to its pacer what was taken.
type pacedWriter struct {
	to   io.Writer
	pace *pacer
}

func (w pacedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if n > 0 {
		w.pace.moved()
	}
	return n, err
}

// A pacedReader reports each read: what was read before has been taken then.
type pacedReader struct {
	from io.Reader
	pace *pacer
}

func (r pacedReader) Read(p []byte) (int, error) {
	r.pace.moved()
	return r.from.Read(p)
}
