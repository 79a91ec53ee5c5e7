package ociimage

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// TestPush sends a commit to a registry with a password, and opens it from there.
func TestPush(t *testing.T) {
	var uploads atomic.Int64
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, ok := r.BasicAuth(); !ok || u != "me" || p != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if r.Method == http.MethodPatch {
				uploads.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	})
	s, other := newStore(t), newStore(t)
	img := resolve(t, s, testimage.Layout(t, map[string]v1.Image{"1": imageOf(t, v1.Config{User: "7"}, layerOf(t, file("a", "one")))}), Options{})
	l := newLayer(t)
	if err := l.Add(t.Context(), bytes.NewReader(testtar.Archive(t, file("b", "two"))), "/"); err != nil {
		t.Fatal(err)
	}
	made, id := commitTo(t, s, img, l)
	if _, err := Push(t.Context(), made, host+"/t/tools:2"); err == nil || !strings.Contains(err.Error(), "docker login") {
		t.Errorf("without a password: %v, want an error with docker login", err)
	}
	conf := `{"auths":{"` + host + `":{"username":"me","password":"secret"}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, err := Push(t.Context(), made, host+"/t/tools:2")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{host + "/t/tools:2", ref} {
		got := resolve(t, other, name, Options{})
		if got.ID != id.String() || got.Config.User != "7" || len(got.Layers) != 2 || read(t, got.Layers[1], "b") != "two" {
			t.Errorf("%s is %+v, want image %s with both layers", name, got, id)
		}
	}
	before := uploads.Load()
	if again, err := Push(t.Context(), made, host+"/t/tools:3"); err != nil || again != ref || uploads.Load() != before {
		t.Errorf("again: %s, %v, %d uploads, want %s and none", again, err, uploads.Load()-before, ref)
	}
}

func TestPushErrors(t *testing.T) {
	host := serve(t, nil)
	s := newStore(t)
	img := resolve(t, s, testimage.Layout(t, map[string]v1.Image{"1": imageOf(t, v1.Config{}, layerOf(t, file("a", "one")))}), Options{})
	made, _ := commitTo(t, s, img, newLayer(t))
	whole, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	onHost, err := OnHost(map[string]string{"/usr": "1"})
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if _, err := onHost.WriteWith(t.Context(), &written, newLayer(t), "/sandbox"); err != nil {
		t.Fatal(err)
	}
	layerless := write("x.tar", testtar.Archive(t, file("oci-layout", "{}"), file("index.json", `{"schemaVersion":2,"manifests":[]}`)))
	for name, c := range map[string]struct {
		file, to string
		want     error
	}{
		"no name":        {made, "UPPER CASE", backend.ErrInvalid},
		"a digest":       {made, host + "/x@sha256:" + strings.Repeat("0", 64), backend.ErrInvalid},
		"no file":        {"/nonexistent.tar", host + "/x:1", backend.ErrImageNotFound},
		"no tar":         {write("y.tar", []byte("text")), host + "/x:1", backend.ErrImageInvalid},
		"half a tar":     {write("h.tar", whole[:len(whole)/2]), host + "/x:1", backend.ErrImageInvalid},
		"no image":       {layerless, host + "/x:1", backend.ErrImageInvalid},
		"no root":        {write("r.tar", written.Bytes()), host + "/x:1", backend.ErrImageInvalid},
		"a changed blob": {write("z.tar", bytes.Replace(whole, []byte(`"architecture"`), []byte(`"architecturf"`), 1)), host + "/x:1", backend.ErrImageInvalid},
	} {
		if ref, err := Push(t.Context(), c.file, c.to); !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v, want %v", name, ref, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Push(ctx, made, host+"/x:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
}
