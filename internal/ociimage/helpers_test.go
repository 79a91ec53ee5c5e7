package ociimage

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	reg "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func file(name, content string) testtar.Member { return testtar.File(name, content, 0o644) }
func directory(name string) testtar.Member     { return testtar.Dir(name, 0o755) }

func layerOf(t testing.TB, entries ...testtar.Member) v1.Layer {
	t.Helper()
	data := testtar.Archive(t, entries...)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf builds an image for this machine.
func imageOf(t testing.TB, c v1.Config, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cf = cf.DeepCopy()
	cf.OS, cf.Architecture, cf.Config = "linux", runtime.GOARCH, c
	img, err = mutate.ConfigFile(img, cf)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// serve runs a registry on loopback; wrap may change its handler.
func serve(t testing.TB, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	h := reg.New(reg.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func push(t testing.TB, ref string, img v1.Image, opts ...remote.Option) {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	tr := remote.DefaultTransport.(*http.Transport).Clone()
	defer tr.CloseIdleConnections()
	if err := remote.Write(r, img, append(opts, remote.WithTransport(tr))...); err != nil {
		t.Fatal(err)
	}
}

func newStore(t testing.TB) *Store {
	t.Helper()
	// The tests must not pull with the credentials of the user who runs them.
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return NewStore(filepath.Join(t.TempDir(), "store"))
}

func resolve(t testing.TB, s *Store, ref string, o Options) *Image {
	t.Helper()
	img, err := s.Resolve(t.Context(), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Release() })
	return img
}

func read(t testing.TB, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tempLeft is what is in the store's tmp.
func tempLeft(t testing.TB, s *Store) int {
	t.Helper()
	entries, err := os.ReadDir(s.path("tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
