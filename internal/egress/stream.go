package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A stream makes a net.Conn, with deadlines, of what comes out of a sandbox, and
// counts its bytes. One goroutine reads ahead by one buffer.
type stream struct {
	rwc     io.ReadWriteCloser
	onClose func()
	in      chan []byte   // what was read; closed at the end, err is set then
	free    chan struct{} // the buffer may be used again
	err     error
	rest    []byte // of the buffer that is being read; Read is called by one at a time

	readBy    deadline
	writeBy   atomic.Int64 // Unix nanoseconds, 0 is never
	closeOnce sync.Once
	closed    chan struct{}
	pumped    chan struct{}

	sent, received atomic.Int64 // by and to the sandbox
}

// newStream calls onClose, which must not block, when the stream is closed.
func newStream(rwc io.ReadWriteCloser, onClose func()) *stream {
	s := &stream{
		rwc: rwc, onClose: onClose, in: make(chan []byte), free: make(chan struct{}),
		closed: make(chan struct{}), pumped: make(chan struct{}),
	}
	s.readBy.init()
	go s.pump()
	return s
}

// pump reads until the end. Its goroutine ends with the stream: Close closes what it
// reads from.
func (s *stream) pump() {
	defer close(s.pumped)
	defer close(s.in)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.rwc.Read(buf)
		if n > 0 {
			select {
			case s.in <- buf[:n]:
			case <-s.closed:
				return
			}
			select {
			case <-s.free:
			case <-s.closed:
				return
			}
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		expired := s.readBy.wait()
		select {
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		select {
		case b, ok := <-s.in:
			if !ok {
				return 0, s.endOf()
			}
			s.rest = b
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		case <-s.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(p, s.rest)
	// Counted here and not when it came: what is read ahead belongs to whatever reads it.
	s.sent.Add(int64(n))
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		select {
		case s.free <- struct{}{}:
		case <-s.closed:
		}
	}
	return n, nil
}

func (s *stream) endOf() error {
	select {
	case <-s.closed:
		return net.ErrClosed
	default:
	}
	if s.err != nil {
		return s.err
	}
	return io.EOF
}

func (s *stream) Write(p []byte) (int, error) {
	if by := s.writeBy.Load(); by != 0 {
		left := time.Until(time.Unix(0, by))
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		// A half-written stream is of no use: past its deadline it is closed.
		t := time.AfterFunc(left, func() { _ = s.Close() })
		defer t.Stop()
	}
	n, err := s.rwc.Write(p)
	s.received.Add(int64(n))
	return n, err
}

// CloseWrite signals to the sandbox that no more data comes, where the protocol can say so.
func (s *stream) CloseWrite() error { return closeWrite(s.rwc) }

func (s *stream) Close() error {
	var err error
	s.closeOnce.Do(func() {
		close(s.closed)
		s.onClose()
		err = s.rwc.Close()
		s.readBy.set(time.Time{})
	})
	return err
}

func (s *stream) SetReadDeadline(t time.Time) error {
	s.readBy.set(t)
	return nil
}

func (s *stream) SetWriteDeadline(t time.Time) error {
	var by int64
	if !t.IsZero() {
		by = t.UnixNano()
	}
	s.writeBy.Store(by)
	return nil
}

func (s *stream) SetDeadline(t time.Time) error {
	_ = s.SetReadDeadline(t)
	return s.SetWriteDeadline(t)
}

func (s *stream) LocalAddr() net.Addr  { return inside{} }
func (s *stream) RemoteAddr() net.Addr { return inside{} }

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

// A deadline is a channel that closes at a time that may be changed.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	turn    int // counts changes, so that a timer of before is without effect
	expired chan struct{}
}

func (d *deadline) init() { d.expired = make(chan struct{}) }

func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expired
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	select {
	case <-d.expired:
		d.expired = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		close(d.expired)
		return
	}
	turn := d.turn
	d.timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.turn == turn {
			close(d.expired)
		}
	})
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
	counted := &countedConn{conn, c.a}
	return counted, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(counted)), nil
}

type countedConn struct {
	net.Conn
	a *attempt
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.a.sent.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.a.received.Add(int64(n))
	return n, err
}

// CloseWrite ends the sending half.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }
