package agentclient

import (
	"context"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Listener takes connections that programs make to the sandbox's loopback. One
// goroutine at a time may call Next.
type Listener struct {
	client *Client
	call   *agentproto.Call
	port   uint16
}

// Listen listens on a TCP port of the sandbox's loopback; 0 is any free one. It
// takes the place of an earlier listener of that port.
func (c *Client) Listen(ctx context.Context, port uint16) (*Listener, error) {
	var listening agentproto.Listening
	call, err := c.open(ctx, agentproto.MethodListen, &agentproto.ListenRequest{Port: port}, &listening)
	if err != nil {
		return nil, err
	}
	return &Listener{client: c, call: call, port: listening.Port}, nil
}

// Port is where it listens.
func (l *Listener) Port() uint16 { return l.port }

// Next waits for a connection and returns its id, for Accept.
func (l *Listener) Next(ctx context.Context) (id uint64, err error) {
	var conn agentproto.Connection
	_, err = l.call.Recv(ctx, &conn)
	return conn.ID, err
}

// Accept takes over a connection. It fails with [io/fs.ErrNotExist] when it has been
// closed meanwhile. Accepted connections outlive the listener.
func (l *Listener) Accept(ctx context.Context, id uint64) (*Stream, error) {
	call, err := l.client.open(ctx, agentproto.MethodAccept, &agentproto.AcceptRequest{ID: id}, &agentproto.Empty{})
	if err != nil {
		return nil, err
	}
	return &Stream{client: l.client, call: call}, nil
}

// Close ends the listening. Connections that were not accepted are closed.
func (l *Listener) Close() { l.call.Cancel() }
