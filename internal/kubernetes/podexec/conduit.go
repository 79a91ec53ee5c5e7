package podexec

import (
	"io"
	"sync"
	"time"
)

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
