package language

import (
	"context"
	"errors"
)

// A Scan reads a program without running it and says what it uses, in one pass over its
// tokens or its syntax tree. It never fails: of a program that is not well-formed it tells
// what it can, and says so in Facts.Problem. It takes a step of the meter in each turn of a
// loop, so that it ends whatever the code is. It does not keep code, and is safe for
// concurrent use.
type Scan func(m *Meter, code []byte) Facts

// Facts are what a program says, as far as that can be told without running it. All
// positions are byte offsets into the code; lists are in the order of the code.
type Facts struct {
	// Comments are the comments, whose text is nothing to anybody.
	Comments []Span
	// Strings are the string literals, docstrings and here-documents included.
	Strings []Literal
	// Imports are the modules that are brought in, by whatever means.
	Imports []Import
	// Uses are the names used.
	Uses []Use
	// Computed are the places where what is used cannot be told.
	Computed []Computed
	// Problem is a sentence on why the code could not be read to its end, or empty.
	Problem string
}

// A Span is the bytes from Start up to End.
type Span struct{ Start, End int }

// A Literal is a string literal with its delimiters.
type Literal struct {
	Span
	// Value is what it stands for, as far as it is constant.
	Value string
	// Doc tells that it is a docstring: a statement of its own.
	Doc bool
}

// An Import is a module brought in: by a statement, or by a function that does the same.
type Import struct {
	Span
	// Module is its whole name as the language's own documentation writes it
	// ("os.path", "child_process", "java.net.Socket", "os/exec", "sys/socket.h"), without
	// prefixes that change nothing ("node:").
	Module string
}

// A Use is a name used, at the place where it is written.
type Use struct {
	Span
	// Name is the whole name, with aliases and imports resolved: "os.system" for
	// `import os as x; x.system`, for `from os import system` and for
	// `getattr(os, "system")`. What is there without an import has its bare name
	// ("eval", not "builtins.eval").
	Name string
	// Call tells that it is called there.
	Call bool
}

// A Computed is a place where the program itself makes up what it uses.
type Computed struct {
	Span
	Kind ComputedKind
}

// A ComputedKind is what is computed.
type ComputedKind string

// The kinds.
const (
	// ComputedImport: the name of a module.
	ComputedImport ComputedKind = "import"
	// ComputedName: the name of a function, an attribute or a command.
	ComputedName ComputedKind = "name"
	// ComputedCode: code that is executed.
	ComputedCode ComputedKind = "code"
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
