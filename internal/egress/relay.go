package egress

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A relay copies in both directions between a sandbox's client and a server.
type relay struct {
	client, server net.Conn
	idle           *idle

	mu    sync.Mutex
	heard bool // the server has spoken
	taken bool // by take: what the server says is for another
	down  chan struct{}
}

// newRelay begins with what the server says. The goroutine ends by take or run.
func newRelay(client, server net.Conn) *relay {
	r := &relay{client: client, server: server, down: make(chan struct{})}
	r.idle = newIdle(idleTimeout, r.close)
	go func() {
		defer close(r.down)
		r.copyDown()
	}()
	return r
}

// run copies until both directions have ended.
func (r *relay) run() {
	defer r.idle.stop()
	if r.copy(r.server, r.client) != nil {
		r.close()
	}
	<-r.down
}

// take stops the relay before it has carried anything. It fails when the server spoke
// first; the relay then goes on.
func (r *relay) take() bool {
	r.mu.Lock()
	if r.heard {
		r.mu.Unlock()
		return false
	}
	r.taken = true
	r.mu.Unlock()
	_ = r.server.SetReadDeadline(time.Unix(1, 0))
	<-r.down
	_ = r.server.SetReadDeadline(time.Time{})
	r.idle.stop()
	return !r.heard
}

// drop ends both connections and the relay.
func (r *relay) drop() {
	r.idle.stop()
	r.close()
	<-r.down
}

func (r *relay) close() {
	_ = r.client.Close()
	_ = r.server.Close()
}

// copyDown copies from the server, unless its first bytes are taken.
func (r *relay) copyDown() {
	buf := make([]byte, 32<<10)
	n, err := r.server.Read(buf)
	r.mu.Lock()
	r.heard = n > 0
	taken := r.taken
	r.mu.Unlock()
	if taken {
		return
	}
	if n > 0 {
		r.idle.touch()
		if _, err := r.client.Write(buf[:n]); err != nil {
			r.close()
			return
		}
	}
	if err == nil {
		err = r.copyBuffer(r.client, r.server, buf)
	} else if err == io.EOF {
		err = closeWrite(r.client)
	}
	if err != nil {
		r.close()
	}
}

func (r *relay) copy(dst, src net.Conn) error {
	return r.copyBuffer(dst, src, make([]byte, 32<<10))
}

// copyBuffer copies to the end and passes the end on.
func (r *relay) copyBuffer(dst, src net.Conn, buf []byte) error {
	for {
		n, err := src.Read(buf)
		if n > 0 {
			r.idle.touch()
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return closeWrite(dst)
		}
		if err != nil {
			return err
		}
	}
}

// An idle calls back when nothing was touched for so long.
type idle struct {
	after time.Duration
	last  atomic.Int64
	timer *time.Timer
}

func newIdle(after time.Duration, then func()) *idle {
	i := &idle{after: after}
	i.touch()
	ready := make(chan struct{})
	i.timer = time.AfterFunc(after, func() {
		<-ready
		if left := i.after - time.Since(time.Unix(0, i.last.Load())); left > 0 {
			i.timer.Reset(left)
			return
		}
		then()
	})
	close(ready)
	return i
}

func (i *idle) touch() { i.last.Store(time.Now().UnixNano()) }

func (i *idle) stop() { i.timer.Stop() }
