package engine

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
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
					t.Errorf("%s: %q, %v, want no error, Typeflag != TypeReg or data = \"data\"", h.Name, data, err)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestWholeVolumes: a collection keeps only what marks name, of layers and of our own agents,
// and no mark of what is gone.
func TestWholeVolumes(t *testing.T) {
	of := func(role, name string) map[string]string {
		return map[string]string{labelRole: role, labelVolume: name}
	}
	got := wholeVolumes([]volume.Volume{
		{Name: "k", Labels: of(roleLayer, "k-1")}, {Name: "k-1", Labels: of(roleLayer, "")}, {Name: "k-2", Labels: of(roleLayer, "")},
		{Name: "gone", Labels: of(roleLayer, "gone-1")}, {Name: "other"},
		{Name: "own", Labels: of(roleAgent, "own-1")}, {Name: "own-1", Labels: of(roleAgent, "")},
		{Name: "old", Labels: of(roleAgent, "old-1")}, {Name: "old-1", Labels: of(roleAgent, "")},
		{Name: "caller", Labels: of(roleVolume, "caller-1")}, {Name: "caller-1", Labels: of(roleVolume, "")}, {Name: "removed-1", Labels: of(roleVolume, "")},
	}, map[string]bool{"own": true})
	if want := map[string]bool{"caller": true, "caller-1": true, "k": true, "k-1": true, "own": true, "own-1": true}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNoLayersInAnExistingContainer(t *testing.T) {
	b := &Backend{options: Options{Container: "c"}}
	if l, err := b.Layers(); l != nil || !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("got %v, %v, want none and %v", l, err, backend.ErrUnsupported)
	}
}
