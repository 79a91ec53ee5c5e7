// Package language describes the languages a sandbox runs: names, file endings,
// and how code becomes processes. Each language is one directory below this one.
package language

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Language is one language a sandbox can run. Values are immutable and safe for
// concurrent use.
type Language struct {
	Name       string   // canonical, lower case: "python"
	Title      string   // as people write it: "Python"
	Aliases    []string // other accepted names, lower case
	Extensions []string // file endings with the dot, the usual one first
	Shebangs   []string // program names in a #! line
	// Programs are what must be found in the sandbox's PATH. Each entry is a list
	// of alternatives, the preferred one first.
	Programs [][]string
	// Install is one line on how to get the missing programs.
	Install string
	// Plan turns a source into files and steps.
	Plan func(Source) (Plan, error)
	// Caches are prepared once per toolchain and seen by every sandbox; a language
	// must work without them.
	Caches []Cache
	// Libraries installs libraries; nil: this language has none.
	Libraries *Libraries
	// Capture catches what the language's plotting libraries show and save; nil: only
	// files in the artifacts directory are artifacts.
	Capture func(CaptureSource) Capture
	// Ahead is set where the interpreter can be started before its code is known.
	Ahead *Ahead
	// Env is what the language's tools need in every sandbox, whatever it runs. A variable that the
	// image or the caller sets wins.
	Env []string
	// Kernel keeps state between cells; nil: this language has none.
	Kernel *Kernel
	// Scan reads a program for a security policy; nil: no policy can judge this language.
	Scan Scan
	// Details are for those who write code for the sandbox.
	Details Details
	// ModuleSeparator is what parts a module's name into a path: "." in "os.path".
	ModuleSeparator string
	// LibraryName is the name of the library that a canonical entry of a list of libraries
	// (see Libraries.Check) asks for, in the form in which equal names are equal.
	LibraryName func(canonical string) string
	// Missing finds out which library a program misses; nil: there is no telling.
	Missing *Missing
	// Image is the default image of a language that a file declares; empty: it has none.
	Image string
	// Declaration is the file that declares the language, and nil for one in Go.
	Declaration []byte
}

// Source is what a run executes.
type Source struct {
	Code  []byte // content of the main file
	Name  string // base name of the main file as the caller knows it, may be empty
	Files []File // further files of a project; paths relative to the project
	Args  []string
	// Standard is the language standard asked for, e.g. "c++20"; may be empty.
	Standard string
	// MemoryLimit is what the sandbox may use, in bytes, for languages whose
	// runtime sizes its heap by the machine; 0: not known.
	MemoryLimit int64
	// CPULimit is what the sandbox may use, for toolchains that start as many
	// processes as the machine has CPUs; 0: not known.
	CPULimit float64
	RunID    string // unique in the sandbox, of [a-z0-9]
	Workdir  string // absolute: the sandbox's writable working directory
	TempDir  string // absolute: its /tmp
	// Program resolves the first program of alternatives that exists in the
	// sandbox to the name to execute.
	Program func(alternatives ...string) string
	// Libraries are the directories of installed libraries, for languages that need more
	// than the environment of Libraries.Use.
	Libraries []string
	// Proxy is the address, host:port, of the HTTP and SOCKS5 proxy that leads out of the
	// sandbox, for languages that do not read the usual environment variables; empty when
	// there is none.
	Proxy string
	// TrustStore is the file of certificates, a JKS store, that a JVM is to trust; empty
	// for its own.
	TrustStore string
}

// File is one file to be written before the steps.
type File struct {
	Path string // in a Plan absolute, in a Source relative
	Data []byte
	Mode uint32
}

// Plan is how a source is executed: files, then steps in order until one fails.
type Plan struct {
	Files   []File
	Steps   []Step
	Cleanup []string // absolute paths removed when the run has ended
}

// Step is one process. All but the last are compile steps, whose output counts as
// the run's stderr and whose failure ends the run.
type Step struct {
	Argv    []string
	Env     []string // added to the sandbox's environment
	Dir     string   // empty: the run's working directory
	Compile bool
}

// Cache is a directory that a preparation fills once per toolchain, without any user
// code, and that every sandbox of the language then finds at Target, each with its own
// changes.
type Cache struct {
	Name  string // part of the key
	Title string // as people read it in a progress line: "Go's build cache"
	// Target is its path in a sandbox whose directory for temporary files is /tmp. Elsewhere it is as far below that.
	Target string
	// Program is the one the cache depends on: another one needs another cache.
	Program string
	// Installed are places beside it that the cache depends on, too: see backend.Layers.Toolchain.
	Installed []string `json:",omitempty"`
	// Mounted leaves the cache out where it would be copied into each sandbox, which takes longer
	// than it saves.
	Mounted bool `json:"-"`
	// Fill are the steps that fill Target. Where it is elsewhere, what they say of it is changed to that.
	Fill []Step
	// Part is a smaller cache of the same Target and Program, which is filled sooner, and Enough
	// reports whether a program needs no more of the cache; nil: there is none. No key depends on them.
	Part   *Cache                                          `json:"-"`
	Enough func(code []byte, files map[string][]byte) bool `json:"-"`
}

// Details are what a person or a model wants to know of a language before writing code
// for the sandbox. Values are immutable.
type Details struct {
	// UseCases are what it is good for here, a few words each.
	UseCases []string
	// PackageManager is what installs libraries: "pip"; empty: nothing does.
	PackageManager string
	// Version is the command that prints the toolchain's version in its first line. Where
	// its program has alternatives in Language.Programs, one of them will do.
	Version []string
	// Known are libraries that images often bring along, as their users name them, and
	// Present is the command that prints those of them that are there, one a line; nil: they cannot be listed.
	Known   []string
	Present func(names []string) []string
	// Examples are whole programs.
	Examples []Example
	// Untested tells that the language's programs were never run by the tests.
	Untested bool
}

// An Example is a program that runs in the sandbox as it stands.
type Example struct {
	Title       string
	Description string
	Code        string
	// Libraries are the ones of Known that it needs.
	Libraries []string
}

// Alternatives are the names that a program of a language may have.
func (l *Language) Alternatives(program string) []string {
	for _, names := range l.Programs {
		if slices.Contains(names, program) {
			return names
		}
	}
	return []string{program}
}

// Family returns the name of the language whose toolchain, default images and policies' rules hold for a
// language, too: for most it is their own.
func Family(name string) string {
	switch name {
	case "c":
		return "cpp"
	case "typescript":
		return "javascript"
	}
	return name
}

// ErrUnknown means that no language of a name is known.
var ErrUnknown = errors.New("unknown language")

// ErrToolchain means that the program that runs a language, or installs its libraries, is not
// in the sandbox.
var ErrToolchain = errors.New("toolchain is missing")

// ErrInvalidSource means that a source cannot be turned into a plan.
var ErrInvalidSource = errors.New("invalid source")

// ErrInvalidLibrary means that a library's name or version is not of its ecosystem's grammar.
var ErrInvalidLibrary = errors.New("invalid library")

// An UnknownError names a language that is not known. It is an ErrUnknown.
type UnknownError struct {
	Name    string
	Known   []string
	Closest string // the known name most like it; may be empty
}

func (e *UnknownError) Error() string {
	hint := ""
	if e.Closest != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", e.Closest)
	}
	return fmt.Sprintf("unknown language %q%s: use one of %s", e.Name, hint, strings.Join(e.Known, ", "))
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// Capture is how a language's artifacts are caught without a change to the program:
// files that are there before it starts, and environment that makes the interpreter
// find them. A program that plots nothing must not feel it.
type Capture struct {
	Files []File
	Env   []string
}

// CaptureSource is what a capture is made from.
type CaptureSource struct {
	// Dir is the capture directory of one run or kernel, which exists: artifacts and their
	// descriptions go there, in the form that package artifact reads.
	Dir string
	// Support is a directory for the capture's own files, private to the run or kernel.
	Support string
	// Unshown also captures figures that the program made and never showed.
	Unshown bool
	// MaxCount and MaxBytes are where the capture stops, so that a sandbox's disk is
	// not filled with what no result carries; 0: where the language likes.
	MaxCount int
	MaxBytes int64
	// Imports are for Ahead.Capture: modules that the interpreter has imported when it says ready. One
	// that cannot be is the text of a refusal, in the event reply.
	Imports []string
	// Enters is for Ahead.Capture of an interpreter that forks others into other sandboxes.
	Enters bool
	// Current returns a variable's value as it is without the capture.
	Current func(name string) string
}
