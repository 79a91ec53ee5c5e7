package transfer

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// repacked are the members of an archive once it was written anew.
func repacked(t testing.TB, data []byte, o Options) (members []tar.Header, res Result, err error) {
	t.Helper()
	var out bytes.Buffer
	if err := repack(bytes.NewReader(data), &out, o.withDefaults(), &res); err != nil {
		return nil, res, err
	}
	for tr := tar.NewReader(&out); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return members, res, nil
		}
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if n, err := io.Copy(io.Discard, tr); err != nil || n != h.Size {
			t.Fatalf("%q: got %d bytes, %v, want %d", h.Name, n, err, h.Size)
		}
		members = append(members, tar.Header{Name: h.Name, Typeflag: h.Typeflag, Mode: h.Mode, Size: h.Size, Uid: h.Uid, Uname: h.Uname, Linkname: h.Linkname})
	}
}

// TestRepack: of a hostile archive come files and directories with safe names, and nothing else of their headers.
func TestRepack(t *testing.T) {
	got, res, err := repacked(t, archive(
		tar.Header{Name: "./a//b", Typeflag: tar.TypeReg, Size: 3, Mode: 0o7777, Uid: 1, Uname: "root"}, tar.Header{Name: "d", Typeflag: tar.TypeDir, Mode: 0o1007},
		regular("/absolute"), regular("../up"), regular("a/../../up"), regular("."), tar.Header{Name: "./", Typeflag: tar.TypeDir},
		tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		tar.Header{Name: "device", Typeflag: tar.TypeBlock, Devmajor: 8}, regular("new\nline"), regular("bad\xff"), regular(strings.Repeat("long/", 60)+"x"),
	), Options{})
	want := []tar.Header{
		{Name: "a/b", Typeflag: tar.TypeReg, Size: 3, Mode: 0o755}, {Name: "d/", Typeflag: tar.TypeDir, Mode: 0o705 | 0o600},
		{Name: "new\nline", Typeflag: tar.TypeReg, Size: 3, Mode: 0o600}, {Name: "bad\xff", Typeflag: tar.TypeReg, Size: 3, Mode: 0o600},
		{Name: strings.Repeat("long/", 60) + "x", Typeflag: tar.TypeReg, Size: 3, Mode: 0o600},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || res.Files != 4 || res.Bytes != 12 || len(res.Skipped) != 7 {
		t.Errorf("got %+v, %v, want four files and seven members left out (-want +got):\n%s", res, err, diff)
	}
	for name, test := range map[string]struct {
		data []byte
		o    Options
		want error
	}{
		"more bytes":   {archive(regular("a"), regular("b")), Options{MaxBytes: 5}, tarcheck.ErrTooLarge},
		"more members": {archive(regular("a"), regular("b")), Options{MaxFiles: 1}, tarcheck.ErrTooLarge},
		"cut off":      {archive(regular("a"))[:600], Options{}, tarcheck.ErrDamaged},
		"none":         {[]byte(strings.Repeat("x", 1024)), Options{}, tarcheck.ErrDamaged},
		"empty":        {nil, Options{}, tarcheck.ErrDamaged},
	} {
		if _, _, err := repacked(t, test.data, test.o); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

// FuzzRepack: whatever the sandbox sends, what is written is an archive of files and directories with safe names, within the limits.
func FuzzRepack(f *testing.F) {
	f.Add(archive(regular("a"), tar.Header{Name: "d/", Typeflag: tar.TypeDir}))
	f.Add(archive(regular("../up"), tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}))
	f.Add(pax("15 path=deep/x\n"))
	f.Add(pax("23 mtime=99999999999.5\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const maxBytes, maxFiles = 1 << 16, 100
		members, _, err := repacked(t, data, Options{MaxBytes: maxBytes, MaxFiles: maxFiles})
		if err != nil {
			return
		}
		bytes := int64(0)
		for _, m := range members {
			bytes += m.Size
			path, err := tarcheck.Split(m.Name)
			if err != nil || len(path) == 0 || m.Typeflag != tar.TypeReg && m.Typeflag != tar.TypeDir || m.Mode&^0o755 != 0 || m.Linkname != "" {
				t.Errorf("got %+v, %v, want a file or directory with a safe name", m, err)
			}
		}
		if len(members) > maxFiles || bytes > maxBytes {
			t.Errorf("got %d members and %d bytes, want at most %d and %d", len(members), bytes, maxFiles, maxBytes)
		}
	})
}
