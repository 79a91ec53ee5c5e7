package llmsandbox

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// A link is the sandbox's connection to its agent. It is made when first needed and
// made again when the stream was lost, since the agent outlives its streams.
type link struct {
	dial func(context.Context) (io.ReadWriteCloser, error)

	mu     sync.Mutex
	client *agentclient.Client
	closed bool
}

// get returns a live client, connecting when there is none.
func (l *link) get(ctx context.Context) (*agentclient.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.client != nil {
		select {
		case <-l.client.Done():
			// The old connection's end is known already; what it reports
			// while closing is the same loss.
			_ = l.client.Close()
			l.client = nil
		default:
			return l.client, nil
		}
	}
	rwc, err := l.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox's agent: %w", err)
	}
	client, err := agentclient.Connect(ctx, rwc)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox's agent: %w", err)
	}
	l.client = client
	return client, nil
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
