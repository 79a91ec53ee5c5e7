package llmsandbox

import (
	"bytes"
	"context"
	"io"
	"iter"
)

// An EventKind is what an [Event] tells.
type EventKind string

// The kinds.
const (
	EventStdout EventKind = "stdout" // Data was written to stdout
	EventStderr EventKind = "stderr" // Data was written to stderr
	EventDone   EventKind = "done"   // the run has ended; Result is set
)

// An Event is one thing that happened in a run.
type Event struct {
	Kind EventKind
	// Data is a chunk of output, the receiver's to keep. A chunk may end in the
	// middle of a character.
	Data []byte
	// Result is what Run would have returned; with EventDone only.
	Result *Result
}

// Stream runs code like [Sandbox.Run] and yields its output as it is written, then
// one EventDone together with Run's error. Chunks of one stream come in order. A
// loop that ends early kills the run. While the loop's body works the program
// waits, once the buffers between are full: nothing is dropped. opts may be nil;
// its Stdout and Stderr writers are called as well.
func (s *Sandbox) Stream(ctx context.Context, code string, opts *RunOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var o RunOptions
		if opts != nil {
			o = *opts
		}
		events := make(chan Event)
		o.Stdout = &eventWriter{ctx, EventStdout, events, o.Stdout}
		o.Stderr = &eventWriter{ctx, EventStderr, events, o.Stderr}
		var runErr error
		go func() {
			defer close(events)
			var res *Result
			res, runErr = s.Run(ctx, code, &o)
			events <- Event{Kind: EventDone, Result: res}
		}()
		stopped := false
		for e := range events { // to its end, so that the goroutine ends too
			if stopped {
				continue
			}
			var err error
			if e.Kind == EventDone {
				err = runErr
			}
			if !yield(e, err) {
				stopped = true
				cancel()
			}
		}
	}
}

// An eventWriter turns what a run writes into events.
type eventWriter struct {
	ctx    context.Context
	kind   EventKind
	events chan<- Event
	also   io.Writer
}

func (w *eventWriter) Write(p []byte) (int, error) {
	select {
	case w.events <- Event{Kind: w.kind, Data: bytes.Clone(p)}:
	case <-w.ctx.Done():
		return 0, context.Cause(w.ctx)
	}
	if w.also != nil {
		return w.also.Write(p)
	}
	return len(p), nil
}
