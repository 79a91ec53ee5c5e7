package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// What passes lies below the directory, through no link, and has no rights of its own.
func FuzzFilter(f *testing.F) {
	seed := func(list ...tar.Header) {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, h := range list {
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	seed(tar.Header{Typeflag: tar.TypeDir, Name: "sandbox/d", Mode: 0o7777}, tar.Header{Typeflag: tar.TypeReg, Name: "/sandbox/d/f"})
	seed(tar.Header{Typeflag: tar.TypeSymlink, Name: "sandbox/l", Linkname: "/etc"}, tar.Header{Typeflag: tar.TypeReg, Name: "sandbox/l/f"})
	seed(tar.Header{Typeflag: tar.TypeLink, Name: "sandbox/h", Linkname: "../etc/passwd"})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		_, err := filterTar(context.Background(), &out, bytes.NewReader(data), "/sandbox", 1, 2)
		if err != nil {
			if !errors.Is(err, backend.ErrImageInvalid) {
				t.Skip(err) // of the tar's body
			}
			return
		}
		links := map[string]bool{}
		for in := tar.NewReader(&out); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			name := path.Clean(h.Name)
			if name != "sandbox" && !strings.HasPrefix(name, "sandbox/") || h.Mode&^0o1777 != 0 || h.Uid != 1 || h.Gid != 2 {
				t.Errorf("passed %+v, want name = \"sandbox\" or name beginning with \"sandbox/\", h.Mode&^0o1777 = 0, Uid = 1, Gid = 2", h)
			}
			for up := name; up != "."; up = path.Dir(up) {
				if links[up] {
					t.Errorf("%s goes through a link, want none above it", name)
				}
			}
			if strings.Contains("/"+name, "/.wh.") {
				t.Errorf("passed %s, which deletes another name", name)
			}
			links[name] = h.Typeflag == tar.TypeSymlink
		}
	})
}
