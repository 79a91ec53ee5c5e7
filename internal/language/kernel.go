package language

import (
	"path"
	"strings"
	"time"
)

// Kernel is how a language keeps state between cells: a driver, one process per
// kernel, which speaks lines of JSON: requests on descriptor 3, replies on 4. docs/kernels.md has the protocol.
type Kernel struct {
	// Plan turns a kernel's source into the files and the one process of its driver.
	Plan func(KernelSource) (Plan, error)
	// Interrupt is how a cell is interrupted.
	Interrupt Interrupt
	// Repeat reports whether an interrupt may come to nothing in a moment between two pieces
	// of a cell. It is then repeated while the cell goes on; elsewhere it comes once, since
	// code may handle it.
	Repeat bool
	// EndInput reports whether a signal does not end a cell's wait for input: the interrupt is
	// then the answer.
	EndInput bool
	// Base64 sends text of requests as base64 of UTF-8 in fields that end in 64, for
	// languages without a parser of JSON.
	Base64 bool
	// Install is one line on how to get what a kernel needs, where that is more than a
	// run needs; empty: Language.Install.
	Install string
}

// KernelSource is what a kernel is started from.
type KernelSource struct {
	ID        string // unique in the sandbox, of [a-z0-9]
	Dir       string // a private directory for the driver's files, which does not exist yet
	Workdir   string
	TempDir   string
	Libraries []string // library directories
	// Plain asks for the language's plain shell where there is a richer one.
	Plain bool
	// These are as in Source.
	MemoryLimit int64
	CPULimit    float64
	Proxy       string
	TrustStore  string
	Program     func(alternatives ...string) string
}

// File is a file of the driver's in its directory. The directory is removed with the kernel, and
// need not be among what a plan cleans up.
func (s KernelSource) File(name string, data []byte) File {
	return File{Path: path.Join(s.Dir, name), Data: data, Mode: 0o644}
}

// Interrupt is how a kernel's cell is interrupted.
type Interrupt int

// The kinds of interrupt.
const (
	// InterruptSignal sends SIGINT to the driver's process group.
	InterruptSignal Interrupt = iota
	// InterruptRequest sends the driver an interrupt request, which it reads beside
	// the cell.
	InterruptRequest
	// InterruptBoth sends the request, which ends what waits, and SignalAfter later both,
	// if the cell goes on: it computes. It needs Kernel.Repeat.
	InterruptBoth
	// InterruptNone: the language cannot; the kernel is restarted and says so.
	InterruptNone
)

// SignalAfter is how long a cell has to end by an interrupt's request before the signal
// follows, with InterruptBoth.
const SignalAfter = 100 * time.Millisecond

// Ahead describes interpreters, or compilers, that are started before their code is known.
type Ahead struct {
	// Capture takes the place of the language's. It also has the interpreter wait for its code, which is not
	// in its main file yet: it sends the event ready, reads one request, becomes the program of that,
	// sends the event begun and closes descriptors 3 and 4. docs/kernel-protocol.md has the protocol.
	Capture func(CaptureSource) Capture
	// Forks tells that it does not take the request itself, but forks, as the agent asks it to on a
	// socket (descriptor 3), processes that do. A request then says where the capture of its program is.
	Forks bool
	// Driver is a program that executes the file of a kernel's driver in its place, of an interpreter that Forks.
	Driver func(file string) []byte
	// Settable reports whether a variable can still be set then, see [SetLate]; nil: none can.
	Settable func(variable string) bool
	// Compiler is set where a plan's first step compiles, and its second one is the program: what is started ahead
	// becomes the first, and never the program. It returns how to start that, and the arguments that its request has
	// then. In the request's text, the file, the file that gets the time of the begin, and the arguments are lines.
	// Its code and text are in base64.
	Compiler func(plan Plan, support string) (argv, args []string)
	// Args reports whether it can be given arguments then.
	Args bool
	// Module reports whether a text can be the name of a module; nil: none are imported ahead.
	Module func(name string) bool
}

// Plans reports whether a plan is one of which the first step can be started ahead.
func (a *Ahead) Plans(plan Plan) bool {
	steps := 1
	if a.Compiler != nil {
		steps = 2
	}
	return len(plan.Steps) == steps && len(plan.Files) == 1
}

// SetLate reports whether a variable can be set once an interpreter has started, which reads those
// whose names begin with one of own: the C library does not read it before.
func SetLate(name string, own ...string) bool {
	for _, prefix := range append(own, "LD_", "LC_", "MALLOC_", "GLIBC_", "MUSL_") {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "HOME", "PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "LOCPATH", "GCONV_PATH":
		return false
	}
	return true
}
