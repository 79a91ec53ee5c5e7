package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
	"github.com/llmsandbox/llmsandbox/internal/notebook"
	"github.com/llmsandbox/llmsandbox/security"
)

// Bounds on what a run takes from the host's files.
const (
	maxSource       = 8 << 20
	maxProjectFiles = 2000
)

// source is the code of one run.
type source struct {
	code      string
	name      string
	files     map[string][]byte
	lang      string // guessed; empty when it cannot be
	fromStdin bool
	notebooks []notebookFile // in place of code
	dir       string         // which they belong to; may be empty
}

// loadSource reads what a run's first argument (or --code) names: a file, a directory
// with a main file, or "-" for standard input.
func loadSource(ctx context.Context, arg, code string, codeGiven bool, lang string) (source, error) {
	switch {
	case codeGiven:
		return chosen(source{code: code}, lang)
	case arg == "-":
		data, err := unlessEnded(ctx, func() ([]byte, error) { return readLimited(os.Stdin, "standard input") })
		if err != nil {
			return source{}, err
		}
		return chosen(source{code: string(data), fromStdin: true}, lang)
	}
	info, err := os.Stat(arg)
	switch {
	case arg == "":
		return source{}, errors.New("the FILE to run is empty: give a file, a directory or '-'")
	case err != nil:
		return source{}, fmt.Errorf("read the code: %w", withoutCall(err))
	}
	if info.IsDir() {
		return loadDir(arg, lang)
	}
	data, err := unlessEnded(ctx, func() ([]byte, error) { return readSource(arg) })
	if err != nil {
		return source{}, err
	}
	s := source{code: string(data), name: filepath.Base(arg)}
	if !info.Mode().IsRegular() {
		s.name = "" // a pipe's is not the code's
	}
	return chosen(s, lang)
}

// chosen is s with its language, unless lang names one.
func chosen(s source, lang string) (source, error) {
	if isNotebook(s.name, []byte(s.code)) {
		n, err := parseNotebook(s.name, []byte(s.code), lang)
		return source{notebooks: []notebookFile{n}, lang: n.lang}, err
	}
	if lang != "" {
		return s, nil
	}
	l, err := all.Choose(s.name, []byte(s.code))
	if l != nil {
		s.lang = l.Name
	}
	return s, err
}

// withoutCall is err with the file's name and not the system call's.
func withoutCall(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

func readSource(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", withoutCall(err))
	}
	defer f.Close()
	return readLimited(f, path)
}

// unlessEnded reads code, and gives up when ctx ends: a terminal or a named pipe may be silent for
// ever, and what waits for it cannot be stopped.
func unlessEnded(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	var data []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		data, err = read()
	}()
	select {
	case <-done:
		return data, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readLimited(r io.Reader, name string) ([]byte, error) {
	limit := int64(maxSource)
	if isNotebook(name, nil) {
		limit = notebook.MaxSize
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read the code: %s is larger than %d MiB, the limit for code: move its data into other files", name, limit>>20)
	}
	return data, nil
}

// loadDir reads a directory: a project, or if it has notebooks and no other main file, those.
func loadDir(dir, lang string) (source, error) {
	list, err := notebooksIn(dir, lang)
	if err != nil {
		return source{}, err
	}
	_, other := mainFile("", func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil })
	if len(list) == 0 || other != nil {
		return loadProject(dir, lang)
	}
	return source{notebooks: list, dir: dir, lang: list[0].lang}, nil
}

// mainStems are the names of main files, without their endings.
var mainStems = []string{"main", "Main", "index", "app"}

// mainFile is the first main file of a language, or with "" of any, that is there.
func mainFile(lang string, there func(name string) bool) (name string, l *language.Language) {
	want, err := all.Get(lang)
	for _, stem := range mainStems {
		for _, l := range all.All() {
			if lang != "" && (err != nil || want.Name != l.Name) {
				continue
			}
			for _, ext := range l.Extensions {
				if there(stem + ext) {
					return stem + ext, l
				}
			}
		}
	}
	return "", nil
}

// loadProject reads a directory whose main file is main.* or Main.* or index.*.
func loadProject(dir, lang string) (source, error) {
	s := source{files: map[string][]byte{}}
	total := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != dir && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir // version control and the like
		}
		if !d.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := readSource(path)
		if err != nil {
			return err
		}
		total += len(data)
		if total > maxSource || len(s.files) == maxProjectFiles {
			return fmt.Errorf("it is larger than %d MiB or %d files: move its data elsewhere, and pass that with --file", maxSource>>20, maxProjectFiles)
		}
		s.files[filepath.ToSlash(rel)] = data
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("read the project %s: %w", dir, err)
	}
	return pickMain(s, dir, lang)
}

func pickMain(s source, dir, lang string) (source, error) {
	name, l := mainFile(lang, func(name string) bool { _, ok := s.files[name]; return ok })
	if l == nil {
		return s, fmt.Errorf("the project %s has no main file: name it main with its language's ending, such as main.py", dir)
	}
	s.name, s.code, s.lang = name, string(s.files[name]), l.Name
	delete(s.files, name)
	return s, nil
}

// readMetadata adds the libraries of a script's own metadata (PEP 723) to those of the run, with
// --lib-from-script. Without it, it only notes that there are some, for a hint.
func (f *runFlags) readMetadata(src source) error {
	l, err := all.Get(f.lang)
	isPython := src.files == nil && src.notebooks == nil && (f.lang == "" || err == nil && l.Name == python.Language.Name)
	switch {
	case !isPython && f.fromScript:
		return errors.New("--lib-from-script: only a single Python file can list its libraries: use --lib")
	case !isPython:
		return nil
	}
	m, err := python.ScriptMetadata(src.code)
	if !f.fromScript {
		f.hints.script = err == nil && m != nil && len(m.Libraries) > 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("--lib-from-script: %w", err)
	}
	if m == nil {
		return errors.New("--lib-from-script: the script lists no libraries: begin it with a block '# /// script' as in PEP 723, or use --lib")
	}
	f.libraries.libraries = append(f.libraries.libraries, m.Libraries...)
	f.metadata = m
	return nil
}

// checkVersion fails when the script requires another version of Python than the sandbox has.
func (f *runFlags) checkVersion(ctx context.Context, sb *llmsandbox.Sandbox, src source) error {
	if f.metadata == nil || f.metadata.Requires == "" {
		return nil
	}
	res, err := sb.Exec(ctx, []string{"python3", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"}, nil)
	if err != nil {
		return fmt.Errorf("get Python's version: %w", err)
	}
	version := strings.TrimSpace(res.Stdout)
	ok, err := f.metadata.Accepts(version)
	if err != nil {
		return fmt.Errorf("--lib-from-script: %w", err)
	}
	if ok {
		return nil
	}
	name := cmp.Or(src.name, "the script")
	return fmt.Errorf("%s requires Python %s, but the sandbox has %s: choose an image, such as --image python:3.13", filepath.Base(name), f.metadata.Requires, version)
}

// maxChecked bounds the code of a directory that is checked, in bytes.
const maxChecked = 64 << 20

// directoryProgram is all code below a directory, each file in the language that its name or its
// first line says, without its notebooks, whose paths are returned. It says what is skipped.
func directoryProgram(dir, language string) (p security.Program, notebooks []string, err error) {
	p = security.Program{Language: language, Name: dir, Files: map[string][]byte{}}
	var total, unknown, large int
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir // version control and the like
		case !d.Type().IsRegular():
			return nil
		case isNotebook(path, nil):
			notebooks = append(notebooks, path)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxSource {
			if _, ok := all.Guess(path, nil); ok {
				large++
			} else {
				unknown++
			}
			return nil
		}
		data, err := readSource(path)
		if err != nil {
			return err
		}
		if _, ok := all.Guess(path, data); !ok {
			unknown++
			return nil
		}
		if total += len(data); total > maxChecked {
			return fmt.Errorf("it has more than %d MiB of code: check its directories one at a time", maxChecked>>20)
		}
		p.Files[path] = data
		return nil
	})
	if err != nil {
		return p, nil, fmt.Errorf("check the directory %s: %w", dir, err)
	}
	var skipped []string
	if unknown > 0 {
		skipped = append(skipped, plural(unknown, "file")+" of unknown kind")
	}
	if large > 0 {
		skipped = append(skipped, plural(large, "source file")+fmt.Sprintf(" larger than %d MiB", maxSource>>20))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(stderr, "llmsandbox: %s: skipped %s\n", dir, strings.Join(skipped, " and "))
	}
	if len(p.Files)+len(notebooks) == 0 {
		return p, nil, fmt.Errorf("check the directory %s: no file in it is code of a known language", dir)
	}
	return p, notebooks, nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
