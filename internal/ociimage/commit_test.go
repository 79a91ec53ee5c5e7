package ociimage

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func newLayer(t *testing.T) *Layer {
	t.Helper()
	l, err := NewLayer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func deletion(name string) testtar.Member {
	return testtar.Member{Header: tar.Header{Typeflag: tar.TypeChar, Name: name}}
}

func replacement(name string) testtar.Member {
	return testtar.Member{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, PAXRecords: map[string]string{tarcheck.OpaqueRecord: "y"}}}
}

// commitTo writes an image of what ref names and the layer to a file.
func commitTo(t *testing.T, s *Store, img *Image, l *Layer) (file string, id v1.Hash) {
	t.Helper()
	base, err := s.Outside(t.Context(), Origin{img.Name, img.Digest, img.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	var out bytes.Buffer
	if id, err = base.WriteWith(t.Context(), &out, l, "/sandbox"); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "made.tar")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, id
}

// TestCommit adds a layer to images whose layers are packed in all ways, which stay as they are.
func TestCommit(t *testing.T) {
	enc, _ := zstd.NewWriter(nil)
	plain := testtar.Archive(t, file("a", "one"), file("gone", ""), directory("d"), file("d/old", ""))
	config := v1.Config{User: "7", ExposedPorts: map[string]struct{}{"80/tcp": {}}}
	host := serve(t, nil)
	push(t, host+"/x", imageOf(t, config, diffed{static.NewLayer(enc.EncodeAll(plain, nil), types.OCILayerZStd), digestOf(plain)}))
	gzipped := imageOf(t, config, layerOf(t, file("a", "one"), file("gone", ""), directory("d"), file("d/old", "")))
	for name, ref := range map[string]string{
		"gzip":  testimage.Layout(t, map[string]v1.Image{"1": gzipped}),
		"saved": testimage.Save(t, "tools:1", gzipped),
		"zstd":  host + "/x",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			img := resolve(t, s, ref, Options{})
			l := newLayer(t)
			l.Deletions = true
			if err := l.Add(t.Context(), bytes.NewReader(testtar.Archive(t, deletion("gone"), replacement("d/"), file("d/new", "n"), file("top", "t"))), "/"); err != nil {
				t.Fatal(err)
			}
			made, id := commitTo(t, s, img, l)
			got := resolve(t, s, made, Options{})
			if got.ID != id.String() || len(got.Layers) != len(img.Layers)+1 || got.Layers[0] != img.Layers[0] || got.Config.Labels[CommittedLabel] != "/sandbox" || got.Config.User != "7" {
				t.Errorf("got %+v of %+v, want its layers, one more, and the label", got, img)
			}
			var tree bytes.Buffer
			if err := got.WriteTree(t.Context(), "/", &tree); err != nil {
				t.Fatal(err)
			}
			names := list(t, &tree)
			slices.Sort(names)
			if diff := cmp.Diff([]string{"a one", "d/", "d/new n", "top t"}, names); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
			out, err := s.Outside(t.Context(), Origin{got.Name, got.Digest, got.ID})
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			if base, err := s.Outside(t.Context(), Origin{img.Name, img.Digest, img.ID}); err != nil || name == "gzip" && base.Layers[0].layer.digest != out.Layers[0].layer.digest {
				t.Errorf("%v, the base's layer is another one, want its bytes", err)
			} else {
				base.Close()
			}
			var config struct {
				Config  struct{ ExposedPorts map[string]struct{} }
				History []json.RawMessage
			}
			if err := json.Unmarshal(out.Config, &config); err != nil || len(config.Config.ExposedPorts) != 1 || len(config.History) != 2 {
				t.Errorf("%v, %s, want the port and two steps", err, out.Config)
			}
		})
	}
}

// list is what a tar holds, sorted by its writer or not at all: as "name content", "name -> target" or "name/".
func list(t *testing.T, r io.Reader) (names []string) {
	t.Helper()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			b, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimSpace(h.Name+" "+string(b)))
		case tar.TypeSymlink:
			names = append(names, h.Name+" -> "+h.Linkname)
		default:
			names = append(names, h.Name)
		}
	}
}

// TestLayer shows what becomes of the members of tars, in the layer's own order.
func TestLayer(t *testing.T) {
	l := newLayer(t)
	l.Deletions = true
	if err := l.Add(t.Context(), bytes.NewReader(testtar.Archive(t, directory("b"), testtar.Link("b/l", "/etc/passwd"), replacement("a/"), deletion("b/gone"),
		file("b/.wh.x", ""), file(".wh..wh..opq", ""), directory(".wh.d"), file(".wh.d/f", ""), testtar.File("a/f", "x", 0o6755),
		testtar.Member{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "p"}}, testtar.Member{Header: tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}})), "/"); err != nil {
		t.Fatal(err)
	}
	l.Deletions, l.UID = false, 7
	if err := l.Add(t.Context(), bytes.NewReader(testtar.Archive(t, directory("w"), file("w/f", "y"), deletion("w/d"))), "/w"); err != nil {
		t.Fatal(err)
	}
	l.Replace("/w")
	var out bytes.Buffer
	if err := l.write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/", "a/.wh..wh..opq", "a/f x", "b/", "b/.wh.gone", "b/l -> /etc/passwd", "w/", "w/.wh..wh..opq", "w/f y"}, list(t, bytes.NewReader(out.Bytes()))); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if len(l.Skipped) != 7 {
		t.Errorf("left out are %q, want 7", l.Skipped)
	}
	for in := tar.NewReader(&out); ; {
		h, err := in.Next()
		if err != nil {
			break
		}
		if want := map[bool]int{true: 7}[strings.HasPrefix(h.Name, "w/")]; h.Mode&0o6000 != 0 || h.Uid != want || !h.ModTime.Equal(layerTime) {
			t.Errorf("%+v, want no set-id bits, uid %d and the time %v", h, want, layerTime)
		}
	}
}

// TestLayerRefuses tars that would write elsewhere, in the order of their members or in the layer's.
func TestLayerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		dir     string
		members []testtar.Member
	}{
		"a name that leads out":            {"/", []testtar.Member{file("../f", "")}},
		"a name beside the directory":      {"/w", []testtar.Member{file("wf", "")}},
		"a file below a link":              {"/", []testtar.Member{testtar.Link("l", "/etc"), file("l/f", "")}},
		"a file below a later link":        {"/", []testtar.Member{file("l/f", ""), testtar.Link("l", "/etc")}},
		"a deletion below a link":          {"/", []testtar.Member{testtar.Link("l", "/etc"), deletion("l/f")}},
		"a file below a deletion":          {"/", []testtar.Member{deletion("l"), file("l/f", "")}},
		"a name twice":                     {"/", []testtar.Member{file("f", ""), deletion("f")}},
		"a hard link to another layer":     {"/", []testtar.Member{testtar.HardLink("h", "etc/shadow")}},
		"a link in place of the top":       {"/w", []testtar.Member{testtar.Link("w", "/etc")}},
		"more bytes than there may be":     {"/", []testtar.Member{file("f", strings.Repeat("x", 600)), file("g", strings.Repeat("x", 600))}},
		"a deletion outside of the folder": {"/w", []testtar.Member{deletion("etc/passwd")}},
	} {
		l := newLayer(t)
		l.Deletions, l.MaxBytes = true, 1000
		err := l.Add(t.Context(), bytes.NewReader(testtar.Archive(t, c.members...)), c.dir)
		if err == nil {
			err = l.write(t.Context(), io.Discard)
		}
		if !errors.Is(err, backend.ErrImageInvalid) {
			t.Errorf("%s: %v, want backend.ErrImageInvalid", name, err)
		}
	}
}

// TestOutside finds an image where any of its names still means it, and fails where none does.
func TestOutside(t *testing.T) {
	s := newStore(t)
	img := imageOf(t, v1.Config{}, layerOf(t, file("a", "one")))
	first, second := testimage.Save(t, "tools:1", img), testimage.Save(t, "tools:2", img)
	one := resolve(t, s, first, Options{})
	from := Origin{one.Name, one.Digest, one.ID}
	resolve(t, s, second, Options{})
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Origin{from, {one.ID, one.ID, one.ID}} {
		out, err := s.Outside(t.Context(), o)
		if err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		out.Close()
	}
	data, err := os.ReadFile(testimage.Save(t, "tools:1", imageOf(t, v1.Config{}, layerOf(t, file("a", "two")))))
	if err == nil {
		err = errors.Join(os.WriteFile(first, data, 0o600), os.Remove(second))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Outside(t.Context(), from); !errors.Is(err, backend.ErrImageNotFound) || !strings.Contains(err.Error(), "another image by now") {
		t.Errorf("%v, want backend.ErrImageNotFound and why", err)
	}
}

// TestWriteTree shows a directory as an overlay of the layers would.
func TestWriteTree(t *testing.T) {
	s := newStore(t)
	img := imageOf(t, v1.Config{},
		layerOf(t, directory("w"), file("w/base", "b"), file("w/gone", ""), directory("w/d"), file("w/d/hidden", ""), directory("w/f"), file("w/f/hidden", ""), directory("w/both"), file("w/both/low", "l"), file("w/dir", "")),
		layerOf(t, file("w/.wh.gone", ""), directory("w/d"), file("w/d/.wh..wh..opq", ""), file("w/d/new", "n"), file("w/f", "file"), testtar.Link("w/l", "/etc"), file("w/both/high", "h"), directory("w/dir"), file("w/dir/in", "i")),
		layerOf(t, file("w/base", "B")),
	)
	got := resolve(t, s, testimage.Save(t, "tools:1", img), Options{})
	var tree bytes.Buffer
	if err := got.WriteTree(t.Context(), "/w", &tree); err != nil {
		t.Fatal(err)
	}
	names := list(t, &tree)
	slices.Sort(names)
	if diff := cmp.Diff([]string{"base B", "both/", "both/high h", "both/low l", "d/", "d/new n", "dir/", "dir/in i", "f file", "l -> /etc"}, names); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	for _, dir := range []string{"/none", "/w/l", "/w/base", "/w/../w"} {
		if err := got.WriteTree(t.Context(), dir, io.Discard); !errors.Is(err, backend.ErrImageInvalid) {
			t.Errorf("%s: %v, want backend.ErrImageInvalid", dir, err)
		}
	}
}
