// Package language describes the languages a sandbox runs: names, file endings,
// and how code becomes processes. Each language is one directory below this one.
package language

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
	// Ahead reports whether Capture can start the interpreter before its code is known.
	Ahead bool
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
	Name   string // part of the key
	Title  string // as people read it in a progress line: "Go's build cache"
	Target string // absolute path inside the sandbox
	// Program is the one the cache depends on: another one needs another cache.
	Program string
	// Fill are the steps that fill Target.
	Fill []Step
}
