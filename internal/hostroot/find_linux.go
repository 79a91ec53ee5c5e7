package hostroot

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

const toolchains = "/opt/toolchains"

var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// A finder collects what the languages need.
type finder struct {
	Options
	home  string
	dirs  []string // where to look, in order
	binds []Bind
	path  []string          // PATH inside, before systemPath
	env   []string          // besides PATH and the locale
	links map[string]string // links of the skeleton: path inside -> target
	found []Found
	// scripts are directories of the host with console scripts of Python, in the order of PATH.
	scripts []string
}

func newFinder(o Options) *finder {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	getenv := o.Getenv
	f := &finder{Options: o, home: filepath.Clean(getenv("HOME")), links: map[string]string{}}
	for _, env := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := getenv(env); filepath.IsAbs(dir) {
			f.dirs = append(f.dirs, filepath.Join(dir, "bin"))
		}
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if filepath.IsAbs(dir) { // a relative entry means another directory each time
			f.dirs = append(f.dirs, filepath.Clean(dir))
		}
	}
	f.dirs = append(f.dirs, systemPath...)
	f.dirs = append(f.dirs, "/usr/local/go/bin")
	if filepath.IsAbs(f.home) {
		for _, dir := range []string{".pyenv/shims", ".rbenv/shims", ".sdkman/candidates/java/current/bin", ".nvm/versions/node/*/bin"} {
			f.dirs = append(f.dirs, newestFirst(filepath.Join(f.home, dir))...)
		}
	}
	f.dirs = append(f.dirs, newestFirst("/opt/*/bin")...)
	return f
}

// glob is filepath.Glob without reading a directory for a name that has no wildcard. A pattern
// is malformed only by a home's name: nothing is there then.
func glob(pattern string) []string {
	dir, name := filepath.Split(pattern)
	if strings.ContainsAny(name, `*?[\`) || !strings.ContainsAny(dir, `*?[\`) {
		found, _ := filepath.Glob(pattern)
		return found
	}
	var found []string
	for _, d := range glob(strings.TrimSuffix(dir, "/")) {
		path := filepath.Join(d, name)
		if _, err := os.Lstat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// newestFirst matches a pattern; of several versions the last by name comes first.
func newestFirst(pattern string) []string {
	found := glob(pattern)
	sort.Sort(sort.Reverse(sort.StringSlice(found)))
	return found
}

// findAll finds what languages need that are written in Go. Those that files declare have no marks, so that their
// programs are below /usr, and reading the files would take longer than all of this: see systemDirs.
func (f *finder) findAll() {
	for _, l := range all.Coded() {
		for _, alternatives := range l.Programs {
			for _, program := range alternatives {
				if f.find(l.Name, program) {
					break
				}
			}
		}
	}
}

// find takes the first usable program of that name.
func (f *finder) find(language, program string) bool {
	_, inside := f.locate(language, program)
	if inside == "" {
		return false
	}
	f.found = append(f.found, Found{language, program, inside})
	if language == "python" {
		f.linkPython(inside)
	}
	return true
}

// locate returns where the first usable program of that name is on the host and in
// the root; both are empty when there is none.
func (f *finder) locate(lang, program string) (path, inside string) {
	for _, dir := range f.dirs {
		path := f.throughShim(filepath.Join(dir, program))
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if inside := f.place(language.Family(lang), path); inside != "" {
			return path, inside
		}
	}
	return "", ""
}

// throughShim finds what a pyenv or rbenv shim would start, without starting it.
func (f *finder) throughShim(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) != "shims" {
		return path
	}
	root := filepath.Dir(dir)
	version := f.Getenv(strings.ToUpper(strings.TrimPrefix(filepath.Base(root), ".")) + "_VERSION")
	if version == "" {
		data, err := os.ReadFile(filepath.Join(root, "version"))
		if err != nil || len(data) > 4096 {
			return ""
		}
		version = string(data)
	}
	for _, v := range strings.FieldsFunc(version, func(r rune) bool { return r == ':' || r == '\n' || r == ' ' || r == '\r' }) {
		real := filepath.Join(root, "versions", filepath.Base(v), "bin", filepath.Base(path))
		if _, err := os.Stat(real); err == nil {
			return real
		}
	}
	return ""
}

// systemDirs are the other directories below /usr in which the host's shell looks for programs: /usr/local/julia/bin.
// They are mounted anyway, and come last in PATH, so that they change no program that is found without them.
func (f *finder) systemDirs() []string {
	var dirs []string
	for _, dir := range f.dirs {
		if !isSystem(dir) || slices.Contains(systemPath, dir) || slices.Contains(f.path, dir) || slices.Contains(dirs, dir) {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (f *finder) root() *Root {
	path := slices.Concat(f.path, systemPath, f.systemDirs())
	binds := []Bind{{"/usr", "/usr"}}
	for _, top := range topLinks {
		if info, err := os.Lstat(top); err == nil && info.IsDir() {
			binds = append(binds, Bind{top, top})
		}
	}
	return &Root{
		Binds:      append(binds, f.binds...),
		Env:        append([]string{"PATH=" + strings.Join(path, ":"), "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}, f.env...),
		Toolchains: f.found,
	}
}

// marks are what a toolchain's own prefix holds, by language. A directory without them
// (a home, ~/.local, /opt itself) may hold anything and is never mounted. Ruby and R
// are built for one path and are mounted there, the others run from any.
var marks = map[string]struct {
	patterns  []string
	relocates bool
}{
	"python":     {[]string{"lib/python3*/os.py", "lib64/python3*/os.py"}, true},
	"javascript": {[]string{"include/node/node.h", "lib/node_modules"}, true},
	"java":       {[]string{"lib/modules"}, true},
	"go":         {[]string{"src/runtime/runtime.go"}, true},
	"ruby":       {[]string{"lib/ruby/[0-9]*"}, false},
	"r":          {[]string{"lib/R/etc", "lib64/R/etc"}, false},
}

// place makes a host program reachable inside and returns its path there, "" when it must
// not be.
func (f *finder) place(language, path string) (inside string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "" // its link leads nowhere
	}
	name := filepath.Base(path)
	if isSystem(real) {
		dir := filepath.Dir(path)
		if !isSystem(path) {
			dir, name = filepath.Dir(real), filepath.Base(real)
		}
		if !f.venv(path, language) {
			return ""
		}
		f.addPath(dir)
		return filepath.Join(dir, name)
	}
	prefix := filepath.Dir(filepath.Dir(real))
	mark, known := marks[language]
	switch {
	case filepath.Base(filepath.Dir(real)) != "bin" || !known || !hasAny(prefix, mark.patterns):
		return "" // not in a directory that is clearly its toolchain's own
	case f.private(prefix):
		return "" // its directory holds other things than the toolchain
	case !mark.relocates && !f.InPlace && f.inHome(prefix):
		return "" // it cannot be moved out of a home directory
	case f.OtherUser && !reachable(prefix):
		return ""
	}
	if info, err := os.Stat(prefix); err != nil || info.Mode().Perm()&0o005 != 0o005 {
		return "" // other users cannot read it
	}
	target := prefix
	if mark.relocates && !f.InPlace {
		target = filepath.Join(toolchains, language)
	}
	for _, b := range f.binds {
		if b.Target == target && b.Source != prefix {
			return "" // another toolchain of the language was taken already
		}
	}
	if !f.venv(path, language) {
		return ""
	}
	if b := (Bind{prefix, target}); !slices.Contains(f.binds, b) {
		f.binds = append(f.binds, b)
	}
	if language == "python" {
		f.addScripts(filepath.Join(prefix, "bin"))
		f.pythonLibrary(real, prefix, target)
	}
	f.addPath(filepath.Join(target, "bin"))
	// A link within the prefix (python3 -> python3.11) is there inside too.
	if _, err := os.Stat(filepath.Join(prefix, "bin", name)); err != nil {
		name = filepath.Base(real)
	}
	return filepath.Join(target, "bin", name)
}

// venv gives the base interpreter the packages of the virtual environment that path
// is in. The environment itself names its base by a host path and is not mounted.
// It fails for an environment without packages.
func (f *finder) venv(path, language string) bool {
	env := filepath.Dir(filepath.Dir(path))
	if _, err := os.Stat(filepath.Join(env, "pyvenv.cfg")); err != nil || language != "python" {
		return true
	}
	packages := newestFirst(filepath.Join(env, "lib", "python3*", "site-packages"))
	if len(packages) == 0 {
		return false
	}
	target := filepath.Join(toolchains, "venv")
	if f.InPlace {
		target = packages[0]
	}
	f.binds = append(f.binds, Bind{packages[0], target})
	f.env = append(f.env, "PYTHONPATH="+target)
	f.addScripts(filepath.Join(env, "bin"))
	return true
}

// pythonLibrary lets a moved python find its shared library, and only that one: the
// other libraries of its directory must not replace the system's.
func (f *finder) pythonLibrary(real, prefix, target string) {
	if f.InPlace {
		return // it finds it as it does on the host
	}
	bin, err := elf.Open(real)
	if err != nil {
		return
	}
	defer bin.Close()
	libs, _ := bin.ImportedLibraries() // none: static
	dir := filepath.Join(toolchains, "lib")
	for _, lib := range libs {
		if _, err := os.Stat(filepath.Join(prefix, "lib", lib)); err == nil && strings.HasPrefix(lib, "libpython") {
			f.links[filepath.Join(dir, lib)] = filepath.Join(target, "lib", lib)
			if env := "LD_LIBRARY_PATH=" + dir; !slices.Contains(f.env, env) {
				f.env = append(f.env, env)
			}
		}
	}
}

func (f *finder) addPath(dir string) {
	if !slices.Contains(f.path, dir) && !slices.Contains(systemPath, dir) {
		f.path = append(f.path, dir)
	}
}

// private reports whether a directory is, or contains, what belongs to people.
func (f *finder) private(dir string) bool {
	if filepath.IsAbs(f.home) && under(f.home, dir) || filepath.Dir(dir) == "/" || filepath.Dir(dir) == "/home" {
		return true
	}
	return filepath.Base(dir) == ".local"
}

func (f *finder) inHome(dir string) bool {
	return under(dir, "/home") || under(dir, "/root") || filepath.IsAbs(f.home) && under(dir, f.home)
}

// reachable reports whether any user may enter the directories above one.
func reachable(dir string) bool {
	for dir != "/" {
		dir = filepath.Dir(dir)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

func hasAny(dir string, patterns []string) bool {
	for _, p := range patterns {
		if len(glob(filepath.Join(dir, p))) > 0 {
			return true
		}
	}
	return false
}

func isSystem(path string) bool {
	for _, top := range append([]string{"/usr"}, topLinks...) {
		if under(path, top) {
			return true
		}
	}
	return false
}

func under(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// Locate returns the host's own file behind a program of a language that a root made
// now would have, and "" when it would have none. It looks for that one only.
func Locate(language, program string, opts Options) string {
	path, _ := newFinder(opts).locate(language, program)
	if path == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "" // it went away just now
	}
	return real
}
