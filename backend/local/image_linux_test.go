package local

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

func TestImage(t *testing.T) {
	b := newBackend(t)
	layout := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)})
	m := create(t, b, func(s *backend.Spec) {
		s.Image = layout + ":one"
		s.Layers = []backend.Layer{{Source: t.TempDir(), Target: "/opt/layer"}}
	})
	got := shell(t, m, "id -u; echo $FROM_IMAGE; ls /etc/gone 2>&1 >/dev/null | wc -l; ls /opt; echo x >/sandbox/x && cat /sandbox/x; (echo x >/x) 2>/dev/null || echo read-only; pwd")
	if want := "1000\nyes\n1\nlayer\nnew\nx\nread-only\n/sandbox\n"; got != want {
		t.Errorf("prints %q, not %q", got, want)
	}
	if g := m.Guest(); g.Host || g.Image == "host" || g.Image == "" {
		t.Errorf("guest is %+v, want Host false, Image != \"host\", Image not empty", g)
	}
}

// TestImageOfManyLayers has more directories than one option of fsconfig can name.
func TestImageOfManyLayers(t *testing.T) {
	img := testimage.Busybox(t, nil)
	const layers = 60
	for i := range layers {
		var err error
		if img, err = mutate.AppendLayers(img, oneFileLayer(t, fmt.Sprintf("opt/new%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	dir := testimage.Layout(t, map[string]v1.Image{"one": img})
	b := newBackend(t)
	m := create(t, b, func(s *backend.Spec) { s.Image = dir + ":one" })
	if got, want := shell(t, m, "ls /opt | wc -l; cat /opt/new59"), fmt.Sprintf("%d\nopt/new59", layers+1); got != want {
		t.Errorf("prints %q, not %q", got, want)
	}
	if got := shell(t, m, "cat /proc/self/mounts"); strings.Contains(got, b.options.CacheDir) {
		t.Errorf("the mounts name the store: %s, want it not to contain %q", got, b.options.CacheDir)
	}
}

func oneFileLayer(t *testing.T, name string) v1.Layer {
	t.Helper()
	data := testtar.Archive(t, testtar.File(name, name, 0o644))
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}
