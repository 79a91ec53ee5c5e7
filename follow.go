package llmsandbox

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
	// killGrace bounds the kill that a cancelled context asks for.
	killGrace = 10 * time.Second
	// attachTries is how often a lost stream is made again for one process.
	attachTries = 3
)

// streams are the ends of a process's standard streams on our side.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// control gets what the process writes to descriptor 4, when it has one.
	control io.Writer
	// onStart, when set, is called once the process has started.
	onStart func(*agentclient.Process)
}

// process starts one process and sees it to its end. A nil error means that the
// end was observed; an error that wraps ErrLost means that it cannot be known.
func (s *Sandbox) process(ctx context.Context, req agentproto.StartRequest, std streams) (agentproto.Exit, error) {
	var none agentproto.Exit
	s.dropAhead(ctx)
	client, err := s.link.get(ctx)
	if err != nil {
		return none, err
	}
	wait := ctx
	if req.TimeoutMillis > 0 {
		var stop func()
		wait, stop = s.watchAgent(ctx, time.Duration(req.TimeoutMillis)*time.Millisecond)
		defer stop()
	}
	p, err := client.Start(wait, req)
	if err != nil {
		return none, s.explain(wait, err)
	}
	if std.onStart != nil {
		std.onStart(p)
	}
	return s.see(wait, client.Info(), p, std)
}

// see sees a process that one of the agent's clients has started to its end, as process
// does.
func (s *Sandbox) see(wait context.Context, agent agentproto.Hello, p *agentclient.Process, std streams) (agentproto.Exit, error) {
	var none agentproto.Exit
	feed := startFeeder(std.stdin, p)
	for tries := 0; ; tries++ {
		exit, err := follow(wait, p, std)
		if err == nil {
			if !exit.Known {
				return exit, &unobservedError{exit}
			}
			return exit, nil
		}
		if wait.Err() != nil {
			cause := context.Cause(wait)
			if !errors.Is(cause, ErrDetached) {
				s.kill(p.ID())
			}
			return none, cause
		}
		// A program whose input was on its way may have missed some of it.
		if !errors.Is(err, agentproto.ErrStreamLost) || tries == attachTries || !feed.complete() {
			return none, s.explain(wait, err)
		}
		next, err := s.reattach(wait, agent, p, err)
		switch {
		case err == nil:
			p = next
		case !errors.Is(err, agentproto.ErrStreamLost):
			return none, s.explain(wait, err)
		} // else that stream was lost as well, and p still tells from where on to go on
	}
}

// reattach takes over a process whose stream was lost, from the bytes on that have
// not been read yet. loss is how the stream ended.
func (s *Sandbox) reattach(ctx context.Context, before agentproto.Hello, p *agentclient.Process, loss error) (*agentclient.Process, error) {
	client, err := s.link.get(ctx)
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
func follow(ctx context.Context, p *agentclient.Process, std streams) (agentproto.Exit, error) {
	var wg sync.WaitGroup
	pump := func(w io.Writer, r io.Reader) {
		defer wg.Done()
		// A broken stream also fails Wait, which tells it better.
		_, _ = io.Copy(w, r)
	}
	wg.Add(2)
	go pump(std.stdout, p.Stdout())
	go pump(std.stderr, p.Stderr())
	if std.control != nil {
		wg.Add(1)
		go pump(std.control, p.Control())
	}
	exit, err := p.Wait(ctx)
	if ctx.Err() != nil {
		p.Detach()
	}
	wg.Wait()
	return exit, err
}

// kill ends a process whose caller no longer waits, with all it started.
func (s *Sandbox) kill(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	client, err := s.link.get(ctx)
	if err != nil {
		return // the sandbox is gone, and so is the process
	}
	// An agent that cannot be reached is one whose sandbox ends.
	warn(s.log, "a process could not be killed", client.Kill(ctx, id), "process", id)
}

// explain adds to an error what the sandbox's own end says about it.
func (s *Sandbox) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, agentproto.ErrStreamLost) {
		if gone := s.alive(); gone != nil {
			return fmt.Errorf("%w: %w", gone, ErrLost)
		}
		// Where the sandbox is gone, the next call to it says why.
		if cerr := s.callAgain(ctx); cerr != nil {
			return fmt.Errorf("the stream into the sandbox was lost (%s): %w: %w", err, ErrLost, cerr)
		}
		return fmt.Errorf("the stream into the sandbox was lost: %w: %w", ErrLost, err)
	}
	switch answered(err) {
	case agentproto.CodeLost:
		return fmt.Errorf("%w: %w", ErrLost, err)
	case agentproto.CodeCancelled: // by another AttachProcess
		return fmt.Errorf("%w: %w", ErrDetached, err)
	}
	return err
}

// answered is the code of the error that the agent answered with; 0 where err is none of its.
func answered(err error) agentproto.ErrorCode {
	var refused *agentproto.Error
	if !errors.As(err, &refused) {
		return 0
	}
	return refused.Code
}

// callAgain calls the agent after a stream to it was lost.
func (s *Sandbox) callAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	for range attachTries {
		client, err := s.link.get(ctx)
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

// watchAgent returns a context that ends, with a cause that wraps ErrLost, when the
// agent does not answer although a process's timeout is over. An agent that answers
// is waited for: then it is the caller that has not yet read the output. stop ends
// the watching.
func (s *Sandbox) watchAgent(ctx context.Context, timeout time.Duration) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	timer := time.AfterFunc(timeout+answerGrace, func() {
		defer close(done)
		for watched.Err() == nil {
			if err := s.ping(watched); err != nil {
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

func (s *Sandbox) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	client, err := s.link.get(ctx)
	if err != nil {
		return err
	}
	return client.Ping(ctx)
}
