package language

import (
	"path"
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
