package agentclient

import (
	"cmp"
	"context"
	"math"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Logs calls each with the output of a process as the request asks for it, until each returns an
// error, which Logs returns. Whatever an agent sends, the offsets of a stream grow, and without
// Follow there is no more than an agent keeps.
func (c *Client) Logs(ctx context.Context, req agentproto.LogsRequest, each func(agentproto.Output) error) error {
	call, err := c.conn.Open(agentproto.MethodLogs, &req)
	if err != nil {
		return err
	}
	defer call.Cancel()
	ends := [2]uint64{req.OutOffset, req.ErrOffset}
	most := uint64(math.MaxInt64)
	if !req.Follow {
		most = 2 * (agentproto.MaxKept + agentproto.MaxLogs) // what it began with, and came beside the last of it
	}
	for {
		var part agentproto.Output
		final, err := call.Recv(ctx, &part)
		if err != nil || final {
			return err
		}
		end := &ends[0]
		if part.Err {
			end = &ends[1]
		}
		size := uint64(len(part.Data))
		if size == 0 || size > min(agentproto.MaxLogs, most) || part.Offset < *end || part.Offset > math.MaxInt64-size {
			return &agentproto.ProtocolError{Msg: "the agent sent output of a process that was not asked for"}
		}
		*end = part.Offset + size
		most -= size
		if err := cmp.Or(each(part), ctx.Err()); err != nil { // Recv prefers what has come, which may never end
			return err
		}
	}
}
