package agentclient

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// lingerTime is how long a closed connection may take to deliver what was written.
const lingerTime = 10 * time.Second

// A Conn is a Stream as a [net.Conn], with deadlines and a Close after which what was
// written still arrives. Its methods may be called concurrently.
type Conn struct {
	stream *Stream
	addr   addr
	// in and out are the user's ends of two pipes, received and toSend ours.
	in, received net.Conn
	out, toSend  net.Conn

	mu       sync.Mutex
	closed   bool
	readErr  error // why in has ended, when not by an ordinary end
	writeErr error // why out has
}

// Conn returns the stream as a net.Conn, through which alone it is then used. Name is
// what RemoteAddr says. Its goroutines end with the connection or the client.
func (s *Stream) Conn(name string) *Conn {
	c := &Conn{stream: s, addr: addr(name)}
	c.in, c.received = net.Pipe()
	c.out, c.toSend = net.Pipe()
	if !s.client.adopt(c) {
		c.lose()
	}
	return c
}

// adopt starts a connection's goroutines, for which Close waits; false after Close.
func (c *Client) adopt(conn *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.conns == nil {
		c.conns = map[*Conn]struct{}{}
	}
	c.conns[conn] = struct{}{}
	c.goroutines.Go(func() {
		var sending sync.WaitGroup
		sending.Go(conn.send)
		conn.receive()
		sending.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, conn)
	})
	return true
}

// lose ends a connection whose client was closed.
func (c *Conn) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.stream.client.Err()
	if c.readErr == nil {
		c.readErr = err
	}
	if c.writeErr == nil {
		c.writeErr = err
	}
	_, _ = c.received.Close(), c.toSend.Close() // pipes' never fail
}

const pumpSize = 32 << 10

// receive hands on what comes, and after Close discards it, so that the end is seen.
func (c *Conn) receive() {
	buf := make([]byte, pumpSize)
	_, err := io.CopyBuffer(onlyWriter{c.received}, onlyReader{c.stream}, buf)
	if errors.Is(err, io.ErrClosedPipe) {
		_, err = io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{c.stream}, buf)
	}
	c.mu.Lock()
	if c.readErr == nil {
		c.readErr = err
	}
	closed := c.closed
	c.mu.Unlock()
	_ = c.received.Close() // a pipe's never fails
	if closed || err != nil {
		c.stream.Close()
	}
}

// send hands on what is written.
func (c *Conn) send() {
	_, err := io.CopyBuffer(onlyWriter{c.stream}, onlyReader{c.toSend}, make([]byte, pumpSize))
	if err == nil {
		err = c.stream.CloseWrite()
	}
	c.mu.Lock()
	if c.writeErr == nil {
		c.writeErr = err
	}
	c.mu.Unlock()
	_ = c.toSend.Close() // a pipe's never fails
}

// Read returns what the program inside sent, and io.EOF after its last byte.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err == io.EOF || errors.Is(err, io.ErrClosedPipe) {
		err = c.because(err, func() error { return c.readErr })
	}
	return n, err
}

// Write sends to the program inside.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = c.because(err, func() error { return c.writeErr })
	}
	return n, err
}

// because reports why a pipe has ended.
func (c *Conn) because(err error, known func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case known() != nil:
		return known()
	}
	return err
}

// CloseWrite ends the sending half; the program inside reads end-of-file.
func (c *Conn) CloseWrite() error { return c.out.Close() }

// Close ends the connection. What was written before still arrives if the program
// inside reads it soon.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	linger := time.AfterFunc(lingerTime, c.stream.call.Cancel)
	if !c.stream.client.spawn(func() {
		<-c.stream.call.Done()
		linger.Stop()
	}) {
		linger.Stop()
	}
	return errors.Join(c.in.Close(), c.out.Close())
}

// Abort ends the connection at once.
func (c *Conn) Abort() {
	c.stream.call.Cancel()
	_ = c.Close() // pipes' never fail
}

// LocalAddr and RemoteAddr name the connection; there are no addresses.
func (c *Conn) LocalAddr() net.Addr { return addr("llmsandbox") }

// RemoteAddr is the name that Conn was given.
func (c *Conn) RemoteAddr() net.Addr { return c.addr }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.SetReadDeadline(t), c.out.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.in.SetReadDeadline(t) }

// SetWriteDeadline bounds writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }

// An addr is the name of one end.
type addr string

func (addr) Network() string  { return "sandbox" }
func (a addr) String() string { return string(a) }

// onlyWriter hides a ReaderFrom, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }
