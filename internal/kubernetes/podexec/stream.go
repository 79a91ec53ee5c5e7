package podexec

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
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
