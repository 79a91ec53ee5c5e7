package bash

import (
	"errors"
	"io"
	"runtime"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

const (
	// maxFrames bounds how deep the stack is. The parser is recursive and would go as deep
	// as brackets are nested, until the program is killed.
	maxFrames = 2000
	// maxLine bounds what is read before statements are reported, and forgotten.
	maxLine = 256 << 10
	// piece is how much the parser gets at once. For each byte it may go some thirty
	// functions deeper before it asks for more.
	piece = 256
)

var (
	errDeep  = errors.New("there is too much in each other")
	errLong  = errors.New("it is too long")
	errSlash = errors.New("there are too many backslashes in a row")
)

// A source is what the parser reads from, and what ends it.
type source struct {
	meter *language.Meter
	code  []byte
	read  int // how much of the code the parser has
	told  int // how much it had when statements were told last
}

func (r *source) Read(buffer []byte) (int, error) {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return 0, errDeep
	}
	if r.read-r.told > maxLine {
		return 0, errLong
	}
	rest := r.code[r.read:]
	if len(rest) == 0 {
		return 0, io.EOF
	}
	n := min(piece, len(rest), len(buffer))
	// The parser looks at what follows a backslash, but not at what it does not have yet.
	for rest[n-1] == '\\' {
		r.meter.Step()
		if n == len(buffer) {
			return 0, errSlash
		}
		n++
	}
	r.meter.Take(n)
	r.read += copy(buffer, rest[:n])
	return n, nil
}
