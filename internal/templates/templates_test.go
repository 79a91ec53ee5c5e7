package templates

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestSaveReadRemove(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("LLMSANDBOX_CONFIG_DIR", state)
	if names, err := Names(); err != nil || len(names) != 0 {
		t.Errorf("Names() = %q, %v, want none", names, err)
	}
	if _, _, err := Read("b"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "b: there are none: llmsandbox template create b makes it") {
		t.Errorf("Read: %v, want ErrNotFound that says there are none", err)
	}
	for _, text := range []string{"old", "new"} {
		if err := errors.Join(Save("b", []byte(text)), Save("a-1", []byte("x"))); err != nil {
			t.Fatal(err)
		}
		got, file, err := Read("b")
		if want := filepath.Join(state, "templates", "b.json"); err != nil || string(got) != text || file != want {
			t.Errorf("Read: %q, %s, %v, want %q, %s", got, file, err, text, want)
		}
	}
	if names, err := Names(); err != nil || !slices.Equal(names, []string{"a-1", "b"}) {
		t.Errorf("Names() = %q, %v, want a-1 and b", names, err)
	}
	if entries, err := os.ReadDir(filepath.Join(state, "templates")); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v, want the two files alone", entries, err)
	}
	if _, _, err := Read("c"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "there is a-1, b") {
		t.Errorf("Read: %v, want ErrNotFound that names a-1 and b", err)
	}
	if err := Remove("b"); err != nil {
		t.Error(err)
	}
	if err := Remove("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Remove: %v, want ErrNotFound", err)
	}
}

func TestNames(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	for _, name := range []string{"", "-x", "A", "a b", "../a", "a/b", "a.json", strings.Repeat("x", 41)} {
		_, _, err := Read(name)
		for _, err := range []error{err, Save(name, nil), Remove(name)} {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%q: %v, want backend.ErrInvalid", name, err)
			}
		}
	}
}

func TestLargest(t *testing.T) {
	state := t.TempDir()
	t.Setenv("LLMSANDBOX_CONFIG_DIR", state)
	if err := Save("a", make([]byte, maxFile)); err != nil {
		t.Fatal(err)
	}
	if text, _, err := Read("a"); err != nil || len(text) != maxFile {
		t.Errorf("Read: %d bytes, %v, want %d", len(text), err, maxFile)
	}
	if err := Save("a", make([]byte, maxFile+1)); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("Save: %v, want backend.ErrInvalid", err)
	}
	if err := os.WriteFile(filepath.Join(state, "templates", "b.json"), make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read("b"); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "b.json is larger than") {
		t.Errorf("Read: %v, want backend.ErrInvalid that names the file", err)
	}
}

// TestPrivate: no other user gets in, whatever the directory was before.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no modes there")
	}
	state := t.TempDir()
	t.Setenv("LLMSANDBOX_CONFIG_DIR", state)
	dir := filepath.Join(state, "templates")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777), os.Chmod(state, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := Save("a", nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{state: 0o700, dir: 0o700, filepath.Join(dir, "a.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %o", path, info.Mode(), err, want)
		}
	}
	if err := errors.Join(os.Rename(dir, filepath.Join(state, "elsewhere")), os.Symlink("elsewhere", dir)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read("a"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("Read through a link: %v, want an error of the directory", err)
	}
}
