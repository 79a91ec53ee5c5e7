package language

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// A Layout is where the files of one run lie. No two runs share a path.
type Layout struct {
	Main    string // absolute path of the main file
	Dir     string // the project's own directory; empty for a single file
	Files   []File
	Cleanup []string
}

// Lay places a source. A single file goes, hidden, straight into the working directory,
// so that what lies there can be imported; a project gets a directory of its own.
// main is the name of the main file when the caller gave none with an ending of exts.
func Lay(src Source, code []byte, main string, exts ...string) (Layout, error) {
	if len(src.Files) == 0 {
		p := src.Private(src.Workdir) + extension(src.Name, path.Ext(main), exts)
		return Layout{Main: p, Files: []File{{p, code, 0o644}}, Cleanup: []string{p}}, nil
	}
	return LayProject(src, code, main, exts...)
}

// LayProject places a source in a directory of its own, even a single file.
func LayProject(src Source, code []byte, main string, exts ...string) (Layout, error) {
	name := main
	if validName(src.Name) && has(exts, path.Ext(src.Name)) {
		name = src.Name
	}
	dir := src.Private(src.Workdir)
	l := Layout{Main: path.Join(dir, name), Dir: dir, Cleanup: []string{dir}}
	l.Files = append(l.Files, File{l.Main, code, 0o644})
	for _, f := range src.Files {
		clean := path.Clean(f.Path)
		if path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(clean, "\x00") {
			return Layout{}, fmt.Errorf("project file %q: %w: use a path relative to the project, without '..'", f.Path, ErrInvalidSource)
		}
		if clean == name {
			return Layout{}, fmt.Errorf("project file %q: %w: the main file has the same name", f.Path, ErrInvalidSource)
		}
		mode := f.Mode
		if mode == 0 {
			mode = 0o644
		}
		l.Files = append(l.Files, File{path.Join(dir, clean), f.Data, mode})
	}
	return l, nil
}

// Private is a path in dir that no other run of the sandbox uses.
func (s Source) Private(dir string) string { return path.Join(dir, ".run-"+s.RunID) }

// WithEnding returns the paths of the layout's files that end in one of exts.
func (l Layout) WithEnding(exts ...string) []string {
	var paths []string
	for _, f := range l.Files {
		if has(exts, path.Ext(f.Path)) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

func extension(name, usual string, exts []string) string {
	if e := path.Ext(name); has(exts, e) {
		return e
	}
	return usual
}

// validName refuses what is no plain file name, or would read as an option.
func validName(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsAny(name, "/\x00\n") && name[0] != '-' && name[0] != '.' && name[0] != '_'
}

func has(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// Script plans a language whose interpreter takes a file: argv, file, arguments.
func Script(src Source, argv []string, main string, exts ...string) (Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return Plan{}, err
	}
	l, err := Lay(src, code, main, exts...)
	if err != nil {
		return Plan{}, err
	}
	return l.Interpret(src, argv), nil
}

// Interpret is the plan that runs argv on the main file.
func (l Layout) Interpret(src Source, argv []string) Plan {
	argv = append(append(argv[:len(argv):len(argv)], l.Main), src.Args...)
	return Plan{Files: l.Files, Steps: []Step{{Argv: argv}}, Cleanup: l.Cleanup}
}

// Parallel is how many things a toolchain should do at once under a limit of CPUs; 0
// leaves it to the toolchain. One CPU is best used by two: one waits for files while
// the other computes.
func Parallel(cpus float64) int {
	if cpus <= 0 {
		return 0
	}
	return max(2, int(math.Ceil(cpus)))
}

// Quote writes words for a POSIX shell, which takes each for itself whatever is in it.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
