package llmsandbox

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// keepAtMost bounds what a Result keeps of one stream when Limits.Output is lifted:
// a flood must not fill the caller's memory. Writers still get everything.
const keepAtMost = 64 << 20

// Sizes of the pieces in which output is kept. Each is as large as all before it
// within these bounds, and none is ever copied to grow: a long output would else be
// copied several times over, and leave several times its size as garbage.
const (
	smallestPiece = 4 << 10
	largestPiece  = 1 << 20
)

// A capture keeps the first bytes of a stream and hands all of them on to the
// caller's writer.
type capture struct {
	keep int64

	mu        sync.Mutex
	pieces    [][]byte // only the last one has room
	kept      int64    // bytes in pieces
	total     int64
	truncated bool
	forward   io.Writer
	err       error // the writer's, after which it is no longer called
}

func newCapture(limit int64, forward io.Writer) *capture {
	if limit <= 0 || limit > keepAtMost {
		limit = keepAtMost
	}
	return &capture{keep: limit, forward: forward}
}

// Write never fails: what became of the program must not depend on the caller's
// writer, whose failure is kept for later.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	if room := c.keep - c.kept; int64(len(p)) > room {
		c.truncated = true
		c.store(p[:room])
	} else {
		c.store(p)
	}
	if c.forward != nil && c.err == nil {
		if err := forward(c.forward, p); err != nil {
			c.err = fmt.Errorf("%w: %w", ErrOutput, err)
		}
	}
	return len(p), nil
}

// store keeps a copy of p.
func (c *capture) store(p []byte) {
	for len(p) > 0 {
		last := len(c.pieces) - 1
		if last < 0 || len(c.pieces[last]) == cap(c.pieces[last]) {
			size := min(max(c.kept, smallestPiece), largestPiece)
			c.pieces = append(c.pieces, make([]byte, 0, size))
			last++
		}
		piece := c.pieces[last]
		n := min(len(p), cap(piece)-len(piece))
		c.pieces[last] = append(piece, p[:n]...)
		c.kept += int64(n)
		p = p[n:]
	}
}

// forward calls the caller's writer. A panic in it becomes an error: the run's
// outcome is worth more than a caller's broken callback.
func forward(w io.Writer, p []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the writer panicked: %v", r)
		}
	}()
	n, err := w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text strings.Builder
	text.Grow(int(c.kept))
	for _, piece := range c.pieces {
		text.Write(piece)
	}
	return text.String()
}

// unforwarded is the text of a stream that no writer got.
func (c *capture) unforwarded() string {
	if c.forward != nil {
		return ""
	}
	return c.text()
}

// Truncate notes that some of the stream is not even written to c.
func (c *capture) Truncate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.truncated = true
}

func (c *capture) cut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.truncated
}

func (c *capture) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

func captureErrors(cs ...*capture) error {
	var errs []error
	for _, c := range cs {
		c.mu.Lock()
		errs = append(errs, c.err)
		c.mu.Unlock()
	}
	return errors.Join(errs...)
}
