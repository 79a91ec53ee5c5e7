package language

// Libraries is how libraries of a language are installed: each list in a sandbox of its
// own into one directory, the library directory, which other sandboxes then get at the same
// path. Values are immutable and safe for concurrent use.
type Libraries struct {
	// Program is the one the installed libraries depend on: another one needs them
	// installed anew.
	Program string
	// Installed are where a sandbox without an image finds libraries that were installed
	// on this machine by other means, which an installation may rely on: when one of these
	// files or directories changes, libraries are installed anew. Patterns as in
	// filepath.Match, absolute or below the directory above the one that Program lies in.
	Installed []string
	// Needs are what must be found in the PATH to install, as in Language.Programs.
	Needs [][]string
	// Check parses one library as its ecosystem writes it (name, extras, version
	// constraint) and returns its canonical form, equal for equal requests. Its error
	// wraps ErrInvalidLibrary. Nothing is ever executed for a library that it refuses.
	Check func(library string) (canonical string, err error)
	// Install turns a list of canonical libraries into the processes that install them
	// into src.Dir. Nothing in the list is a path or an option.
	Install func(src InstallSource) (Plan, error)
	// Use returns the environment that lets programs find what lies in library directories,
	// the first directory first. current returns a variable's value as it is without them.
	Use func(dirs []string, current func(name string) string) []string
	// Registries finds where libraries come from.
	Registries func(ask Ask) (Registries, error)
	// Inside reports whether an image knows better than the machine that runs us: libraries are
	// a part of its system. Others are asked for of an image only where the machine has no
	// such tool.
	Inside bool
}

// InstallSource is what an installation is made from.
type InstallSource struct {
	Libraries  []string // canonical, sorted, without doubles
	Dir        string   // the library directory: absolute, exists, empty
	TempDir    string   // absolute, writable
	Registries Registries
	// Local is a directory in the sandbox with wheels, tarballs or gems, which are to be
	// used in place of any registry; empty: none.
	Local string
	// Host: the toolchain is this machine's, and not that of an image.
	Host    bool
	Program func(alternatives ...string) string
}

// Ask asks the tools of a place, which is the machine that runs us or, see
// Libraries.Inside, the sandbox that installs. Program runs a tool and returns its output;
// it fails with an fs.ErrNotExist where there is none. Env and File read its environment
// and files.
type Ask struct {
	Program func(argv ...string) ([]byte, error)
	Env     func(name string) string
	File    func(path string) ([]byte, error)
	Home    string
}

// Registries is where the libraries of a language come from.
type Registries struct {
	// URLs are all that an installation may reach; their credentials are taken out.
	URLs []string
	// Env and Files tell the tools in the sandbox about them. They hold no credentials.
	Env   []string
	Files []File
	// Credentials are sent by us on the sandbox's behalf and never seen inside.
	Credentials []Credential
}

// Credential is what a registry wants to be asked with.
type Credential struct {
	URL    string // prefix of the requests that carry it
	Header string // e.g. "Authorization"
	Value  string
}
