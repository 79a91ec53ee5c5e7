package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// counts are the bytes that a sandbox has sent and received.
type counts struct{ sent, received atomic.Int64 }

// A Total counts the bytes of all connections of a sandbox with its proxies. The zero value is ready. It is safe for concurrent use.
type Total struct{ counts counts }

// Bytes is how many the sandbox has sent and received so far, those that are for the proxy itself included.
func (t *Total) Bytes() (sent, received int64) { return t.counts.sent.Load(), t.counts.received.Load() }

// A countedConn counts what goes through a connection of the sandbox.
type countedConn struct {
	net.Conn
	*counts
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.received.Add(int64(n))
	return n, err
}

// CloseWrite ends the sending half.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

// A stream is a connection out of a sandbox.
type stream struct {
	countedConn
	onClose   func()
	closeOnce sync.Once
}

// newStream also counts in total, and calls onClose, which must not block, when the stream is closed.
func newStream(conn net.Conn, total *counts, onClose func()) *stream {
	return &stream{countedConn: countedConn{&countedConn{conn, total}, &counts{}}, onClose: onClose}
}

func (s *stream) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.onClose()
		err = s.Conn.Close()
	})
	return err
}

// inside is the address of everything in a sandbox.
type inside struct{}

func (inside) Network() string { return "sandbox" }
func (inside) String() string  { return "sandbox" }

// closeWrite ends the sending half of c, or all of it where it has no halves: who
// waits for the end must see it.
func closeWrite(c io.Closer) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

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

// countedBody counts what the sandbox sends.
type countedBody struct {
	io.ReadCloser
	a *attempt
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.a.sent.Add(int64(n))
	return n, err
}

// counter counts what the sandbox receives.
type counter struct {
	http.ResponseWriter
	a *attempt
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.a.received.Add(int64(n))
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Hijack takes the connection, for an upgrade, and goes on counting.
func (c *counter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	counted := &countedConn{conn, &c.a.counts}
	return counted, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(counted)), nil
}
