package llmsandbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// A link is the sandbox's connection to its agent. It is made when first needed, or before
// by begin, and made again as soon as the stream is lost: the agent outlives its streams,
// but not for long when no stream is made again. It may be used concurrently; the zero value with
// a dial is ready.
type link struct {
	dial func(context.Context) (io.ReadWriteCloser, error)
	log  *slog.Logger // nil: there is none

	mu      sync.Mutex
	client  *agentclient.Client
	dialing chan struct{} // closed when the one who connects just now is done; else nil
	closed  bool
	// left is done when the connection is not to be made again. It is nil before there is a watch.
	left    context.Context
	leaving context.CancelFunc
	watch   sync.WaitGroup // of the watchers of clients
}

// get returns a live client, connecting when there is none.
func (l *link) get(ctx context.Context) (*agentclient.Client, error) {
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

func (l *link) connect(ctx context.Context) (*agentclient.Client, error) {
	rwc, err := l.dial(ctx)
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
func (l *link) settle(done chan struct{}, client *agentclient.Client, err error) (*agentclient.Client, error) {
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
		warn(l.log, "a stream into the sandbox was lost, and made again", l.client.Err())
		// Its end is known already; what it reports while closing is the same loss.
		_ = l.client.Close()
	}
	l.client = client
	l.staying()
	if l.left.Err() == nil {
		l.watch.Go(func() { l.comeBack(l.left, client) })
	}
	return client, nil
}

// begin connects before the connection is needed: an agent does not wait long for those who
// opened its sandbox, nor for the first message on a stream. It does not wait; the next use
// of the link returns what came of it.
func (l *link) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.staying()
	if l.left.Err() != nil {
		return
	}
	l.watch.Go(func() {
		ctx, cancel := context.WithTimeout(l.left, comeBackTime)
		defer cancel()
		if _, err := l.get(ctx); l.left.Err() == nil {
			warn(l.log, "the sandbox could not be connected to", err)
		}
	})
}

// staying makes left, once. mu is held.
func (l *link) staying() {
	if l.left == nil {
		l.left, l.leaving = context.WithCancel(context.Background())
	}
}

// comeBackTime bounds how long it is tried to reach an agent that is not needed just now.
// Agents wait no longer for anybody.
const comeBackTime = time.Minute

// comeBack waits until a client is lost, and connects again.
func (l *link) comeBack(ctx context.Context, client *agentclient.Client) {
	select {
	case <-client.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, comeBackTime)
	defer cancel()
	// The next use of the sandbox returns why it cannot be reached.
	if _, err := l.get(ctx); l.left.Err() == nil {
		warn(l.log, "a stream into the sandbox was lost, and could not be made again", err)
	}
}

// leave is for who is about to end the sandbox: its stream's end is no loss then.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.staying()
	l.leaving()
}

// shutdownGrace bounds how long an agent may take to acknowledge that it ends.
const shutdownGrace = 2 * time.Second

// shutdown asks the agent to end and tells whether it has acknowledged that.
func (l *link) shutdown() bool {
	l.mu.Lock()
	client := l.client
	l.mu.Unlock()
	if client == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	return client.Shutdown(ctx) == nil
}

func (l *link) close() error {
	l.leave()
	l.watch.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.client == nil {
		return nil
	}
	// A stream that the sandbox's end broke is how closing looks from here.
	_ = l.client.Close()
	l.client = nil
	return nil
}
