package podexec

import (
	"net"
	"sync/atomic"
	"time"
)

// A liveConn is a connection that knows since when it has been waiting for a sign of
// life. It does not wait while the stream's reader is busy elsewhere, so a slow reader never
// makes the other side look dead.
type liveConn struct {
	net.Conn
	born     time.Time
	waiting  atomic.Int64 // since when a Read waits, in nanoseconds since born; 0 when none does
	progress atomic.Int64 // when content was last taken, likewise
	closed   atomic.Bool
}

func newLiveConn(c net.Conn) *liveConn { return &liveConn{Conn: c, born: time.Now()} }

// now is never 0.
func (c *liveConn) now() int64 { return int64(time.Since(c.born)) + 1 }

func (c *liveConn) Read(p []byte) (int, error) {
	c.waiting.Store(c.now())
	n, err := c.Conn.Read(p)
	c.waiting.Store(0)
	return n, err
}

// Close may be called again.
func (c *liveConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.Conn.Close()
}

// moved records that the other side took content. An API server that waits for a slow
// program to read answers no ping meanwhile, and yet lives.
func (c *liveConn) moved() { c.progress.Store(c.now()) }

// silent is how long the other side has given no sign of life.
func (c *liveConn) silent() time.Duration {
	since := c.waiting.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(c.now() - max(since, c.progress.Load()))
}
