package layerstore

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOpenMakesItPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "above", "cache")
	s, err := Open(dir)
	if err != nil || s.Dir != dir {
		t.Fatalf("%+v, %v, want no error, Dir = %v", s, err, dir)
	}
	if runtime.GOOS == "windows" {
		return // there are no such modes
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v, want no error, Perm = 0o700", info, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "file"), filepath.Join(dir, "file", "below")}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, "link"))
	}
	for _, path := range paths {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "LLMSANDBOX_CACHE_DIR") {
			t.Errorf("%s: %v, want an error containing \"LLMSANDBOX_CACHE_DIR\"", path, err)
		}
	}
}

func TestDefaultDir(t *testing.T) {
	want := filepath.Join(t.TempDir(), "c")
	t.Setenv("LLMSANDBOX_CACHE_DIR", want)
	if dir, err := DefaultDir(); dir != want || err != nil {
		t.Errorf("%q, %v, want dir = %q, no error", dir, err, want)
	}
	t.Setenv("LLMSANDBOX_CACHE_DIR", "")
	if dir, err := DefaultDir(); err != nil || filepath.Base(dir) != "llmsandbox" || !filepath.IsAbs(dir) {
		t.Errorf("%q, %v, want no error, filepath.Base(dir) = \"llmsandbox\", filepath.IsAbs(dir) = true", dir, err)
	}
}

func TestValidKey(t *testing.T) {
	for key, want := range map[string]bool{
		"sb-0a": true, "a": true, "-a": false, "": false, "A": false, "a/b": false, "..": false, "a\n": false, "a\x00": false,
		"ä": false, "\xff": false, "a.lock": false, strings.Repeat("a", 100): true, strings.Repeat("a", 101): false,
	} {
		if ValidKey(key) != want {
			t.Errorf("%q: %v, want %v", key, !want, want)
		}
	}
}
