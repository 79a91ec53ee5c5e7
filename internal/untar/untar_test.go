package untar

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// unpack unpacks files of four bytes, directories and links below dir.
func unpack(t *testing.T, dir string, o Options, headers ...tar.Header) (Result, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	o.Mode = func(mode int64) fs.FileMode { return fs.FileMode(mode & 0o700) }
	return Unpack(bytes.NewReader(testtar.Archive(t, testtar.Filled("data", headers...)...)), root, o)
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o6755} }

// TestUnpack makes what the options say, and reports how much it was.
func TestUnpack(t *testing.T) {
	dir, then := t.TempDir(), time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	old := file("a/b/old")
	old.ModTime = then
	o := Options{
		Options: tarcheck.Options{Links: true}, DirMode: 0o711, Times: true,
		Target: func(path []string, target string) string { return strings.Join(path, "+") + ":" + target },
	}
	got, err := unpack(t, dir, o, old, tar.Header{Typeflag: tar.TypeDir, Name: "a/b/d/", Mode: 0o777}, file("f"),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "a/l", Linkname: "../f"})
	if want := (Result{Files: 2, Bytes: 8}); err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	for name, want := range map[string]fs.FileMode{"a": fs.ModeDir | 0o711, "a/b/d": fs.ModeDir | 0o711, "a/b/old": 0o700} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", name, info, err, want)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "a/b/old")); err != nil || !info.ModTime().Equal(then) {
		t.Errorf("its time: got %v, %v, want %v", info, err, then)
	}
	if target, err := os.Readlink(filepath.Join(dir, "a/l")); err != nil || target != "a+l:../f" {
		t.Errorf("the link: got %q, %v, want %q", target, err, "a+l:../f")
	}
}

// TestUnpackOverSomething: only files are replaced, and only where that is asked for. A
// failure leaves what is there, and nothing beside it.
func TestUnpackOverSomething(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		h    tar.Header
		want error
	}{
		"file":                 {Options{}, file("file"), fs.ErrExist},
		"file, replaced":       {Options{Replace: true}, file("file"), nil},
		"link":                 {Options{}, file("link"), fs.ErrExist},
		"link, replaced":       {Options{Replace: true}, file("link"), nil},
		"directory":            {Options{}, file("dir"), fs.ErrExist},
		"directory, replaced":  {Options{Replace: true}, file("dir"), errDir},
		"below a file":         {Options{Replace: true}, file("file/f"), errNotDir},
		"below a link":         {Options{Replace: true}, file("link/f"), tarcheck.ErrUnsafe},
		"directory for a file": {Options{Replace: true}, tar.Header{Typeflag: tar.TypeDir, Name: "file/"}, errNotDir},
		"link for a file": {Options{Options: tarcheck.Options{Links: true}, Replace: true},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "file", Linkname: "dir"}, fs.ErrExist},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := errors.Join(os.Mkdir(filepath.Join(dir, "dir"), 0o755), os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("dir", filepath.Join(dir, "link")); err != nil {
				t.Skip("no symbolic links here: ", err)
			}
			if _, err := unpack(t, dir, c.o, c.h); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
				t.Errorf("there are %v, %v, want three", left, err)
			}
			want := "kept"
			if c.want == nil && c.h.Name == "file" {
				want = "data"
			}
			if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != want {
				t.Errorf("the file: got %q, %v, want %q", got, err, want)
			}
		})
	}
}
