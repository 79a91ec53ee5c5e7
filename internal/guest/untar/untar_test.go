//go:build linux

package untar

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

var made = time.Date(2001, 2, 3, 4, 5, 6, 700000000, time.UTC)

const maxMembers, maxBytes = 100, 1 << 16

func file(name, content string, mode int64) testtar.Member {
	m := testtar.File(name, content, mode)
	m.ModTime = made
	return m
}

// tree lists what is below a directory: mode and content, or a link's target.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, what := strings.TrimPrefix(path, dir+"/"), ""
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what = string(data)
		case d.Type()&fs.ModeSymlink != 0:
			if what, err = os.Readlink(path); err != nil {
				return err
			}
			found[name] = "-> " + what
			return nil
		}
		found[name] = strings.TrimSpace(fmt.Sprint(info.Mode(), " ", what))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestUnpack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	data := testtar.Archive(t,
		testtar.Dir("0/", 0o755), testtar.Dir("0/bin/", 0o711), testtar.Dir("./", 0o700),
		file("0/bin/tool", "#!", 0o6755), file("0/secret", "s", 0o000), file("deep/er/file", "x", 0o640),
		testtar.Dir("deep/", 0o500), // after what is in it
		file("deep/late", "y", 0o444),
		testtar.Link("0/up", "../../../etc/passwd"), testtar.Link("0/abs", "/proc/self/exe"), testtar.Link("0/bin/rel", "tool"),
		testtar.HardLink("1/same", "0/bin/tool"), testtar.HardLink("0/bin/also", "./0/bin/tool"), testtar.HardLink("top", "deep/late"),
		file("empty", "", 0o644), file(strings.Repeat("n", 200), "long", 0o644),
	)
	if err := Layers(bytes.NewReader(data), dir, maxMembers, maxBytes); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"0": "drwxr-xr-x", "0/bin": "drwx--x--x", "1": "drwxr-xr-x", "deep": "drwx------", "deep/er": "drwxr-xr-x",
		"0/bin/tool": "-rwxr-xr-x #!", "0/bin/also": "-rwxr-xr-x #!", "1/same": "-rwxr-xr-x #!", "0/secret": "-r-------- s",
		"deep/er/file": "-rw-r----- x", "deep/late": "-r--r--r-- y", "top": "-r--r--r-- y", "empty": "-rw-r--r--",
		"0/up": "-> ../../../etc/passwd", "0/abs": "-> /proc/self/exe", "0/bin/rel": "-> tool", strings.Repeat("n", 200): "-rw-r--r-- long",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(dir, "0/bin/tool")); err != nil || !info.ModTime().Equal(made) {
		t.Errorf("%v, %v, want the time %v", info, err, made)
	}
	one, err := os.Stat(filepath.Join(dir, "0/bin/tool"))
	other, err2 := os.Stat(filepath.Join(dir, "1/same"))
	if err != nil || err2 != nil || !os.SameFile(one, other) {
		t.Errorf("a hard link is a file of its own: %v, %v, want no error, os.SameFile(one, other) = true", err, err2)
	}
}

// TestUnpackEndsWithTheArchive: the sender of the stream may keep it open.
func TestUnpackEndsWithTheArchive(t *testing.T) {
	r, w := io.Pipe()
	data := testtar.Archive(t, file("a", "x", 0o644))
	go func() {
		// An error means that Unpack failed, which the test says.
		_, _ = w.Write(data)
	}()
	defer r.Close()
	dir := t.TempDir()
	if err := Layers(r, dir, maxMembers, maxBytes); err != nil {
		t.Error(err)
	}
	if got := tree(t, dir); got["a"] != "-rw-r--r-- x" {
		t.Errorf("unpacked %v, want got[\"a\"] = \"-rw-r--r-- x\"", got)
	}
}

func TestUnpackRefuses(t *testing.T) {
	many := make([]testtar.Member, maxMembers+1)
	for i := range many {
		many[i] = testtar.Dir("d/", 0o755)
	}
	for name, c := range map[string]struct {
		members []testtar.Member
		says    string
	}{
		"parent":                     {[]testtar.Member{file("../canary", "x", 0o644)}, ".."},
		"parent in the middle":       {[]testtar.Member{testtar.Dir("a/", 0o755), file("a/../../canary", "x", 0o644)}, ".."},
		"parent as a folder":         {[]testtar.Member{testtar.Dir("..", 0o777)}, ".."},
		"absolute":                   {[]testtar.Member{file("/canary", "x", 0o644)}, "absolute"},
		"no name":                    {[]testtar.Member{testtar.Link("./.", "x")}, "no name"},
		"a device":                   {[]testtar.Member{{Header: tar.Header{Typeflag: tar.TypeChar, Name: "d"}}}, "neither"},
		"a fifo":                     {[]testtar.Member{{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "d"}}}, "neither"},
		"through a link":             {[]testtar.Member{testtar.Link("l", ".."), file("l/canary", "x", 0o644)}, "not a directory"},
		"through a link to within":   {[]testtar.Member{testtar.Dir("d/", 0o755), testtar.Link("l", "d"), file("l/f", "x", 0o644)}, "not a directory"},
		"a folder over a link":       {[]testtar.Member{testtar.Link("l", ".."), testtar.Dir("l/", 0o777)}, "not a directory"},
		"a folder over a file":       {[]testtar.Member{file("f", "x", 0o644), testtar.Dir("f/", 0o777)}, "not a directory"},
		"a file over a link":         {[]testtar.Member{testtar.Link("l", "../canary"), file("l", "x", 0o644)}, "exists"},
		"a file twice":               {[]testtar.Member{file("f", "x", 0o644), file("f", "y", 0o644)}, "exists"},
		"a link over a file":         {[]testtar.Member{file("f", "x", 0o644), testtar.Link("f", "..")}, "exists"},
		"a link made below a link":   {[]testtar.Member{testtar.Link("l", ".."), testtar.Link("l/canary", "x")}, "not a directory"},
		"a link to nothing":          {[]testtar.Member{testtar.Link("l", strings.Repeat("x", 5000))}, "no path"},
		"a hard link out":            {[]testtar.Member{testtar.HardLink("h", "../canary")}, ".."},
		"an absolute hard link":      {[]testtar.Member{testtar.HardLink("h", "/etc/passwd")}, "absolute"},
		"a hard link to a link":      {[]testtar.Member{testtar.Link("l", "../canary"), testtar.HardLink("h", "l")}, "no regular file"},
		"a hard link through a link": {[]testtar.Member{testtar.Link("l", ".."), testtar.HardLink("h", "l/canary")}, "not a directory"},
		"a hard link to a folder":    {[]testtar.Member{testtar.Dir("d/", 0o755), testtar.HardLink("h", "d")}, "no regular file"},
		"a hard link to nothing":     {[]testtar.Member{testtar.HardLink("h", "gone")}, "no such file"},
		"files without end":          {many, "more than 100 files"},
		"bytes without end":          {[]testtar.Member{file("a", strings.Repeat("x", 1<<15), 0o644), file("b", strings.Repeat("x", 1<<15+1), 0o644)}, "more than 65536 bytes"},
		"folders without end":        {[]testtar.Member{file(strings.Repeat("d/", tarcheck.MaxDepth)+"f", "x", 0o644)}, "deeper"},
		"a name without end":         {[]testtar.Member{file(strings.Repeat("d", tarcheck.MaxName+1), "x", 0o644)}, "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			dir := filepath.Join(around, "in")
			if err := os.WriteFile(filepath.Join(around, "canary"), []byte("safe"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Layers(bytes.NewReader(testtar.Archive(t, c.members...)), dir, maxMembers, maxBytes)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
			untouched(t, around)
		})
	}
}

// untouched makes sure that around has only the directory in and the canary, as it was.
func untouched(t testing.TB, around string) {
	t.Helper()
	entries, err := os.ReadDir(around)
	if err != nil || len(entries) != 2 {
		t.Fatalf("outside are %v, %v, want no error, len(entries) = 2", entries, err)
	}
	info, err := os.Stat(filepath.Join(around, "canary"))
	data, err2 := os.ReadFile(filepath.Join(around, "canary"))
	if err != nil || err2 != nil || string(data) != "safe" || info.Mode() != 0o600 {
		t.Fatalf("the canary is %q, %v, %v, %v, want no error, data = \"safe\", Mode = 0o600", data, info.Mode(), err, err2)
	}
}

// TestUnpackCutOff: wherever a stream is cut, a part is never taken for the whole.
func TestUnpackCutOff(t *testing.T) {
	whole := testtar.Archive(t, file("zeros", strings.Repeat("\x00", 1024), 0o644), testtar.Dir("d/", 0o755), file("d/a", "x", 0o644))
	for n := 0; n < len(whole); n += 256 {
		if err := Layers(bytes.NewReader(whole[:n]), t.TempDir(), maxMembers, maxBytes); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut to %d of %d bytes: %v, want io.ErrUnexpectedEOF", n, len(whole), err)
		}
	}
}

func TestUnpackNeedsAnEmptyDir(t *testing.T) {
	data := testtar.Archive(t, file("a", "x", 0o644))
	around := t.TempDir()
	target := filepath.Join(around, "target")
	if err := errors.Join(os.Mkdir(target, 0o755), os.Symlink(target, filepath.Join(around, "link")), os.WriteFile(filepath.Join(around, "file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "file", "missing/folder", "."} {
		if err := Layers(bytes.NewReader(data), filepath.Join(around, name), maxMembers, maxBytes); err == nil {
			t.Errorf("%s was taken, want an error", name)
		}
	}
	if left := tree(t, target); len(left) != 0 {
		t.Errorf("unpacked through a link: %v, want none", left)
	}
	if err := Layers(bytes.NewReader(data), target, maxMembers, maxBytes); err != nil {
		t.Error(err)
	}
	if err := Layers(bytes.NewReader(data), target, maxMembers, maxBytes); err == nil {
		t.Error("unpacked over another archive: got no error, want an error")
	}
}

// TestUnpackLeaksNoDescriptors, whatever ends it.
func TestUnpackLeaksNoDescriptors(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	good := testtar.Archive(t, file("a/b/c", "x", 0o644), testtar.HardLink("h", "a/b/c"), file("d/e", "x", 0o644))
	bad := testtar.Archive(t, file("a/b/c", "x", 0o644), testtar.Link("a/l", "b"), testtar.HardLink("h", "a/l/c"))
	before := count()
	for range 10 {
		if err := Layers(bytes.NewReader(good), filepath.Join(t.TempDir(), "in"), maxMembers, maxBytes); err != nil {
			t.Fatal(err)
		}
		if err := Layers(bytes.NewReader(bad), filepath.Join(t.TempDir(), "in"), maxMembers, maxBytes); err == nil {
			t.Fatal("taken: got no error, want an error")
		}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}
