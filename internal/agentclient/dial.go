package agentclient

import (
	"context"
	"io"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Stream is a connection to a program inside the sandbox. It may be read and
// written at the same time.
type Stream struct {
	client *Client
	call   *agentproto.Call
}

// Dial connects to a TCP port on the sandbox's loopback. It fails with
// [io/fs.ErrNotExist] when nothing listens there.
func (c *Client) Dial(ctx context.Context, port uint16) (*Stream, error) {
	call, err := c.open(ctx, agentproto.MethodDial, &agentproto.DialRequest{Port: port}, &agentproto.Empty{})
	if err != nil {
		return nil, err
	}
	return &Stream{client: c, call: call}, nil
}

// Read returns what the server sent, and io.EOF after its last byte.
func (s *Stream) Read(p []byte) (int, error) { return s.call.Read(agentproto.ChanOut, p) }

// Write sends to the server. It fails with [io.ErrClosedPipe] once the
// connection or its sending half is closed.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.call.Write(agentproto.ChanIn, p)
	if err == agentproto.ErrCallEnded {
		err = io.ErrClosedPipe
	}
	return n, err
}

// CloseWrite ends the sending half; the server reads end-of-file.
func (s *Stream) CloseWrite() error {
	err := s.call.CloseWrite(agentproto.ChanIn)
	if err == agentproto.ErrCallEnded {
		return nil // the server has already ended
	}
	return err
}

// Close ends the connection.
func (s *Stream) Close() error {
	s.call.Cancel()
	return nil
}
