package all

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language/declared"
)

// declaration is one of a language of that name, with further keys.
func declaration(name, more string) string {
	return fmt.Sprintf("name = %q\ntitle = \"T\"\nprograms = [[\"tclsh\"]]\ninstall = \"i\"\nmain = \"main.tcl\"\nrun = [\"tclsh\", \"{main}\"]\n%s\n[details]\nversion = [\"tclsh\"]\n", name, more)
}

// fresh forgets the languages that a test has added.
func fresh(t *testing.T) {
	t.Helper()
	forget := func() {
		users.Lock()
		defer users.Unlock()
		users.list = nil
	}
	forget()
	t.Cleanup(forget)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	fresh(t)
	file := write(t, filepath.Join(t.TempDir(), "tcl.toml"), declaration("tcl", "aliases = [\"wish\"]\nextensions = [\".tcl\"]\nshebangs = [\"tclsh\", \"python2\"]"))
	before := All()
	for range 2 {
		if l, err := Load(file); err != nil || l.Name != "tcl" {
			t.Fatalf("got %v, %v, want tcl", l, err)
		}
	}
	if after := All(); len(after) != len(before)+1 || after[len(before)].Name != "tcl" {
		t.Errorf("there are %d languages, and there were %d, want tcl once behind them", len(after), len(before))
	}
	for _, name := range []string{"tcl", "Wish"} {
		if l, err := Get(name); err != nil || l.Name != "tcl" {
			t.Errorf("Get(%q) = %v, %v, want tcl", name, l, err)
		}
	}
	for name, head := range map[string]string{"a.tcl": "", "a": "#!/usr/bin/env tclsh\n", "b": "#!/usr/bin/python2"} {
		if l, ok := Guess(name, []byte(head)); !ok || l.Name != "tcl" {
			t.Errorf("Guess(%q) = %v, %v, want tcl", name, l, ok)
		}
	}
}

// TestLoadRefusesWhatStandsForAnother: no file changes what a name, an ending or a #! line means.
func TestLoadRefusesWhatStandsForAnother(t *testing.T) {
	fresh(t)
	if _, err := LoadText("first", []byte(declaration("tcl", "extensions = [\".tcl\"]"))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"name":              {declaration("python", ""), `f.toml:1: name: language declaration is not valid: "python" is one of the language python: choose another one`},
		"alias as name":     {declaration("py", ""), "f.toml:1: name: "},
		"declared name":     {declaration("perl", ""), "f.toml:1: name: "},
		"alias":             {declaration("a", `aliases = ["x", "bash"]`), "f.toml:7: aliases: "},
		"declared alias":    {declaration("a", `aliases = ["sqlite3"]`), "f.toml:7: aliases: "},
		"ending":            {declaration("a", `extensions = [".py"]`), "f.toml:7: extensions: "},
		"shebang":           {declaration("a", `shebangs = ["ruby"]`), "f.toml:7: shebangs: "},
		"added name":        {declaration("tcl", ""), "f.toml:1: name: "},
		"added ending":      {declaration("a", `extensions = [".tcl"]`), "f.toml:7: extensions: "},
		"itself is invalid": {declaration("a", "x = 1"), "f.toml:7: x: "},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := LoadText("f.toml", []byte(c.text))
			if !errors.Is(err, declared.ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, %v, want ErrInvalid that begins with %q", l, err, c.want)
			}
		})
	}
}

func TestLoadDir(t *testing.T) {
	fresh(t)
	dir := t.TempDir()
	if err := LoadDir(filepath.Join(dir, "none")); err != nil {
		t.Errorf("got %v, want no error where there is no directory", err)
	}
	write(t, filepath.Join(dir, "a.toml"), declaration("Bad", ""))
	write(t, filepath.Join(dir, "b.toml"), declaration("good", ""))
	write(t, filepath.Join(dir, "c.txt"), "no declaration")
	write(t, filepath.Join(dir, ".d.toml"), "a file that an editor has open")
	if err := LoadDir(dir); !errors.Is(err, declared.ErrInvalid) || !strings.Contains(err.Error(), "a.toml:1: name: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want ErrInvalid of a.toml alone", err)
	}
	if _, err := Get("good"); err != nil {
		t.Errorf("got %v, want that the other file is loaded", err)
	}
	if err := LoadDir(filepath.Join(dir, "c.txt")); err == nil {
		t.Error("got no error, want one for what is no directory")
	}
}

func TestLoadIsBounded(t *testing.T) {
	fresh(t)
	for i := range maxAdded {
		if _, err := LoadText("f", []byte(declaration(fmt.Sprint("x", i), ""))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadText("f", []byte(declaration("more", ""))); err == nil || !strings.Contains(err.Error(), "more than 256 languages") {
		t.Errorf("got %v, want that there are too many", err)
	}
}
