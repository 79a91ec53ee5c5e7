// Package agentclient is the host's side of the guest agent: processes, files
// and connections inside a sandbox, over one byte stream into it.
//
// A failure that the agent reports is an *[agentproto.Error]; errors.Is finds
// [io/fs.ErrNotExist], [io/fs.ErrExist] and [io/fs.ErrPermission] in it. When the
// stream breaks, whatever waits for it gets an *[agentproto.StreamError], which
// wraps [agentproto.ErrStreamLost]: what became of the call is then not known.
package agentclient

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Client speaks with one agent over one stream. Its methods may be called
// concurrently, and none makes another wait.
type Client struct {
	conn *agentproto.Conn

	mu         sync.Mutex
	closed     bool // no more goroutines
	goroutines sync.WaitGroup
	conns      map[*Conn]struct{} // whose goroutines may wait for their users
}

// Connect does the handshake over rwc, which the client then owns, also when
// Connect fails. Closing rwc must end a pending Read and Write.
func Connect(ctx context.Context, rwc io.ReadWriteCloser) (*Client, error) {
	conn, err := agentproto.Client(ctx, rwc, agentproto.Hello{})
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn}, nil
}

// Info is what the agent says of itself.
func (c *Client) Info() agentproto.Hello { return c.conn.Peer() }

// Done is closed when the stream has ended; Err then returns why.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Err reports why the stream ended; nil while it lives.
func (c *Client) Err() error { return c.conn.Err() }

// Failing reports whether the stream takes no further call. It ends, when it has not yet, once
// what came for those before is read, after two seconds at most.
func (c *Client) Failing() bool { return c.conn.Failing() }

// Ping waits for a sign of life of the agent.
func (c *Client) Ping(ctx context.Context) error { return c.conn.Ping(ctx) }

// Close ends the stream. Processes go on without it.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	conns := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	err := c.conn.Close()
	for _, conn := range conns {
		conn.lose()
	}
	c.goroutines.Wait()
	return err
}

// spawn runs f on a goroutine that Close waits for. After Close, whose end of
// the stream leaves f nothing to do, it does nothing and returns false.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.goroutines.Go(f)
	}
	return !c.closed
}

// Processes lists the processes the agent has started and still knows.
func (c *Client) Processes(ctx context.Context) ([]agentproto.ProcessInfo, error) {
	var list agentproto.ProcessList
	if err := c.request(ctx, agentproto.MethodProcesses, &agentproto.Empty{}, &list); err != nil {
		return nil, err
	}
	return list.Processes, nil
}

// Count is how many processes there are beside the agent, no matter what has started them, but for
// those that were started from outside.
func (c *Client) Count(ctx context.Context) (uint64, error) {
	var count agentproto.ProcessCount
	err := c.request(ctx, agentproto.MethodCount, &agentproto.Empty{}, &count)
	return count.Processes, err
}

// Signal sends a signal, by its Linux number, to a process or to its group.
func (c *Client) Signal(ctx context.Context, id uint64, signal uint32, group bool) error {
	req := agentproto.SignalRequest{ID: id, Signal: signal, Group: group}
	return c.request(ctx, agentproto.MethodSignal, &req, &agentproto.Empty{})
}

// Kill kills a process and everything it started, and returns once nothing of it
// is left.
func (c *Client) Kill(ctx context.Context, id uint64) error {
	return c.request(ctx, agentproto.MethodKill, &agentproto.KillRequest{ID: id}, &agentproto.Empty{})
}

// KillAfter sets a process's timeout, from now, in place of the one it has.
func (c *Client) KillAfter(ctx context.Context, id uint64, d time.Duration) error {
	req := agentproto.KillRequest{ID: id, AfterMillis: uint64(max(d, time.Millisecond).Milliseconds())}
	return c.request(ctx, agentproto.MethodKill, &req, &agentproto.Empty{})
}

// Resize changes the size of a process's terminal.
func (c *Client) Resize(ctx context.Context, id uint64, size agentproto.WinSize) error {
	return c.request(ctx, agentproto.MethodResize, &agentproto.ResizeRequest{ID: id, Size: size}, &agentproto.Empty{})
}

// Shutdown makes the agent kill everything and exit.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.request(ctx, agentproto.MethodShutdown, &agentproto.Empty{}, &agentproto.Empty{})
}

// request does a call that has one reply and no bulk bytes.
func (c *Client) request(ctx context.Context, m agentproto.Method, req, reply agentproto.Message) error {
	call, err := c.open(ctx, m, req, reply)
	if err != nil {
		return err
	}
	select {
	case <-call.Done():
	default:
		// A further message than the one reply is of no use to anybody.
		call.Cancel()
	}
	return nil
}

// open starts a call and waits for its first reply. When ctx ends before that,
// the call is cancelled.
func (c *Client) open(ctx context.Context, m agentproto.Method, req, reply agentproto.Message) (*agentproto.Call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call, err := c.conn.Open(m, req)
	if err != nil {
		return nil, err
	}
	if _, err := call.Recv(ctx, reply); err != nil {
		call.Cancel()
		return nil, err
	}
	return call, nil
}
