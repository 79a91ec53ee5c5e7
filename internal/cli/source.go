package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
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
	if err != nil {
		return source{}, fmt.Errorf("read the code: %w", err)
	}
	if info.IsDir() {
		return loadProject(arg, lang)
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
	if lang != "" {
		return s, nil
	}
	l, err := all.Choose(s.name, []byte(s.code))
	if l != nil {
		s.lang = l.Name
	}
	return s, err
}

func readSource(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
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
	data, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	if len(data) > maxSource {
		return nil, fmt.Errorf("read the code: %s is larger than %d MiB: pass data with --file", name, maxSource>>20)
	}
	return data, nil
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
			return fmt.Errorf("the project is larger than %d MiB or %d files: pass data with --file", maxSource>>20, maxProjectFiles)
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
	for _, stem := range []string{"main", "Main", "index", "app"} {
		for _, l := range all.All() {
			if lang != "" {
				if want, err := all.Get(lang); err != nil || want.Name != l.Name {
					continue
				}
			}
			for _, ext := range l.Extensions {
				if data, ok := s.files[stem+ext]; ok {
					delete(s.files, stem+ext)
					s.name, s.code, s.lang = stem+ext, string(data), l.Name
					return s, nil
				}
			}
		}
	}
	return s, fmt.Errorf("the project %s has no main file: name it main with its language's ending, such as main.py", dir)
}
