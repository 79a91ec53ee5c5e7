package language

import (
	"context"
	"errors"
)

// ErrTooComplex: reading code took more steps than code of its size may take.
var ErrTooComplex = errors.New("the code is too complex to be checked: reading it takes more steps than code of its size may take; write it more simply")

const (
	// How many steps reading code may take: so many for each byte, and some for any code.
	stepsPerByte = 128
	stepsForAny  = 1 << 20
	// stepsBetweenLooks is how many steps there are between two looks at the context.
	stepsBetweenLooks = 1 << 10
)

// A Meter counts the steps in which code is read, and ends the reading when there are too many
// or when a context ends. Code is hostile: without a meter some of it would be read for hours.
// A Meter is for one goroutine.
type Meter struct {
	ctx  context.Context
	left int
}

// halt is what a meter panics with, since scanners are deep in recursion when it happens.
type halt struct{ err error }

// Metered calls read, which looks at code of size bytes, with a new meter. Its error is the
// context's or [ErrTooComplex].
func Metered(ctx context.Context, size int, read func(*Meter)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case halt:
			err = r.err
		default:
			panic(r)
		}
	}()
	m := &Meter{ctx: ctx, left: stepsForAny + stepsPerByte*size}
	m.Look()
	read(m)
	return nil
}

// Step counts one step, such as a turn of a loop.
func (m *Meter) Step() {
	if m.left--; m.left&(stepsBetweenLooks-1) == 0 {
		m.Look()
	}
}

// Take counts n steps, such as for the copy of a text of n bytes.
func (m *Meter) Take(n int) {
	before := m.left
	if m.left -= n; m.left <= 0 || before/stepsBetweenLooks != m.left/stepsBetweenLooks {
		m.Look()
	}
}

// Look ends the reading if it is to end, and counts nothing: for work whose steps are not in
// the reader's hands.
func (m *Meter) Look() {
	if m.left <= 0 {
		panic(halt{ErrTooComplex})
	}
	if err := m.ctx.Err(); err != nil {
		panic(halt{err})
	}
}
