package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// A handover is the listener by which net/http's server gets connections.
type handover struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the next connection.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr is for net/http's sake.
func (h *handover) Addr() net.Addr { return inside{} }

// serve has conn served, which is s or TLS on it, and returns when its last handler has.
func (h *handover) serve(s *served, conn net.Conn) {
	s.closed = make(chan struct{})
	select {
	case h.conns <- conn:
		<-s.closed
	case <-h.closed:
		_ = s.Close()
	}
	s.handlers.Wait()
}

// served is a connection that net/http's server has, and what its handlers know of it.
type served struct {
	net.Conn
	stream *stream
	ctx    context.Context
	tunnel *tunnel // nil where the sandbox speaks with us as a proxy

	mu       sync.Mutex
	over     bool
	closed   chan struct{}
	handlers sync.WaitGroup
}

// Close closes the connection; no handler begins after it.
func (s *served) Close() error {
	s.mu.Lock()
	if !s.over {
		s.over = true
		close(s.closed)
	}
	s.mu.Unlock()
	return s.Conn.Close()
}

// begin reports whether a handler may begin; it must then call s.handlers.Done.
func (s *served) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.handlers.Add(1)
	}
	return !s.over
}

type servedKey struct{}

// withServed is the server's ConnContext.
func withServed(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, servedKey{}, c.(*served))
}

// servedBy is the connection a request came on.
func servedBy(ctx context.Context) *served { return ctx.Value(servedKey{}).(*served) }

// peeked is a connection whose first bytes can be looked at.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func newPeeked(c net.Conn) *peeked { return &peeked{c, bufio.NewReader(c)} }

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// CloseWrite ends the sending half.
func (p *peeked) CloseWrite() error { return closeWrite(p.Conn) }
