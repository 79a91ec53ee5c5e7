package agentclient

import (
	"context"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Sockets returns the kernel's tables of the sandbox's TCP sockets. They are at most 2 × MaxSockets bytes, whatever an agent sends.
func (c *Client) Sockets(ctx context.Context) ([]byte, error) {
	call, err := c.conn.Open(agentproto.MethodSockets, &agentproto.Empty{})
	if err != nil {
		return nil, err
	}
	buf := bounded{room: 2 * agentproto.MaxSockets}
	if _, err := receive(ctx, call, &buf, &agentproto.Empty{}); err != nil {
		return nil, err
	}
	return buf.content.Bytes(), nil
}
