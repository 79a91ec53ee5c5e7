package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// An event is one of a stream of Server-Sent Events.
type event struct {
	name, id string
	data     []byte
}

// errEventTooLong: an event is longer than what may be kept of it.
var errEventTooLong = errors.New("an event is too long")

// An eventReader reads a stream of Server-Sent Events, of which it keeps one at a time.
type eventReader struct {
	r    *bufio.Reader
	most int64 // bytes of one event
}

func newEventReader(r io.Reader, most int64) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), most: most}
}

// next returns the next event that has data. It fails with io.EOF at the stream's end, also where that is in the middle of an event, which is then
// none.
func (r *eventReader) next() (event, error) {
	var e event
	left := r.most
	some := false
	for {
		line, err := r.line(&left)
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if some {
				return e, nil
			}
			e, left = event{}, r.most
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			e.id = string(value)
		case "event":
			e.name = string(value)
		case "data":
			if some {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			some = true
		} // others, and comments, mean nothing here
	}
}

// line returns a line without its end, of at most so many bytes as are left of its event.
func (r *eventReader) line(left *int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if *left -= int64(len(part)); *left < 0 {
			return nil, fmt.Errorf("%w: more than %d bytes", errEventTooLong, r.most)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
