package configdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestFiles: a file is replaced whole, with the mode that is asked for, and read up to its bound.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if _, err := ReadFile(path, 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want fs.ErrNotExist", err)
	}
	for _, text := range []string{"older", "new"} {
		if err := WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadFile(path, 3); err != nil || string(got) != "new" {
		t.Errorf("got %q, %v, want new", got, err)
	}
	if _, err := ReadFile(path, 2); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("one byte too large: %v, want backend.ErrInvalid", err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v, want mode 640", info.Mode(), err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v, want fs.ErrNotExist", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "d"), nil, 0o600); err == nil {
		t.Error("a directory was replaced by a file, want an error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v, want the file and the directory alone", entries, err)
	}
}
