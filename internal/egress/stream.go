package egress

import (
	"io"
	"net"
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
