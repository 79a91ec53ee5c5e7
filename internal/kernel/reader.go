package kernel

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line in either direction, in bytes.
const MaxLine = 8 << 20

// A Reader reads events.
type Reader struct{ lines *bufio.Scanner }

// NewReader returns a reader of what a driver writes.
func NewReader(r io.Reader) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), MaxLine)
	lines.Split(wholeLines)
	return &Reader{lines}
}

// wholeLines is bufio.ScanLines without a last line that has no end.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Next returns the next event, and io.EOF after the last one. A half line at the end
// is what a driver leaves that was killed, and no event.
func (r *Reader) Next() (Event, error) {
	if r.lines.Scan() {
		return Decode(r.lines.Bytes())
	}
	switch err := r.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Event{}, fmt.Errorf("%w: a line of more than %d bytes", errProtocol, MaxLine)
	case err != nil:
		return Event{}, err
	}
	return Event{}, io.EOF
}
