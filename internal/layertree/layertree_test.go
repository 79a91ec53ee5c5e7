package layertree

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// archive makes a tar stream whose files hold four bytes.
func archive(t testing.TB, headers ...tar.Header) *bytes.Reader {
	t.Helper()
	return bytes.NewReader(testtar.Archive(t, testtar.Filled("data", headers...)...))
}

var bounds = Options{MaxBytes: 1 << 20, MaxFiles: 100}

func TestUnpackModesAndTimes(t *testing.T) {
	future := time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		shared bool
		want   map[string]os.FileMode
	}{
		"shared":  {true, map[string]os.FileMode{"00": os.ModeDir | 0o777, "deep/er": os.ModeDir | 0o777, "00/a": 0o666, "deep/er/b": 0o777}},
		"private": {false, map[string]os.FileMode{"00": os.ModeDir | 0o755, "deep/er": os.ModeDir | 0o755, "00/a": 0o644, "deep/er/b": 0o755}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, o := t.TempDir(), bounds
			o.Shared = c.shared
			err := Unpack(archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "00/", Mode: 0o700},
				tar.Header{Typeflag: tar.TypeReg, Name: "00/a", Mode: 0o600, ModTime: future},
				tar.Header{Typeflag: tar.TypeReg, Name: "deep/er/b", Mode: 0o4755}), dir, o)
			size, merr := Measure(dir)
			if want := (Size{Files: 5, Bytes: 8}); err != nil || merr != nil || size != want {
				t.Fatalf("%+v, %v, %v, want %+v", size, err, merr, want)
			}
			for name, want := range c.want {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil || info.Mode() != want {
					t.Errorf("%s: %v, %v, want mode %v", name, info, err, want)
				}
			}
			if info, err := os.Stat(filepath.Join(dir, "00/a")); err != nil || !info.ModTime().Equal(future) {
				t.Errorf("time %v, %v, want %v", info.ModTime(), err, future)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	many := make([]tar.Header, bounds.MaxFiles+1)
	for i := range many {
		many[i] = tar.Header{Typeflag: tar.TypeDir, Name: "d/"}
	}
	for name, c := range map[string]struct {
		links   bool
		headers []tar.Header
	}{
		"parent":                {headers: []tar.Header{file("../canary")}},
		"parent with links":     {links: true, headers: []tar.Header{file("../canary")}},
		"absolute":              {headers: []tar.Header{file("/canary")}},
		"symbolic link":         {headers: []tar.Header{link("l", "..")}},
		"hard link":             {links: true, headers: []tar.Header{{Typeflag: tar.TypeLink, Name: "l", Linkname: "../canary"}}},
		"device":                {links: true, headers: []tar.Header{{Typeflag: tar.TypeChar, Name: "d"}}},
		"twice":                 {headers: []tar.Header{file("a"), file("a")}},
		"a link over a file":    {links: true, headers: []tar.Header{file("a"), link("a", "..")}},
		"a link below a link":   {links: true, headers: []tar.Header{link("a", ".."), link("a/canary", "x")}},
		"a link outside":        {links: true, headers: []tar.Header{link("../canary", "x")}},
		"a link to nowhere":     {links: true, headers: []tar.Header{link("a", strings.Repeat("x", 5000))}},
		"files without end":     {headers: many},
		"folders without end":   {headers: []tar.Header{file(strings.Repeat("d/", 300) + "f")}},
		"names without end":     {headers: []tar.Header{file(strings.Repeat("d", 5000))}},
		"the folder by a link":  {links: true, headers: []tar.Header{link(".", ".."), file("../canary")}},
		"a file below the file": {links: true, headers: []tar.Header{file("a"), file("a/b")}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, o := t.TempDir(), bounds
			o.Links = c.links
			in := filepath.Join(dir, "in")
			if err := os.Mkdir(in, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Unpack(archive(t, c.headers...), in, o); err == nil {
				t.Error("taken: got no error, want an error")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("outside: %v, %v, want no error, len(entries) = 1", entries, err)
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		var buf bytes.Buffer
		if err := tar.NewWriter(&buf).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: bounds.MaxBytes + 1}); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(&buf, t.TempDir(), bounds); !errors.Is(err, tarcheck.ErrTooLarge) {
			t.Errorf("got %v, want tarcheck.ErrTooLarge", err)
		}
	})
}

// TestLinksAreData takes links that lead everywhere: nothing is written through them,
// whatever the order of the members, and they come out of Pack as they were.
func TestLinksAreData(t *testing.T) {
	dir := t.TempDir()
	in, again := filepath.Join(dir, "in"), filepath.Join(dir, "again")
	for _, d := range []string{in, again, filepath.Join(dir, "outside")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := bounds
	o.Links, o.At = true, "/tmp/layer"
	outside := filepath.Join(dir, "outside")
	err := Unpack(archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: outside},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/b", Linkname: "../a/x"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/up", Linkname: "../../b"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/far", Linkname: "../../../../../../etc/passwd"},
		tar.Header{Typeflag: tar.TypeReg, Name: "bin/c", Mode: 0o755}), in, o)
	if err != nil {
		t.Fatal(err)
	}
	// The member comes after the link that it would have been written through.
	if err := Unpack(archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: outside},
		tar.Header{Typeflag: tar.TypeReg, Name: "l/canary"}), again, o); err == nil {
		t.Error("a directory and a link of one name were taken: got no error, want an error")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside: %v, %v, want no error, no entries", entries, err)
	}
	var packed bytes.Buffer
	if err := Pack(t.Context(), in, "p/", &packed); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for tr := tar.NewReader(&packed); ; {
		h, err := tr.Next()
		if err != nil {
			break
		}
		got[h.Name] = h.Linkname
		if h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s belongs to %d %q, want Uid = 0, Uname empty", h.Name, h.Uid, h.Uname)
		}
	}
	want := map[string]string{"p/a": outside, "p/bin/": "", "p/bin/b": "../a/x", "p/bin/c": "", "p/bin/up": "/tmp/b", "p/bin/far": "/etc/passwd"}
	for name, target := range want {
		if have, ok := got[name]; !ok || have != target {
			t.Errorf("%s leads to %q, %v, want %q", name, have, ok, target)
		}
	}
	if len(got) != len(want) {
		t.Errorf("packed %v, want len(got) = %v", got, len(want))
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(testtar.Archive(f, testtar.Filled("data", tar.Header{Typeflag: tar.TypeDir, Name: "00/"}, tar.Header{Typeflag: tar.TypeReg, Name: "00/a"})...))
	f.Add(testtar.Archive(f, testtar.Filled("data", tar.Header{Typeflag: tar.TypeReg, Name: "../canary"})...))
	f.Add(testtar.Archive(f, testtar.Filled("data", tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: ".."}, tar.Header{Typeflag: tar.TypeReg, Name: "l/canary"})...))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		if err := os.Mkdir(in, 0o700); err != nil {
			t.Fatal(err)
		}
		o := bounds
		o.Links = len(data)%2 == 0
		_ = Unpack(bytes.NewReader(data), in, o)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Fatalf("outside: %v, %v, want no error, len(entries) = 1", entries, err)
		}
	})
}
