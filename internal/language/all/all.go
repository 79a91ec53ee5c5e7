// Package all is the registry of the languages a sandbox can run.
package all

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/edits"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/internal/language/cpp"
	"github.com/llmsandbox/llmsandbox/internal/language/declared"
	"github.com/llmsandbox/llmsandbox/internal/language/golang"
	"github.com/llmsandbox/llmsandbox/internal/language/java"
	"github.com/llmsandbox/llmsandbox/internal/language/javascript"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
	"github.com/llmsandbox/llmsandbox/internal/language/r"
	"github.com/llmsandbox/llmsandbox/internal/language/ruby"
)

// coded are the languages that are written in Go.
var coded = [...]*language.Language{
	&python.Language, &javascript.Language, &javascript.TypeScript, &java.Language, &cpp.Language, &cpp.C,
	&golang.Language, &r.Language, &ruby.Language, &bash.Language,
}

// All returns the languages: those written in Go, the best known first, then those that files declare. The slice is
// the caller's.
func All() []*language.Language {
	return append(append(coded[:len(coded):len(coded)], declared.Builtin()...), added()...)
}

// Coded returns the languages that are written in Go. The slice is the caller's.
func Coded() []*language.Language { return slices.Clone(coded[:]) }

// Env is what the tools of all languages need in a sandbox. Those that files declare need nothing.
func Env() []string {
	var env []string
	for _, l := range coded {
		env = append(env, l.Env...)
	}
	return env
}

// each yields the languages as All has them, and reads declarations only where one is asked for.
func each(yield func(*language.Language) bool) {
	for _, list := range []func() []*language.Language{func() []*language.Language { return coded[:] }, declared.Builtin, added} {
		for _, l := range list() {
			if !yield(l) {
				return
			}
		}
	}
}

// Get returns the language of a name or alias, in any case. The error is a
// *language.UnknownError.
func Get(name string) (*language.Language, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	for l := range each {
		if l.Name == want || contains(l.Aliases, want) {
			return l, nil
		}
	}
	return nil, unknown(name, want)
}

// names are the canonical names of all languages.
func names() []string {
	var list []string
	for l := range each {
		list = append(list, l.Name)
	}
	return list
}

func unknown(name, want string) error {
	e := &language.UnknownError{Name: name}
	const longest = 32 // no name is longer, and so none is near
	best := 3          // more differences than this is another word
	e.Known = names()
	for l := range each {
		for _, known := range append([]string{l.Name}, l.Aliases...) {
			if len(want) > longest {
				continue
			}
			if d := edits.Distance(want, known); d < best && d < len(known) {
				best, e.Closest = d, l.Name
			}
		}
	}
	return e
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// users are the languages that were added to the built-in ones.
var users struct {
	sync.RWMutex
	list []*language.Language
}

// maxAdded bounds how many may be.
const maxAdded = 256

func added() []*language.Language {
	users.RLock()
	defer users.RUnlock()
	return users.list[:len(users.list):len(users.list)]
}

// Load adds the language that a file declares to those of this process, and returns it. The error for a file that
// is not valid is a *declared.Error, as for one with a name, an alias, an ending or a program of a #! line that another
// language has. Loading the same declaration again does nothing.
func Load(path string) (*language.Language, error) {
	l, err := declared.Read(path)
	if err != nil {
		return nil, err
	}
	return add(path, l)
}

// LoadText is Load for the content of a file of that name.
func LoadText(name string, text []byte) (*language.Language, error) {
	l, err := declared.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return add(name, l)
}

// LoadDir loads the files of a directory with the ending .toml, by their names. A directory that is not there has
// none. It loads the others when one fails.
func LoadDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the languages' declarations: %w", err)
	}
	var failed []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".toml" && !strings.HasPrefix(e.Name(), ".") {
			_, err := Load(filepath.Join(dir, e.Name()))
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func add(file string, l *language.Language) (*language.Language, error) {
	builtin := append(Coded(), declared.Builtin()...)
	users.Lock()
	defer users.Unlock()
	for _, known := range append(builtin, users.list...) {
		if known.Name == l.Name && known.Declaration != nil && bytes.Equal(known.Declaration, l.Declaration) {
			return known, nil
		}
		if key, reason := clash(l, known); key != "" {
			return nil, declared.Invalid(file, l.Declaration, key, reason)
		}
	}
	if len(users.list) == maxAdded {
		return nil, fmt.Errorf("%s: there are more than %d languages", file, maxAdded)
	}
	users.list = append(users.list[:len(users.list):len(users.list)], l)
	return l, nil
}

// clash is the key by which a language would stand for what another one does, and why; "" if there is none.
func clash(l, known *language.Language) (key, reason string) {
	for _, c := range []struct {
		key         string
		of, another []string
	}{
		{"name", []string{l.Name}, append([]string{known.Name}, known.Aliases...)},
		{"aliases", l.Aliases, append([]string{known.Name}, known.Aliases...)},
		{"extensions", l.Extensions, known.Extensions},
		{"shebangs", l.Shebangs, known.Shebangs},
	} {
		for _, text := range c.of {
			if contains(c.another, text) {
				return c.key, fmt.Sprintf("%q is one of the language %s: choose another one", text, known.Name)
			}
		}
	}
	return "", ""
}

// Guess returns a file's language by the ending of its name or else by its #! line.
func Guess(filename string, head []byte) (*language.Language, bool) {
	ext := path.Ext(strings.ReplaceAll(filename, `\`, "/"))
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for l := range each {
			for _, e := range l.Extensions {
				if same(e, ext) {
					return l, true
				}
			}
		}
	}
	return interpreted(shebang(head))
}

// Choose returns the language of a file that is to be run, or of code without a name. It is Guess's, but
// a shell script's #! line counts for more than its ending, which all shells share. Code
// with neither a name nor a #! line has no language: both results are nil.
func Choose(filename string, head []byte) (*language.Language, error) {
	program := shebang(head)
	l, ok := Guess(filename, head)
	if l == &bash.Language && program != "" {
		l, ok = interpreted(program)
	}
	if !ok && (filename != "" || program != "") {
		return nil, unknownKind(filename, program)
	}
	return l, nil
}

// unknownKind is the error for code whose language its name, which may be empty, and the program of its
// #! line, too, do not tell.
func unknownKind(name, program string) error {
	what := "cannot run " + name
	if name == "" {
		what = "cannot run this code"
	}
	if program != "" {
		return fmt.Errorf("%s: its first line asks for %q, which is not supported: choose one of %s with --lang", what, program, strings.Join(names(), ", "))
	}
	var endings []string
	for l := range each {
		endings = append(endings, l.Extensions...)
	}
	return fmt.Errorf("%s: its name does not say which language it is in: use one of the endings %s, or choose the language with --lang", what, strings.Join(endings, " "))
}

// interpreted is the language whose code a program of a #! line runs.
func interpreted(program string) (*language.Language, bool) {
	if program == "" {
		return nil, false
	}
	for _, name := range []string{program, strings.TrimRight(program, "0123456789.")} {
		for l := range each {
			if contains(l.Shebangs, name) {
				return l, true
			}
		}
	}
	return nil, false
}

// shebang is the base name of the interpreter that a #! line names, through env and
// its options and assignments; "" when there is none.
func shebang(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line[:min(len(line), 1024)]))
	for i, field := range fields {
		env := i > 0 && path.Base(fields[0]) == "env"
		switch {
		case i == 0 && path.Base(field) != "env":
			return path.Base(field)
		case env && !strings.HasPrefix(field, "-") && !strings.Contains(field, "="):
			return path.Base(field)
		}
	}
	return ""
}
