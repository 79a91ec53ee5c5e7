package ociimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func TestLayout(t *testing.T) {
	one := imageOf(t, v1.Config{}, layerOf(t, file("a", "one")))
	two := imageOf(t, v1.Config{}, layerOf(t, file("a", "two")))
	single := testimage.Layout(t, map[string]v1.Image{"1": one})
	both := testimage.Layout(t, map[string]v1.Image{"1": one, "2": two})
	s := newStore(t)
	for ref, want := range map[string]string{
		single: "one", single + ":1": "one", both + ":1": "one", both + ":2": "two", "oci:" + both + ":2": "two",
	} {
		for range 2 { // the second time out of the store
			if got := read(t, resolve(t, s, ref, Options{}).Layers[0], "a"); got != want {
				t.Errorf("%s has %q, want %q", ref, got, want)
			}
		}
	}
	for ref, text := range map[string]string{both: "several", both + ":3": "tagged", "docker-archive:" + both: "not a file"} {
		if _, err := s.Resolve(t.Context(), ref, Options{}); !errors.Is(err, backend.ErrImageNotFound) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want backend.ErrImageNotFound, an error containing %q", ref, err, text)
		}
	}
	t.Chdir(filepath.Dir(single))
	if _, err := s.Resolve(t.Context(), filepath.Base(single), Options{}); !errors.Is(err, backend.ErrImageNotFound) || !strings.Contains(err.Error(), "docker://") {
		t.Errorf("a name that is also a directory: %v, want backend.ErrImageNotFound, an error containing \"docker://\"", err)
	}
}

func TestLayoutDamaged(t *testing.T) {
	img := imageOf(t, v1.Config{}, layerOf(t, file("a", "one")))
	layers, _ := img.Layers()
	digest, _ := layers[0].Digest()
	for name, damage := range map[string]func(blob string) error{
		"gone":        os.Remove,
		"changed":     func(p string) error { return os.WriteFile(p, []byte("something else"), 0o644) },
		"a link":      func(p string) error { os.Remove(p); return os.Symlink("/etc/passwd", p) },
		"a directory": func(p string) error { os.Remove(p); return os.Mkdir(p, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := testimage.Layout(t, map[string]v1.Image{"1": img})
			if err := damage(filepath.Join(dir, "blobs/sha256", digest.Hex)); err != nil {
				t.Fatal(err)
			}
			s := newStore(t)
			_, err := s.Resolve(t.Context(), dir, Options{})
			if !errors.Is(err, backend.ErrImageInvalid) && !errors.Is(err, backend.ErrImageNotFound) {
				t.Errorf("got %v, want backend.ErrImageInvalid or backend.ErrImageNotFound", err)
			}
			if n := tempLeft(t, s); n != 0 {
				t.Errorf("%d files are left in tmp, want 0", n)
			}
		})
	}
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestArchive(t *testing.T) {
	img := imageOf(t, v1.Config{Env: []string{"A=1"}}, layerOf(t, file("a", "one")), layerOf(t, file("b", "two")))
	saved := testimage.Save(t, "127.0.0.1:1/x:1", img)
	data, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), "x.tar.gz")
	if err := os.WriteFile(packed, gz(t, data), 0o644); err != nil {
		t.Fatal(err)
	}
	oci := filepath.Join(t.TempDir(), "oci.tar")
	dir := testimage.Layout(t, map[string]v1.Image{"1": img})
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := os.WriteFile(oci, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{saved, saved + ":127.0.0.1:1/x:1", "docker-archive:" + saved, packed, oci, oci + ":1"} {
		s := newStore(t)
		for range 2 {
			i := resolve(t, s, ref, Options{})
			if read(t, i.Layers[0], "a") != "one" || read(t, i.Layers[1], "b") != "two" || i.Config.Env[0] != "A=1" {
				t.Errorf("%s has other content, want read(t, i.Layers[0], \"a\") = \"one\", read(t, i.Layers[1], \"b\") = \"two\", i.Config.Env[0] = \"A=1\"", ref)
			}
		}
		if n := tempLeft(t, s); n != 0 {
			t.Errorf("%s: %d files are left in tmp, want 0", ref, n)
		}
	}
	s := newStore(t)
	if _, err := s.Resolve(t.Context(), saved+":other", Options{}); !errors.Is(err, backend.ErrImageNotFound) {
		t.Errorf("another tag: %v, want backend.ErrImageNotFound", err)
	}
	for name, data := range map[string][]byte{
		"text": []byte("hello"), "cut": data[:len(data)/2], "empty": nil, "gzcut": gz(t, data)[:100], "other": testtar.Archive(t, file("x", "y")),
	} {
		p := filepath.Join(t.TempDir(), name+".tar")
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resolve(t.Context(), "docker-archive:"+p, Options{}); !errors.Is(err, backend.ErrImageInvalid) {
			t.Errorf("%s: %v, want backend.ErrImageInvalid", name, err)
		}
	}
	// The file is another one now.
	if err := os.WriteFile(saved, gz(t, data), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := parseRef(saved)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.lookup(r, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}); !errors.Is(err, backend.ErrImageNotFound) {
		t.Errorf("a changed tar was taken from the store: %v, want backend.ErrImageNotFound", err)
	}
}

func TestZstdLayer(t *testing.T) {
	data := testtar.Archive(t, file("a", "zstd"))
	enc, _ := zstd.NewWriter(nil)
	host := serve(t, nil)
	img := imageOf(t, v1.Config{}, diffed{static.NewLayer(enc.EncodeAll(data, nil), types.OCILayerZStd), digestOf(data)})
	push(t, host+"/x", img)
	if got := read(t, resolve(t, newStore(t), host+"/x", Options{}).Layers[0], "a"); got != "zstd" {
		t.Errorf("got %q, want \"zstd\"", got)
	}
}

// diffed is a layer with the digest of its uncompressed bytes.
type diffed struct {
	v1.Layer
	id v1.Hash
}

func (d diffed) DiffID() (v1.Hash, error) { return d.id, nil }

func TestDecompressionBombs(t *testing.T) {
	zeros := testtar.Archive(t, file("zeros", strings.Repeat("\x00", 100<<20)))
	enc, _ := zstd.NewWriter(nil)
	huge := gz(t, sparse(t, 1<<40))
	for name, c := range map[string]struct {
		blob []byte
		id   v1.Hash
	}{
		"gzip": {gz(t, zeros), digestOf(zeros)},
		"zstd": {enc.EncodeAll(zeros, nil), digestOf(zeros)},
		"size": {huge, digestOf(nil)},
	} {
		s := newStore(t)
		l := layer{diffID: c.id, digest: digestOf(c.blob), size: int64(len(c.blob)), open: opens(c.blob)}
		if err := s.prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.install(t.Context(), l, newBudget(s.Limits), nil); !errors.Is(err, backend.ErrImageInvalid) {
			t.Errorf("%s: %v, want backend.ErrImageInvalid", name, err)
		}
		if n := tempLeft(t, s); n != 0 {
			t.Errorf("%s: %d files are left in tmp, want 0", name, n)
		}
	}
}

// sparse is a tar whose one file says it has size bytes, and has none.
func sparse(t testing.TB, size int64) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := tar.NewWriter(&buf).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: size, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func opens(data []byte) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}
