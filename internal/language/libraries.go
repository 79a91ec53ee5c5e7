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
	// Accelerator is what installs faster than the language's own tool; nil: nothing does.
	Accelerator *Accelerator
	// Packages is how packages are installed one by one; nil: they are not.
	Packages *Packages
	// Environment is how environments are made; nil: the language has none.
	Environment *Environment
}

// Packages installs the packages that a list needs one by one, each in a sandbox of its own and by its digests,
// so that each is kept for all lists. It needs the accelerator. A list is installed by Libraries.Install
// where this does not do.
type Packages struct {
	// Lock turns a list into the processes that find out which packages it needs. They write the file LockName
	// into src.Dir, or none if the packages cannot be installed one by one.
	Lock     func(src InstallSource) (Plan, error)
	LockName string
	// Read reads the file, which may be of a hostile package. It returns valid packages with digests, those first
	// that take the longest to install, or none if not all are such.
	Read func(lock []byte) ([]Package, error)
	// Install turns a package into the processes that install it into src.Dir, in such a way that the
	// directories of all packages of a list make one library directory. They run no code of the package.
	Install func(src InstallSource, p Package) (Plan, error)
	// Finish is what is done with some packages when they are installed.
	Finish []Finish
}

// A Finish makes, once for the same packages, what programs would make again in every sandbox.
type Finish struct {
	Title string
	// Of is the package that it is for, and With are the others that it needs, if they are there. It runs their code.
	Of   string
	With []string
	// Plan makes the processes that write into src.Dir what is to be in the library directory besides.
	Plan func(src InstallSource) (Plan, error)
}

// An Accelerator is a program that Install uses if it is there, and does without if it is not.
type Accelerator struct {
	Program string
	// Library is the package that has it, as the language's own tool is asked for it.
	Library string
	// Install makes the processes that install src.Libraries, which is Library, below bin of
	// src.Dir, out of the registries and without running any code of the package.
	Install func(src InstallSource) (Plan, error)
}

// An Environment is a library directory that takes the place of what is installed beside the
// language's program: programs find its packages and no others but those of library directories.
type Environment struct {
	// Lock turns a list of canonical libraries into the processes that find out which packages
	// are needed for them, in which versions. They write a JSON array of [Package] into the file
	// LockName of src.Dir.
	Lock func(src InstallSource) (Plan, error)
	// CheckPackage validates a package of a lock. Its error wraps ErrInvalidLibrary.
	CheckPackage func(Package) error
	// Install turns the packages of a lock into the processes that install exactly these into
	// src.Dir.
	Install func(src InstallSource, packages []Package) (Plan, error)
	// Env are variables of a sandbox that is opened with the environment.
	Env func(dir string) []string
}

// LockName is the file that Environment.Lock writes.
const LockName = "lock.json"

// A Package is one version of a library.
type Package struct {
	Name    string `toml:"name" json:"name"`
	Version string `toml:"version" json:"version"`
	// Python are the versions of Python that need the package, such as "3.11"; none: all.
	Python []string `toml:"python,omitempty" json:"python,omitempty"`
	// SHA256 are hexadecimal digests of the package's files. Others are not installed, unless it is empty.
	SHA256 []string `toml:"sha256,omitempty" json:"sha256,omitempty"`
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
	// On is the directory of the environment that the libraries are for, whose packages count as
	// installed; empty: none. Programs are found in it already.
	On string
	// Accelerator is the path or the name of the language's accelerator in the sandbox; empty: none.
	Accelerator string
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
