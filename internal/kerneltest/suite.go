//go:build unix

package kerneltest

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Cells say in one language what every driver must do. An empty one is not asked for.
type Cells struct {
	Prepare  string    // sent first to every kernel; imports
	State    []string  // several cells; the last prints Out and has Value
	Out      string    // printed by the last of State
	Value    string    // its value
	Fails    string    // raises Failure in its third line
	Failure  [3]string // name, message, part of the traceback
	Syntax   string    // does not parse
	SyntaxAt string    // part of what is said
	Sleep    string    // prints a line, then waits for ever
	Loop     string    // prints a line, then computes for ever
	Stderr   string    // prints "careful" on stderr
	Child    string    // a child prints "child", and "fault" on stderr, and lists its descriptors on stdout
	Leaks    bool      // children cannot be kept from descriptors of the driver
	Input    string    // asks with Prompt, its value with "Ann" is InputIs
	Prompt   string
	InputIs  string
	Exit     string // prints "bye", exits with 3
	Stays    bool   // an exit keeps the state
	// ExitOnly: the driver does not tell of it, its exit code does.
	ExitOnly bool
	Crash    string // kills the process
	Define   string // defines a variable
	Complete string // its beginning
	// Completes, MemberIs are among the matches of Complete and Member.
	Completes string
	Member    string
	MemberIs  string
	Inspect   string // the variable's name, and part of what is said about it
	Inspects  string
	Variable  [2]string // name and type
}

// Suite runs the cells in kernels of lang.
func Suite(t *testing.T, lang *language.Language, c Cells, env ...string) {
	start := func(t *testing.T) *Kernel {
		k := Start(t, lang, env...)
		if c.Prepare != "" {
			k.MustRun(c.Prepare)
		}
		return k
	}
	t.Run("state", func(t *testing.T) { state(t, start(t), c) })
	t.Run("errors", func(t *testing.T) { failures(t, start(t), c) })
	t.Run("output", func(t *testing.T) { output(t, start(t), c) })
	if c.Input != "" {
		t.Run("input", func(t *testing.T) { input(t, start(t), c) })
	}
	t.Run("end", func(t *testing.T) { ends(t, start, c) })
	t.Run("asked", func(t *testing.T) { asked(t, start(t), c) })
	if lang.Kernel.Interrupt != language.InterruptNone {
		t.Run("interrupt", func(t *testing.T) { interrupts(t, start(t), c) })
	}
}

// MustRun runs a cell that must be ok.
func (k *Kernel) MustRun(code string) Event {
	k.t.Helper()
	e := k.Run(code)
	if e.Status != "ok" || e.Failure != nil {
		k.t.Fatalf("%q: %s %+v\nstdout: %s\nstderr: %s", code, e.Status, e.Failure, e.Stdout, e.Stderr)
	}
	return e
}
