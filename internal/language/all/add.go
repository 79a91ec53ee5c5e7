package all

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/declared"
)

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
