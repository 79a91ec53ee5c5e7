package hostroot

import (
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

const toolchains = "/opt/toolchains"

var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// A finder collects what the languages need.
type finder struct {
	getenv  func(string) string
	home    string
	dirs    []string // where to look, in order
	binds   []Bind
	path    []string          // PATH inside, before systemPath
	env     []string          // besides PATH and the locale
	links   map[string]string // links of the skeleton: path inside -> target
	found   []Found
	skipped []Skipped
}

func newFinder(getenv func(string) string) *finder {
	f := &finder{getenv: getenv, home: filepath.Clean(getenv("HOME")), links: map[string]string{}}
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

// newestFirst matches a pattern; of several versions the last by name comes first.
func newestFirst(pattern string) []string {
	found, _ := filepath.Glob(pattern) // only a malformed home can fail: nothing is there then
	sort.Sort(sort.Reverse(sort.StringSlice(found)))
	return found
}

func (f *finder) findAll() {
	for _, l := range all.All() {
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
	return true
}

// locate returns where the first usable program of that name is on the host and in
// the root; both are empty when there is none.
func (f *finder) locate(language, program string) (path, inside string) {
	for _, dir := range f.dirs {
		path := f.throughShim(filepath.Join(dir, program))
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		inside, reason := f.place(language, path)
		if reason == "" {
			return path, inside
		}
		f.skipped = append(f.skipped, Skipped{language, path, reason})
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
	version := f.getenv(strings.ToUpper(strings.TrimPrefix(filepath.Base(root), ".")) + "_VERSION")
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

func (f *finder) root() *Root {
	path := append(append([]string(nil), f.path...), systemPath...)
	binds := []Bind{{"/usr", "/usr"}}
	for _, top := range topLinks {
		if info, err := os.Lstat(top); err == nil && info.IsDir() {
			binds = append(binds, Bind{top, top})
		}
	}
	return &Root{
		Binds:      append(binds, f.binds...),
		Env:        append([]string{"PATH=" + strings.Join(path, ":"), "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}, f.env...),
		Toolchains: f.found, Skipped: f.skipped,
	}
}
