package engine

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/moby/moby/api/types/volume"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestWithoutTop has the streams of both engines.
func TestWithoutTop(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		want  []string
		fails bool
	}{
		"docker":         {[]string{".llmsandbox/", ".llmsandbox/bin/", ".llmsandbox/bin/x"}, []string{"bin/", "bin/x"}, false},
		"podman":         {[]string{"/", "/bin", "/bin/x"}, []string{"bin/", "bin/x"}, false},
		"dots":           {[]string{"./", "./bin/"}, []string{"bin/"}, false},
		"an empty layer": {[]string{"/"}, nil, false},
		"another folder": {[]string{"a/", "b/x"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var in, out bytes.Buffer
			tw := tar.NewWriter(&in)
			for _, name := range c.names {
				h := tar.Header{Name: name, Typeflag: tar.TypeDir}
				if name[len(name)-1] == 'x' {
					h.Typeflag, h.Size = tar.TypeReg, 4
				}
				if err := tw.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if h.Size > 0 {
					tw.Write([]byte("data"))
				}
			}
			if err := tw.Close(); err != nil {
				t.Fatal(err)
			}
			if err := withoutTop(&in, &out); (err != nil) != c.fails {
				t.Fatal(err)
			}
			var got []string
			for tr := tar.NewReader(&out); ; {
				h, err := tr.Next()
				if err != nil {
					break
				}
				got = append(got, h.Name)
				if data, err := io.ReadAll(tr); err != nil || h.Typeflag == tar.TypeReg && string(data) != "data" {
					t.Errorf("%s: %q, %v", h.Name, data, err)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestWholeLibraries: only what a mark names is kept by a collection.
func TestWholeLibraries(t *testing.T) {
	libraries := map[string]string{labelRole: roleLibraries}
	mark := map[string]string{labelRole: roleLibraries, labelLibraryVol: "llmsandbox-libraries-k-1"}
	whole := wholeLibraries([]volume.Volume{
		{Name: "llmsandbox-libraries-k", Labels: mark}, {Name: "llmsandbox-libraries-k-1", Labels: libraries},
		{Name: "llmsandbox-libraries-k-2", Labels: libraries}, {Name: "other"},
	})
	if len(whole) != 2 || !whole["llmsandbox-libraries-k"] || !whole["llmsandbox-libraries-k-1"] {
		t.Errorf("%v", whole)
	}
}

func TestNoLibrariesInAnExistingContainer(t *testing.T) {
	b := &Backend{options: Options{Container: "c"}}
	if err := b.NoLibraries(); !errors.Is(err, backend.ErrUnsupported) {
		t.Error(err)
	}
}
