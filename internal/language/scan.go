package language

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
