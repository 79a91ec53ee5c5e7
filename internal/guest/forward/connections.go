//go:build linux

package forward

import (
	"os"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// connections are those that came to the service's listeners.
type connections struct {
	mu        sync.Mutex
	listeners map[uint16]*listener
	lastID    uint64
	waiting   map[uint64]*waiting
	open      int // waiting or accepted
}

// waiting is a connection that the client has not accepted yet.
type waiting struct {
	conn   *os.File
	room   chan struct{} // its listener's
	expiry *time.Timer
}

// replace ends the listener of a port, if there is one, and waits until it has.
func (c *connections) replace(call *agentproto.Call, port uint16) {
	c.mu.Lock()
	old := c.listeners[port]
	delete(c.listeners, port)
	c.mu.Unlock()
	if old == nil {
		return
	}
	close(old.replaced)
	select {
	case <-old.gone:
	case <-call.Done():
	}
}

func (c *connections) add(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = map[uint16]*listener{}
	}
	c.listeners[l.port] = l
}

// remove lets go of a listener's port and closes the connections that wait.
func (c *connections) remove(l *listener) {
	c.mu.Lock()
	if c.listeners[l.port] == l {
		delete(c.listeners, l.port)
	}
	for id, w := range c.waiting {
		if w.room == l.room {
			c.drop(id, w)
		}
	}
	c.mu.Unlock()
	close(l.gone)
}

// announce registers a connection; ok means that there is room for it.
func (c *connections) announce(l *listener, conn *os.File) (id uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= maxConnections {
		return 0, false
	}
	if c.waiting == nil {
		c.waiting = map[uint64]*waiting{}
	}
	c.open++
	c.lastID++
	id = c.lastID
	c.waiting[id] = &waiting{conn: conn, room: l.room, expiry: time.AfterFunc(acceptTime, func() { c.expire(id) })}
	return id, true
}

// expire closes a connection that the client has not accepted in time.
func (c *connections) expire(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[id]; w != nil {
		c.drop(id, w)
	}
}

// drop closes a connection that waits. It is called with mu held.
func (c *connections) drop(id uint64, w *waiting) {
	delete(c.waiting, id)
	w.expiry.Stop()
	w.conn.Close()
	c.open--
	<-w.room
}

// take returns a connection for the client, or nil when it no longer waits.
func (c *connections) take(id uint64) *waiting {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[id]
	if w == nil {
		return nil
	}
	delete(c.waiting, id)
	w.expiry.Stop()
	<-w.room
	return w
}

// closed reports whether an accepted connection has ended.
func (c *connections) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}
