package podexec

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// A cable is a way to a server that can be cut, so that both ends notice, or frozen, so
// that neither does.
type cable struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	conns  []net.Conn
	frozen chan struct{}
	work   sync.WaitGroup
}

// lay puts a cable before a dialer's server.
func lay(t *testing.T, d *Dialer) (*Dialer, *cable) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: l, to: strings.TrimPrefix(d.Config.Host, "http://"), frozen: make(chan struct{})}
	c.work.Go(c.accept)
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.work.Wait()
	})
	return dialer(t, "http://"+l.Addr().String()), c
}

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil {
			near.Close()
			continue
		}
		c.mu.Lock()
		c.conns = append(c.conns, near, far)
		c.mu.Unlock()
		c.work.Go(func() { c.carry(near, far) })
		c.work.Go(func() { c.carry(far, near) })
	}
}

// carry goes on reading nothing once the cable is frozen.
func (c *cable) carry(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-c.frozen:
			return
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			from.Close()
			return
		}
	}
}

func (c *cable) freeze() { close(c.frozen) }

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.conns {
		k.Close()
	}
}
