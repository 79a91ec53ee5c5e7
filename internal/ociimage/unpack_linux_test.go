package ociimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func unpackBytes(t testing.TB, data []byte, l Limits) (string, layerRecord, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fs")
	rec, err := unpack(t.Context(), dir, bytes.NewReader(data), newBudget(l))
	return dir, rec, err
}

func TestUnpack(t *testing.T) {
	suid := file("bin/su", "x")
	suid.Mode = 0o6755
	secret := file("secret", "x")
	secret.Mode = 0
	closed := directory("closed")
	closed.Mode = 0
	tmp := directory("tmp")
	tmp.Mode = 0o1777
	xattr := file("x", "x")
	xattr.PAXRecords = map[string]string{"SCHILY.xattr.user.overlay.redirect": "/etc", "SCHILY.xattr.security.capability": "x"}
	dir, rec, err := unpackBytes(t, testtar.Archive(t,
		suid, secret, closed, file("closed/in", "1"), tmp, xattr,
		testtar.Link("lib", "usr/lib"), directory("usr"), directory("usr/lib"), file("lib/so", "so"),
		testtar.Link("run", "/usr"), file("run/pid", "7"),
		testtar.Link("up", "../../../../usr"), file("up/up", "8"),
		testtar.HardLink("ln", "bin/su"), testtar.HardLink("lnlib", "lib/so"), testtar.HardLink("sym", "lib"),
		testtar.Member{Header: tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}},
		testtar.Member{Header: tar.Header{Typeflag: tar.TypeChar, Name: "whiteout"}},
		testtar.Member{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "fifo"}},
		testtar.HardLink("nulltoo", "null"),
		file("twice", "1"), file("twice", "22"),
		file("/abs", "abs"), file("./dot/./file", "dot"),
	), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"usr/lib/so": "so", "usr/pid": "7", "usr/up": "8", "ln": "x", "lnlib": "so", "twice": "22", "abs": "abs", "dot/file": "dot", "closed/in": "1",
	} {
		if got := read(t, dir, name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	for name, want := range map[string]fs.FileMode{
		"bin/su": 0o755, "secret": 0o400, "closed": fs.ModeDir | 0o700, "tmp": fs.ModeDir | fs.ModeSticky | 0o777, ".": fs.ModeDir | 0o755,
	} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	for _, name := range []string{"null", "nulltoo", "whiteout", "fifo"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made, want fs.ErrNotExist", name)
		}
	}
	if rec.Skipped != 4 {
		t.Errorf("%d were skipped, want 4", rec.Skipped)
	}
	if n, err := unix.Listxattr(filepath.Join(dir, "x"), nil); err != nil || n != 0 {
		t.Errorf("x has extended attributes: %d %v, want no error, n = 0", n, err)
	}
}

func TestUnpackWhiteouts(t *testing.T) {
	dir, _, err := unpackBytes(t, testtar.Archive(t,
		directory("d"), file("d/.wh.gone", ""),
		directory("o"), file("o/new", "1"), file("o/.wh..wh..opq", ""), file("o/new2", "2"),
		file(".wh.f", ""), file("f", "again"),
		file(".wh.g", ""), file("g/in", "again"),
		directory("h"), file(".wh.h", ""),
		file(".wh..wh.plnk/x", ""), file(".wh..wh.aufs", ""),
	), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, "d/gone"), &st); err != nil || !isWhiteout(st) {
		t.Errorf("d/gone is no whiteout: %v %o, want no error, isWhiteout(st) = true", err, st.Mode)
	}
	for _, name := range []string{"o", "g", "h"} {
		buf := make([]byte, 8)
		n, err := unix.Lgetxattr(filepath.Join(dir, name), "user.overlay.opaque", buf)
		if err != nil || string(buf[:n]) != "y" {
			t.Errorf("%s is not opaque: %v, want no error, buf[:n] = \"y\"", name, err)
		}
		if os.Geteuid() == 0 {
			if n, err = unix.Lgetxattr(filepath.Join(dir, name), "trusted.overlay.opaque", buf); err != nil || string(buf[:n]) != "y" {
				t.Errorf("%s is not opaque for mounts of root: %v, want no error, buf[:n] = \"y\"", name, err)
			}
		}
	}
	if read(t, dir, "f") != "again" || read(t, dir, "g/in") != "again" || read(t, dir, "o/new") != "1" {
		t.Errorf("files of the layer itself: %q, %q, %q, want \"again\", \"again\", \"1\"", read(t, dir, "f"), read(t, dir, "g/in"), read(t, dir, "o/new"))
	}
}

func TestUnpackRefuses(t *testing.T) {
	long := strings.Repeat("a", 256)
	for name, c := range map[string][]testtar.Member{
		"dotdot":              {file("../x", "1")},
		"path too long":       {file(strings.Repeat("long/", 1000)+"x", "1")},
		"dotdot within":       {directory("a"), file("a/../../x", "1")},
		"name too long":       {file(long, "1")},
		"too deep":            {file(strings.Repeat("d/", tarcheck.MaxDepth+1)+"x", "1")},
		"link to itself":      {testtar.HardLink("a", "a")},
		"link to nothing":     {testtar.HardLink("a", "b")},
		"link by dotdot":      {testtar.HardLink("a", "../../etc/passwd")},
		"link to directory":   {directory("d"), testtar.HardLink("a", "d")},
		"link to whiteout":    {file(".wh.w", ""), testtar.HardLink("a", "w")},
		"link loop":           {testtar.Link("a", "b"), testtar.Link("b", "a"), file("a/x", "1")},
		"dangling parent":     {testtar.Link("a", "/nowhere"), file("a/x", "1")},
		"below a file":        {file("a", "1"), file("a/b", "1")},
		"file over directory": {directory("a"), file("a", "1")},
		"whiteout of dot":     {file("a/.wh..", "")},
		"whiteout of none":    {file("a/.wh.", "")},
		"whiteout of up":      {file("a/.wh...", "")},
		"magic link parent":   {testtar.Link("p", "/proc/self/cwd"), file("p/x", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, err := unpackBytes(t, testtar.Archive(t, c...), DefaultLimits)
			if !errors.Is(err, backend.ErrImageInvalid) {
				t.Errorf("got %v, want backend.ErrImageInvalid", err)
			}
			if out, _ := os.ReadDir(filepath.Dir(dir)); len(out) != 1 {
				t.Errorf("beside the layer there is %v, want len(out) = 1", out)
			}
		})
	}
	_, _, err := unpackBytes(t, []byte(strings.Repeat("not a tar", 200)), DefaultLimits)
	if !errors.Is(err, backend.ErrImageInvalid) {
		t.Errorf("no tar: %v, want backend.ErrImageInvalid", err)
	}
}

func TestUnpackLimits(t *testing.T) {
	few := DefaultLimits
	few.Entries = 3
	if _, _, err := unpackBytes(t, testtar.Archive(t, file("a", ""), file("b/c/d", "")), few); !errors.Is(err, backend.ErrImageInvalid) {
		t.Errorf("directories that the tar only implies are not counted: %v, want backend.ErrImageInvalid", err)
	}
	small := DefaultLimits
	small.Bytes = 10
	if _, _, err := unpackBytes(t, testtar.Archive(t, file("a", "12345678"), file("b", "123")), small); !errors.Is(err, backend.ErrImageInvalid) {
		t.Errorf("bytes are not counted: %v, want backend.ErrImageInvalid", err)
	}
}

// Whatever the tar, nothing is made outside, and no special file inside.
func FuzzUnpack(f *testing.F) {
	for _, seed := range [][]testtar.Member{
		{file("a", "1"), directory("d"), testtar.Link("l", "d"), file("l/x", "2"), testtar.HardLink("h", "a")},
		{testtar.Link("up", "../.."), file("up/canary", "x")},
		{testtar.Link("abs", "/"), file("abs/canary", "x"), file(".wh.abs", "")},
		{directory("o"), file("o/.wh..wh..opq", ""), file("o/.wh.x", "")},
		{testtar.Member{Header: tar.Header{Typeflag: tar.TypeBlock, Name: "b"}}, testtar.HardLink("c", "b")},
	} {
		f.Add(testtar.Archive(f, seed...))
	}
	limits := Limits{Bytes: 1 << 20, Entries: 200, Layers: 1, Ratio: 250}
	f.Fuzz(func(t *testing.T, data []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "a", "b", "fs")
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := unpack(t.Context(), dir, bytes.NewReader(data), newBudget(limits))
		var outside []string
		walk := filepath.WalkDir(outer, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !strings.HasPrefix(p, dir) {
				outside = append(outside, strings.TrimPrefix(p, outer))
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Lstat(p, &st); err != nil {
				return err
			}
			if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeNamedPipe|fs.ModeSocket) != 0 ||
				info.Mode()&fs.ModeDevice != 0 && !isWhiteout(st) {
				t.Errorf("%q has mode %v, want no setuid, setgid, FIFO, socket, and no device but a whiteout", p, info.Mode())
			}
			return nil
		})
		if walk != nil {
			t.Errorf("walk: %v (unpack: %v), want nil", walk, err)
		}
		sort.Strings(outside)
		if got := strings.Join(outside, " "); got != " /a /a/b" {
			t.Errorf("outside there is %q, want \" /a /a/b\"", got)
		}
	})
}
