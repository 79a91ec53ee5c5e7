package podexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

// pings are how a stream finds out that the other side is dead.
type pings struct {
	period time.Duration
	dead   time.Duration // how long without a sign of life
}

// A Stream is the byte stream to a program in a pod: Write is its stdin, Read its stdout.
// Its methods may be called concurrently.
type Stream struct {
	conduit conduit
	live    *liveConn
	record  *record

	reading sync.Mutex
	end     error // what Read returns from now on

	writing sync.Mutex

	stop   chan struct{} // closed with the stream
	keeper sync.WaitGroup

	mu    sync.Mutex
	cause error // why this side has closed the stream
}

func newStream(c conduit, live *liveConn, r *record, p pings) *Stream {
	s := &Stream{conduit: c, live: live, record: r, stop: make(chan struct{})}
	s.keeper.Go(func() { s.keep(p) })
	return s
}

// Read returns what the program wrote to stdout. At the end it returns io.EOF when the
// program ended with code 0, an *ExitError for another code, ErrGone or ErrNoProgram when
// it could not be started, and ErrLost when the stream broke.
func (s *Stream) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.end != nil {
		return 0, s.end
	}
	n, err := s.conduit.Read(p)
	if err == nil {
		return n, nil
	}
	s.end = s.conclude(err)
	s.shut(fmt.Errorf("the stream has ended: %w", net.ErrClosed))
	return n, s.end
}

// conclude returns what the end of the other side's output means.
func (s *Stream) conclude(err error) error {
	if cause := s.closedFor(); cause != nil {
		return cause
	}
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err := s.record.verdict(); err != nil {
		return err
	}
	return io.EOF
}

// Write sends to the program's stdin. It waits while the program does not read.
func (s *Stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	n, err := s.conduit.Write(p)
	return n, s.sent(err)
}

// CloseWrite ends the program's stdin; its output goes on.
func (s *Stream) CloseWrite() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.sent(s.conduit.CloseWrite())
}

func (s *Stream) sent(err error) error {
	if err == nil {
		return nil
	}
	if cause := s.closedFor(); cause != nil {
		return cause
	}
	return fmt.Errorf("write to the pod: %w", err)
}

// Said is the first of what the program said on stderr so far, at most 4 KiB.
func (s *Stream) Said() string { return s.record.said() }

// Close ends the stream and all pending calls at once. The program sees its stdin end; it
// is not killed.
func (s *Stream) Close() error {
	s.shut(fmt.Errorf("the stream is closed: %w", net.ErrClosed))
	s.keeper.Wait()
	return nil
}

// shut closes the stream for that reason, unless it is closed already.
func (s *Stream) shut(why error) {
	s.mu.Lock()
	first := s.cause == nil
	if first {
		s.cause = why
		close(s.stop)
	}
	s.mu.Unlock()
	s.conduit.Close()
}

func (s *Stream) closedFor() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// keep asks for signs of life, and ends a stream that gives none.
func (s *Stream) keep(p pings) {
	tick := time.NewTicker(p.period)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		switch silent := s.live.silent(); {
		case silent >= p.dead:
			s.shut(fmt.Errorf("%w: no sign of life from the API server for %s", ErrLost, silent.Round(time.Second)))
			return
		case silent >= p.period/2:
			// Not sooner: a server that has said all and closed answers with a reset, in
			// which output that is not read yet gets lost.
			s.conduit.Ping(p.period)
		}
	}
}

// maxWords bounds what is kept of a program's stderr, in bytes.
const maxWords = 4 << 10

// A conduit carries the streams of one program.
type conduit interface {
	// Read returns stdout. At io.EOF the other side has said all, and said holds it.
	io.Reader
	// Write sends stdin. It may be called together with every other method but itself.
	io.Writer
	// CloseWrite ends stdin.
	CloseWrite() error
	// Ping asks for a sign of life, and waits at most that long to get the question away.
	Ping(wait time.Duration)
	// Close ends all pending calls at once, and what runs for this conduit.
	Close()
}

// A record keeps what a program said besides its stdout.
type record struct {
	mu     sync.Mutex
	stderr []byte // the first of it
	status []byte // the last message, whole or one byte longer than it may be
}

// keepStderr reads r to its end.
func (r *record) keepStderr(in io.Reader) error { return r.keep(in, &r.stderr, maxWords) }

// keepStatus reads r to its end.
func (r *record) keepStatus(in io.Reader) error { return r.keep(in, &r.status, maxStatus+1) }

func (r *record) keep(in io.Reader, to *[]byte, room int) error {
	buf := make([]byte, 2<<10)
	for {
		n, err := in.Read(buf)
		r.mu.Lock()
		*to = append(*to, buf[:min(n, room-len(*to))]...)
		r.mu.Unlock()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *record) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.stderr)
}

// verdict returns how the program ended.
func (r *record) verdict() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return verdict(r.status, string(r.stderr))
}

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
