// Package agentlink is a handle's connection to the agent of its sandbox: it is made again
// when its stream is lost, and follows processes across such losses. What has become of a
// sandbox that cannot be reached is part of the errors that it returns.
package agentlink

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// A Machine is what a link needs of a [backend.Machine].
type Machine interface {
	ID() string
	Info() backend.Info
	Dial(context.Context) (io.ReadWriteCloser, error)
	Done() <-chan struct{}
	End() backend.End
}

// A Link is the connection to one sandbox's agent. It is made when first needed, or before
// by Begin, and made again as soon as the stream is lost: the agent outlives its streams,
// but not for long when no stream is made again. It may be used concurrently.
type Link struct {
	machine Machine
	log     *slog.Logger // nil: there is none

	// left is done when the connection is not to be made again.
	left   context.Context
	leave  context.CancelFunc
	ending atomic.Bool

	mu      sync.Mutex
	client  *agentclient.Client
	dialing chan struct{} // closed when the attempt to connect that is under way is done; else nil
	closed  bool
	watch   sync.WaitGroup // of the watchers of clients

	pause    sync.Mutex
	paused   time.Time     // since when the sandbox is; zero: it is not
	pausedIn time.Duration // the sum of what is over
}

// New returns the link to a machine's agent, without connecting. A nil log logs nothing.
func New(machine Machine, log *slog.Logger) *Link {
	l := &Link{machine: machine}
	if log != nil {
		l.log = log.With("sandbox", machine.ID())
	}
	l.left, l.leave = context.WithCancel(context.Background())
	return l
}

// SetPaused notes whether the sandbox is paused, as the caller has seen to.
func (l *Link) SetPaused(paused bool) {
	l.pause.Lock()
	defer l.pause.Unlock()
	switch {
	case paused && l.paused.IsZero():
		l.paused = time.Now()
	case !paused && !l.paused.IsZero():
		l.pausedIn += time.Since(l.paused)
		l.paused = time.Time{}
	}
}

// Paused is for how long the sandbox was paused so far, and whether it is. No time limit of what runs in it counts that.
func (l *Link) Paused() (so time.Duration, is bool) {
	l.pause.Lock()
	defer l.pause.Unlock()
	if l.paused.IsZero() {
		return l.pausedIn, false
	}
	return l.pausedIn + time.Since(l.paused), true
}

// Alive returns why the sandbox cannot be used; nil if it can.
func (l *Link) Alive() error {
	if err := l.Lives(); err != nil {
		return err
	}
	if _, is := l.Paused(); is {
		return fmt.Errorf("sandbox %s: %w: resume it first", l.machine.ID(), backend.ErrPaused)
	}
	return nil
}

// Lives returns how the sandbox has ended; nil if it has not.
func (l *Link) Lives() error {
	if l.ending.Load() {
		return fmt.Errorf("sandbox %s: %w", l.machine.ID(), ErrClosed)
	}
	select {
	case <-l.machine.Done():
		return fmt.Errorf("sandbox %s has ended (%s): %w: open a new one", l.machine.ID(), l.endReason(), ErrClosed)
	default:
		return nil
	}
}

// endReason says why the sandbox has ended, as far as its backend knows.
func (l *Link) endReason() string {
	if why := l.machine.End().Reason; why != "" {
		return why
	}
	if idle := l.machine.Info().IdleTimeout; idle > 0 {
		return fmt.Sprintf("its lifetime is over, it was idle for %v, or it was ended from outside", idle)
	}
	return "its lifetime is over, or it was ended from outside"
}

// Client returns a live client, connecting when there is none.
func (l *Link) Client(ctx context.Context) (*agentclient.Client, error) {
	for {
		l.mu.Lock()
		client, closed := l.client, l.closed
		var wait <-chan struct{} = l.dialing
		switch {
		case closed:
			l.mu.Unlock()
			return nil, ErrClosed
		case client != nil && !client.Failing():
			l.mu.Unlock()
			return client, nil
		case client != nil && client.Err() == nil:
			wait = client.Done()
		case wait == nil:
			done := make(chan struct{})
			l.dialing = done
			l.mu.Unlock()
			client, err := l.connect(ctx)
			return l.settle(done, client, err)
		}
		l.mu.Unlock()
		select {
		case <-wait: // with another's patience: if it failed it is tried with ours
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the sandbox's agent: %w", context.Cause(ctx))
		}
	}
}

func (l *Link) connect(ctx context.Context) (*agentclient.Client, error) {
	rwc, err := l.machine.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox's agent: %w", err)
	}
	client, err := agentclient.Connect(ctx, rwc)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox's agent: %w", err)
	}
	return client, nil
}

// settle ends the attempt to connect that done stands for.
func (l *Link) settle(done chan struct{}, client *agentclient.Client, err error) (*agentclient.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialing = nil
	close(done)
	if err != nil {
		return nil, err
	}
	if l.closed {
		_ = client.Close() // it was not used yet
		return nil, ErrClosed
	}
	if l.client != nil {
		l.Warn("a stream into the sandbox was lost, and made again", l.client.Err())
		// Its end is known already; what it reports while closing is the same loss.
		_ = l.client.Close()
	}
	l.client = client
	if l.left.Err() == nil {
		l.watch.Go(func() { l.comeBack(l.left, client) })
	}
	return client, nil
}

// Begin connects before the connection is needed: an agent does not wait long for those who
// opened its sandbox, nor for the first message on a stream. It does not wait; the next use
// of the link returns what came of it.
func (l *Link) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left.Err() != nil {
		return
	}
	l.watch.Go(func() {
		ctx, cancel := context.WithTimeout(l.left, comeBackTime)
		defer cancel()
		if _, err := l.Client(ctx); l.left.Err() == nil {
			l.Warn("the sandbox could not be connected to", err)
		}
	})
}

// comeBackTime bounds the attempt to reach an agent that no call needs now. Agents wait no
// longer for a connection.
const comeBackTime = time.Minute

// comeBack waits until a client is lost, and connects again.
func (l *Link) comeBack(ctx context.Context, client *agentclient.Client) {
	select {
	case <-client.Done():
	case <-ctx.Done():
	}
	l.mu.Lock()
	dropped := l.client != client
	l.mu.Unlock()
	if ctx.Err() != nil || dropped {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, comeBackTime)
	defer cancel()
	// The next use of the sandbox returns why it cannot be reached.
	if _, err := l.Client(ctx); l.left.Err() == nil {
		l.Warn("a stream into the sandbox was lost, and could not be made again", err)
	}
}

// Drop closes the connection, which the next use of the link makes again: the agent is about to be
// another one.
func (l *Link) Drop() {
	l.mu.Lock()
	client := l.client
	l.client = nil
	l.mu.Unlock()
	if client != nil {
		_ = client.Close() // as if the agent had closed it
	}
}

// Leave announces that this handle ends the sandbox, or its use of it: the end of the
// stream is no loss then, and Alive fails. The link can be used until Close.
func (l *Link) Leave() {
	l.ending.Store(true)
	l.mu.Lock() // no watcher is added from here on
	defer l.mu.Unlock()
	l.leave()
}

// shutdownGrace bounds how long an agent may take to acknowledge that it ends.
const shutdownGrace = 2 * time.Second

// Shutdown asks the agent to end and reports whether it has acknowledged that. It does not
// connect.
func (l *Link) Shutdown() bool {
	l.mu.Lock()
	client := l.client
	l.mu.Unlock()
	if _, is := l.Paused(); is || client == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	return client.Shutdown(ctx) == nil
}

// Close closes the connection, and waits for the watchers.
func (l *Link) Close() {
	l.Leave()
	l.watch.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.client != nil {
		_ = l.client.Close() // a stream that the sandbox's end broke is how closing looks from here
		l.client = nil
	}
}

// Call asks the agent for something that what names, such as "list the processes".
func Call[T any](ctx context.Context, l *Link, what string, do func(*agentclient.Client) (T, error)) (T, error) {
	var zero T
	if err := l.Alive(); err != nil {
		return zero, err
	}
	client, err := l.Client(ctx)
	if err != nil {
		return zero, err
	}
	v, err := do(client)
	if err != nil {
		err = l.Explain(ctx, err)
		if strings.HasPrefix(err.Error(), what+": ") {
			return zero, fmt.Errorf("sandbox %s: %w", l.machine.ID(), err)
		}
		return zero, fmt.Errorf("%s in sandbox %s: %w", what, l.machine.ID(), err)
	}
	return v, nil
}
