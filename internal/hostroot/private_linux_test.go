package hostroot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPrivate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes whiteouts")
	}
	source, cache := t.TempDir(), t.TempDir()
	plant := func(name string, mode fs.FileMode) {
		t.Helper()
		path, err := filepath.Join(source, name), error(nil)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o600)
		}
		if err := errors.Join(err, os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(source, 0o755); err != nil {
		t.Fatal(err)
	}
	plant("a/", 0o755)
	plant("a/secret", 0o640)
	plant("a/open", 0o644)
	plant("a/program", 0o755)
	plant("closed/", 0o755)
	plant("closed/in", 0o600)
	plant("closed/", 0o750)
	plant("enter/", 0o711) // and not listed
	plant("listed/", 0o754)
	plant("new\nline", 0o000)
	if err := os.Symlink("a/secret", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	hidden := func() (string, []string) {
		t.Helper()
		layer, err := Private(cache, source)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		err = filepath.WalkDir(layer, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				return err
			}
			if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
				return fmt.Errorf("%s is no whiteout", path)
			}
			name, err := filepath.Rel(layer, path)
			names = append(names, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return layer, names
	}
	want := []string{"a/secret", "closed", "enter", "listed", "new\nline"}
	first, names := hidden()
	if !slices.Equal(names, want) {
		t.Errorf("hides %q, want %q", names, want)
	}
	plant("later", 0o600)
	if again, names := hidden(); again != first {
		t.Errorf("looked again at once: %q", names)
	}
	looked := filepath.Join(cache, "hostroot-looked-"+hash(source))
	old := time.Now().Add(-lookedAge)
	if err := os.Chtimes(looked, old, old); err != nil {
		t.Fatal(err)
	}
	want = slices.Insert(want, 3, "later")
	second, names := hidden()
	if !slices.Equal(names, want) || second == first {
		t.Errorf("later hides %q, want %q in another layer", names, want)
	}
	if err := os.RemoveAll(second); err != nil {
		t.Fatal(err)
	}
	if third, names := hidden(); third != second || !slices.Equal(names, want) {
		t.Errorf("after its removal hides %q, want %q", names, want)
	}
	for _, text := range []string{"", ".", "..", "hostroot-private-none", "../" + filepath.Base(cache)} {
		if err := os.WriteFile(looked, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if again, _ := hidden(); again != second {
			t.Errorf("%q names %s, want %s", text, again, second)
		}
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v are in the cache, %v, want two layers and what was looked at", entries, err)
	}
}

func TestPrivateRefuses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes whiteouts")
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/usr", link); err != nil {
		t.Fatal(err)
	}
	for what, dir := range map[string]string{"a closed directory": closed, "what is not there": filepath.Join(closed, "none"), "a symbolic link": link, "a file": "/etc/passwd"} {
		if layer, err := Private(t.TempDir(), dir); err == nil {
			t.Errorf("%s is hidden by %s, want an error", what, layer)
		}
	}
}

func TestMountedBelow(t *testing.T) {
	for dir, want := range map[string]bool{"/": true, "/proc/self": false, t.TempDir(): false} {
		if below, err := MountedBelow(dir); err != nil || (below != "") != want {
			t.Errorf("below %s: %q, %v, want one: %v", dir, below, err, want)
		}
	}
}
