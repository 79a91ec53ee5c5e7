// Package registrytest has what the tests of every language's libraries share.
package registrytest

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Attacks are libraries that no language may accept.
var Attacks = []string{
	"foo; rm -rf /", "foo;rm", "foo && x", "foo&&x", "foo$(x)", "foo`x`", "foo|x", "--upgrade-strategy eager", "--upgrade", "-r", "-e.",
	"foo bar", "foo'bar", `foo"bar`, "foo\nbar", "foo\r", "foo\tbar", "foo\x00", " foo", "foo ", "", "../foo", "foo/../../bar", "/etc/passwd",
	"./foo", ".", "..", "~/foo", "file:///etc/passwd", "http://localhost/x", "git+https://localhost/x", "foo@https://localhost/x.whl", "foo\\bar",
	"foo{a,b}", "$HOME", "%2e%2e", "foo>out;x", "fоо", "foo\u00a0bar", "\u202efoo", "foo@file:x", strings.Repeat("a", 5000),
}

// Check holds a language's Check against canonical forms and refusals, and the attacks.
func Check(t *testing.T, check func(string) (string, error), good map[string]string, bad ...string) {
	t.Helper()
	for library, want := range good {
		got, err := check(library)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", library, got, err, want)
		}
		if again, err := check(got); err != nil || again != got {
			t.Errorf("%q is not canonical: %q, %v", got, again, err)
		}
	}
	for _, library := range append(bad, Attacks...) {
		got, err := check(library)
		if !errors.Is(err, language.ErrInvalidLibrary) || got != "" {
			t.Errorf("%q: %q, %v, want language.ErrInvalidLibrary, got empty", library, got, err)
		}
	}
}

// Fuzz holds Check against whatever comes: what it accepts is one word that is no
// option, no path upwards and short, and its canonical form stays what it is.
func Fuzz(f *testing.F, check func(string) (string, error), seeds ...string) {
	for _, s := range append(seeds, Attacks...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, library string) {
		got, err := check(library)
		if err != nil {
			if !errors.Is(err, language.ErrInvalidLibrary) || got != "" || len(err.Error()) > 1000 {
				t.Fatalf("%q: %q, %v, want language.ErrInvalidLibrary, got empty, len(err.Error()) <= 1000", library, got, err)
			}
			return
		}
		for _, s := range []string{library, got} {
			if s == "" || len(s) > 250 || s[0] == '-' || s[0] == '/' || s[0] == '.' || strings.Contains(s, "..") ||
				strings.ContainsAny(s, ";&|$`\"'\\(){}?#% \t\r\n\x00") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Fatalf("%q was accepted as %q", library, got)
			}
		}
		if again, err := check(got); err != nil || again != got {
			t.Fatalf("%q of %q is not canonical: %q, %v", got, library, again, err)
		}
	})
}

// Machine is a machine whose tools print what it says: Programs by their joined argv,
// Vars its environment, Texts its files.
type Machine struct {
	Programs, Vars, Texts map[string]string
	Home                  string
}

// Ask asks the machine.
func (m Machine) Ask() language.Ask {
	return language.Ask{
		Program: func(argv ...string) ([]byte, error) {
			if out, ok := m.Programs[strings.Join(argv, " ")]; ok {
				return []byte(out), nil
			}
			return nil, fmt.Errorf("%s: %w", argv, fs.ErrNotExist)
		},
		Env: func(name string) string { return m.Vars[name] },
		File: func(name string) ([]byte, error) {
			if text, ok := m.Texts[name]; ok {
				return []byte(text), nil
			}
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		},
		Home: m.Home,
	}
}

// A Case is a machine, and the registries that a language finds on it, or the error.
type Case struct {
	Machine Machine
	Want    language.Registries
	Err     error
}

// Registries holds what a language finds on machines against what it should. No error may
// tell a password: those of the cases are "secret".
func Registries(t *testing.T, registries func(language.Ask) (language.Registries, error), cases map[string]Case) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := registries(c.Machine.Ask())
			switch {
			case !errors.Is(err, c.Err):
				t.Fatal(err)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("the error tells the password: %v, want no error or an error without \"secret\"", err)
			case err == nil && !reflect.DeepEqual(got, c.Want):
				t.Errorf("got  %+v\nwant %+v", got, c.Want)
			}
		})
	}
}
