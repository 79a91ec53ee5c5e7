package llmsandbox

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// Dial connects to a server inside the sandbox, on a TCP port of its loopback. It fails
// with fs.ErrNotExist when nothing listens there. The sandbox needs no network for it,
// and the server sees a connection from its own loopback. What was written before Close
// still arrives. The connection ends with the sandbox's handle.
func (s *Sandbox) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	client, err := s.link.get(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := client.Dial(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d in sandbox %s: %w", port, s.ID(), s.explain(ctx, err))
	}
	return stream.Conn(net.JoinHostPort(s.ID(), strconv.Itoa(int(port)))), nil
}
