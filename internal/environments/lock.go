// Package environments keeps the locks of environments: named lists of packages of a language in exact
// versions, of which sandboxes have the same on every machine. A lock is a TOML file.
package environments

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// A Lock is what an environment has.
type Lock struct {
	// Version is the version of the format.
	Version  int    `toml:"version"`
	Language string `toml:"language"`
	// Libraries are those that were asked for, canonical and sorted. The packages are these and what they need.
	Libraries []string           `toml:"libraries"`
	Packages  []language.Package `toml:"package"`
}

const (
	formatVersion = 1
	// Bounds of a lock. The built-in one has 100 packages in 50 KB.
	maxLock      = 1 << 20
	maxPackages  = 2000
	maxLibraries = 256
	maxDigests   = 500 // of one package
)

// Parse reads a lock. It fails with backend.ErrInvalid for one that is not valid as a whole.
func Parse(data []byte) (Lock, error) {
	var l Lock
	if len(data) > maxLock {
		return l, fmt.Errorf("%w: the file is larger than %d bytes", backend.ErrInvalid, maxLock)
	}
	if !flat(data) {
		return l, fmt.Errorf("%w: a lock has no tables or arrays in others, dotted keys or strings of several lines", backend.ErrInvalid)
	}
	about, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&l)
	var syntax toml.ParseError
	switch {
	case errors.As(err, &syntax):
		return l, fmt.Errorf("%w: line %d: %s", backend.ErrInvalid, syntax.Position.Line, syntax.Message)
	case err != nil:
		return l, fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	case len(about.Undecoded()) > 0:
		return l, fmt.Errorf("%w: unknown key %s", backend.ErrInvalid, about.Undecoded()[0])
	}
	if err := l.check(); err != nil {
		return l, fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	return l, nil
}

// flat reports whether a file has nothing that takes a decoder of TOML long: for nested tables and
// dotted keys the time grows with the square of their depth.
func flat(data []byte) bool {
	depth := 0
	var quote byte // of the string at i; '#' in a comment
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\n': // ends comments; in a string it is an error
			quote = 0
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote && c != '#' {
				quote = 0
			}
		case bytes.HasPrefix(data[i:], []byte(`"""`)), bytes.HasPrefix(data[i:], []byte("'''")), c == '{', c == '.':
			return false
		case c == '"', c == '\'', c == '#':
			quote = c
		case c == '[':
			if depth++; depth > 2 {
				return false
			}
		case c == ']':
			depth--
		}
	}
	return true
}

// check validates a lock.
func (l *Lock) check() error {
	if l.Version != formatVersion {
		return fmt.Errorf("version %d of the format is not known, only %d", l.Version, formatVersion)
	}
	lang, err := all.Get(l.Language)
	if err != nil {
		return err
	}
	if lang.Name != l.Language || lang.Libraries == nil || lang.Libraries.Environment == nil {
		return fmt.Errorf("language %q has no environments", l.Language)
	}
	if len(l.Packages) == 0 || len(l.Packages) > maxPackages || len(l.Libraries) > maxLibraries {
		return fmt.Errorf("it has %d packages for %d libraries: use 1 to %d packages and at most %d libraries", len(l.Packages), len(l.Libraries), maxPackages, maxLibraries)
	}
	for _, library := range l.Libraries {
		canonical, err := lang.Libraries.Check(library)
		if err != nil {
			return err
		}
		if canonical != library {
			return fmt.Errorf("library %q: write it as %q", library, canonical)
		}
	}
	return l.checkPackages(lang)
}

// checkPackages makes sure that no Python gets two versions of a package.
func (l *Lock) checkPackages(lang *language.Language) error {
	seen := map[string]bool{}
	for _, p := range l.Packages {
		if err := lang.Libraries.Environment.CheckPackage(p); err != nil {
			return err
		}
		if len(p.SHA256) > maxDigests {
			return fmt.Errorf("package %s has %d digests: use at most %d", p.Name, len(p.SHA256), maxDigests)
		}
		if (len(p.Python) == 0) != (len(l.Packages[0].Python) == 0) {
			return fmt.Errorf("package %s: either all packages have 'python', or none", p.Name)
		}
		if (len(p.SHA256) == 0) != (len(l.Packages[0].SHA256) == 0) {
			return fmt.Errorf("package %s: either all packages have 'sha256', or none", p.Name)
		}
		for _, python := range append([]string{""}, p.Python...) {
			key := p.Name + " " + python
			if len(p.Python) > 0 && python == "" {
				continue
			}
			if seen[key] {
				return fmt.Errorf("package %s is locked twice for the same Python", p.Name)
			}
			seen[key] = true
		}
	}
	return nil
}

// New is a lock of packages that were found for libraries.
func New(lang string, libraries []string, packages []language.Package) (Lock, error) {
	l := Lock{Version: formatVersion, Language: lang, Libraries: libraries, Packages: slices.Clone(packages)}
	slices.SortFunc(l.Packages, func(a, b language.Package) int { return strings.Compare(a.Name, b.Name) })
	if err := l.check(); err != nil {
		return l, fmt.Errorf("%w lock: %w", backend.ErrInvalid, err)
	}
	return l, nil
}

// Encode returns the lock as a file's content, the same for the same lock.
func (l Lock) Encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# The packages of an environment of LLM Sandbox. `llmsandbox setup NAME --from FILE` installs it.\n")
	e := toml.NewEncoder(&b)
	e.Indent = ""
	err := e.Encode(l)
	return b.Bytes(), err
}
