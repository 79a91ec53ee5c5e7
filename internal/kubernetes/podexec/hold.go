package podexec

import (
	"context"
	"net"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

// A hold closes the connection that is made for a request when the request's context
// ends or it fails. A handshake over it would go on.
type hold struct {
	ctx context.Context

	mu   sync.Mutex
	conn *liveConn
	stop func() bool
}

// dial has the connections that dial makes held.
func (h *hold) dial(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		live := newLiveConn(c)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conn = live
		h.stop = context.AfterFunc(h.ctx, func() { _ = live.Close() })
		return live, nil
	}
}

// release lets go of the connection, which is closed if err is an error or the context
// has ended. A context's end is the error then, whatever came of it.
func (h *hold) release(err error) (*liveConn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil && !h.stop() || err != nil && ctxend.Ended(h.ctx) {
		err = context.Cause(h.ctx)
	}
	if err != nil && h.conn != nil {
		_ = h.conn.Close()
		return nil, err
	}
	return h.conn, err
}
