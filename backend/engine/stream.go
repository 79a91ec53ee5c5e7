package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/moby/moby/client"
)

// The kinds of frames in a container's output without a terminal: each is a byte of
// kind, three of nothing, four of length (big endian), and the content.
const (
	frameStdin  = 0
	frameStdout = 1
	frameStderr = 2
	frameSystem = 3

	frameHeader = 8
)

// maxWords bounds what is kept of what an agent or the engine says on stderr.
const maxWords = 4 << 10

var errOutOfStep = errors.New("the engine's stream is out of step")

// A stream is the byte stream to an agent over a container's standard streams.
type stream struct {
	conn net.Conn
	in   io.Reader
	left uint32 // of the stdout frame being read

	mu    sync.Mutex
	words []byte // the first of stderr
}

func newStream(h client.HijackedResponse) *stream {
	return &stream{conn: h.Conn, in: h.Reader}
}

// Read returns what the agent wrote to stdout.
func (s *stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(p[:min(int64(len(p)), int64(s.left))])
	s.left -= uint32(n)
	if errors.Is(err, io.EOF) && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads frames up to the next one of stdout.
func (s *stream) next() error {
	var h [frameHeader]byte
	if _, err := io.ReadFull(s.in, h[:]); err != nil {
		if said := s.Said(); said != "" {
			return fmt.Errorf("%w: it said %q", io.ErrUnexpectedEOF, said)
		}
		return err
	}
	if h[1]|h[2]|h[3] != 0 {
		return fmt.Errorf("%w: a frame starts with % x", errOutOfStep, h)
	}
	size := binary.BigEndian.Uint32(h[4:])
	switch h[0] {
	case frameStdin, frameStdout:
		s.left = size
		return nil
	case frameStderr, frameSystem:
		return s.keep(int64(size))
	}
	return fmt.Errorf("%w: a frame of kind %d", errOutOfStep, h[0])
}

// keep reads what was said on stderr and keeps the first of it.
func (s *stream) keep(size int64) error {
	s.mu.Lock()
	room := min(size, int64(maxWords-len(s.words)))
	s.mu.Unlock()
	words := make([]byte, room)
	n, err := io.ReadFull(s.in, words)
	s.mu.Lock()
	s.words = append(s.words, words[:n]...)
	s.mu.Unlock()
	if err == nil {
		_, err = io.CopyN(io.Discard, s.in, size-room)
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Said is what came over stderr so far.
func (s *stream) Said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.words)
}

func (s *stream) Write(p []byte) (int, error) { return s.conn.Write(p) }
func (s *stream) Close() error                { return s.conn.Close() }
