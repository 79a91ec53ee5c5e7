package agentlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// KillGrace bounds the kill that a cancelled context asks for.
	KillGrace = 10 * time.Second
	// attachTries is how often a lost stream is made again for one process.
	attachTries = 3
)

// Streams are the ends of a process's standard streams on our side.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Control gets what the process writes to descriptor 4, when it has one.
	Control io.Writer
	// OnStart, when set, is called once the process has started.
	OnStart func(*agentclient.Process)
}

// Run starts one process and follows it to its end. A nil error means that the
// end was observed; an error that wraps ErrLost means that it cannot be known.
func (l *Link) Run(ctx context.Context, req agentproto.StartRequest, std Streams) (agentproto.Exit, error) {
	var none agentproto.Exit
	client, err := l.Client(ctx)
	if err != nil {
		return none, err
	}
	wait := ctx
	if req.TimeoutMillis > 0 {
		var stop func()
		wait, stop = l.Watch(ctx, time.Duration(req.TimeoutMillis)*time.Millisecond)
		defer stop()
	}
	p, err := client.Start(wait, req)
	if err != nil {
		return none, l.Explain(wait, err)
	}
	if std.OnStart != nil {
		std.OnStart(p)
	}
	return l.Follow(wait, client.Info(), p, std)
}

// Follow follows a process that one of the agent's clients has started to its end, as Run
// does. When wait ends before that the process is killed, unless the cause is ErrDetached. agent
// is what the agent that has the process said of itself.
func (l *Link) Follow(wait context.Context, agent agentproto.Hello, p *agentclient.Process, std Streams) (agentproto.Exit, error) {
	var none agentproto.Exit
	feed := startFeeder(std.Stdin, p)
	for tries := 0; ; tries++ {
		exit, err := follow(wait, p, std)
		if err == nil {
			if !exit.Known {
				return exit, &UnobservedError{exit}
			}
			return exit, nil
		}
		if wait.Err() != nil {
			cause := context.Cause(wait)
			if !errors.Is(cause, ErrDetached) {
				l.Kill(p.ID())
			}
			return none, cause
		}
		// A program whose input was on its way may have missed some of it.
		if !errors.Is(err, agentproto.ErrStreamLost) || tries == attachTries || !feed.complete() {
			return none, l.Explain(wait, err)
		}
		next, err := l.reattach(wait, agent, p, err)
		switch {
		case err == nil:
			p = next
		case !errors.Is(err, agentproto.ErrStreamLost):
			return none, l.Explain(wait, err)
		} // else that stream was lost as well, and p still has the offsets
	}
}

// reattach takes over a process whose stream was lost, from the bytes on that have
// not been read yet. loss is how the stream ended.
func (l *Link) reattach(ctx context.Context, before agentproto.Hello, p *agentclient.Process, loss error) (*agentclient.Process, error) {
	client, err := l.Client(ctx)
	if err != nil {
		// The loss only as text: it can be made good, and that it was not is said here.
		return nil, fmt.Errorf("the stream into the sandbox was lost (%s): %w: %w", loss, ErrLost, err)
	}
	if client.Info().Instance != before.Instance {
		return nil, fmt.Errorf("the sandbox's agent was replaced: %w", ErrLost)
	}
	out, errs := p.Offsets()
	return client.Attach(ctx, agentproto.AttachRequest{ID: p.ID(), OutOffset: out, ErrOffset: errs, ControlOffset: p.ControlOffset()})
}

// follow reads a process's output to its end and returns how it ended.
func follow(ctx context.Context, p *agentclient.Process, std Streams) (agentproto.Exit, error) {
	var wg sync.WaitGroup
	pump := func(w io.Writer, r io.Reader) {
		defer wg.Done()
		// A broken stream also fails Wait, which tells it better.
		_, _ = io.Copy(w, r)
	}
	wg.Add(2)
	go pump(std.Stdout, p.Stdout())
	go pump(std.Stderr, p.Stderr())
	if std.Control != nil {
		wg.Add(1)
		go pump(std.Control, p.Control())
	}
	exit, err := p.Wait(ctx)
	if ctx.Err() != nil {
		p.Detach()
	}
	wg.Wait()
	return exit, err
}

// Kill ends a process whose caller no longer waits, with all it started.
func (l *Link) Kill(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), KillGrace)
	defer cancel()
	client, err := l.Client(ctx)
	if err != nil {
		return // the sandbox is gone, and so is the process
	}
	// An agent that cannot be reached is one whose sandbox ends.
	l.Warn("a process could not be killed", client.Kill(ctx, id), "process", id)
}

// A feeder hands the caller's reader on to a process's stdin.
type feeder struct{ done atomic.Bool }

// startFeeder starts it. Like package os/exec's, its goroutine cannot be ended
// while it waits in the caller's Read: it ends at that Read's return.
func startFeeder(r io.Reader, p *agentclient.Process) *feeder {
	f := &feeder{}
	if r == nil {
		f.done.Store(true)
		return f
	}
	stdin := p.Stdin()
	go func() {
		// The program may end, or close its stdin, before the input does.
		_, _ = io.Copy(stdin, r)
		_ = stdin.Close()
		f.done.Store(true)
	}()
	return f
}

func (f *feeder) complete() bool { return f.done.Load() }

// answerGrace is how long the agent may be silent once a process's timeout is over.
// The agent holds the timeout, and one that does not answer is lost.
const answerGrace = 15 * time.Second

// Watch returns a context that ends, with a cause that wraps ErrLost, when the
// agent does not answer although a process's timeout is over. An agent that answers
// is waited for: then it is the caller that has not yet read the output. stop ends
// the watching.
func (l *Link) Watch(ctx context.Context, timeout time.Duration) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	timer := time.AfterFunc(timeout+answerGrace, func() {
		defer close(done)
		for watched.Err() == nil {
			if _, is := l.Paused(); is {
				// It answers when it is resumed, and not before.
			} else if err := l.ping(watched); err != nil {
				cancel(fmt.Errorf("the sandbox's agent does not answer (%w): %w", err, ErrLost))
				return
			}
			select {
			case <-watched.Done():
			case <-time.After(answerGrace):
			}
		}
	})
	return watched, func() {
		cancel(nil)
		if !timer.Stop() {
			<-done
		}
	}
}

func (l *Link) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	client, err := l.Client(ctx)
	if err != nil {
		return err
	}
	return client.Ping(ctx)
}
