// Package testimage builds small real images for tests, with no engine and no
// registry.
package testimage

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// applets are the commands of the busybox image.
var applets = []string{"sh", "ash", "cat", "echo", "env", "false", "head", "id", "ls", "mkdir", "mount", "ps", "pwd", "rm", "sleep", "stat", "touch", "true", "wc"}

// Busybox is an image of the host's static busybox, in two layers. The first has
// /etc/gone and /opt/old, which the second deletes: the one by a whiteout, the other
// by an opaque /opt with /opt/new. The working directory is /srv, FROM_IMAGE=yes is in
// the environment; edit, when not nil, may change the configuration.
func Busybox(t testing.TB, edit func(*v1.Config)) v1.Image {
	t.Helper()
	data := busybox(t)
	base := []testtar.Member{
		testtar.Dir("bin/", 0o755), testtar.Dir("etc/", 0o755), testtar.Dir("opt/", 0o755), testtar.Dir("srv/", 0o755), testtar.Dir("tmp/", 0o1777), testtar.Dir("root/", 0o700),
		testtar.File("bin/busybox", string(data), 0o755),
		testtar.File("etc/passwd", "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/srv:/bin/sh\n", 0o644),
		testtar.File("etc/group", "root:x:0:\napp:x:1000:\n", 0o644),
		testtar.File("etc/gone", "a lower layer's\n", 0o644), testtar.File("opt/old", "a lower layer's\n", 0o644),
		testtar.File("srv/motd", "from the image\n", 0o644),
	}
	for _, a := range applets {
		base = append(base, testtar.Link("bin/"+a, "busybox"))
	}
	change := []testtar.Member{
		testtar.Dir("etc/", 0o755), testtar.File("etc/.wh.gone", "", 0o644),
		testtar.Dir("opt/", 0o755), testtar.File("opt/.wh..wh..opq", "", 0o644), testtar.File("opt/new", "the upper layer's\n", 0o644),
	}
	conf := v1.Config{
		Env:        []string{"PATH=/bin", "FROM_IMAGE=yes"},
		WorkingDir: "/srv",
		Cmd:        []string{"sh"},
		Labels:     map[string]string{"made-by": "testimage"},
	}
	if edit != nil {
		edit(&conf)
	}
	return build(t, conf, layer(t, testtar.Archive(t, base...)), layer(t, testtar.Archive(t, change...)))
}

// Layout writes the images, by their tags, as the directory of an OCI layout.
func Layout(t testing.TB, images map[string]v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	writeLayout(t, dir, images)
	return dir
}

// Save writes the image as `docker save` does.
func Save(t testing.TB, ref string, img v1.Image) string {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(path, tag, img); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeLayout(t testing.TB, dir string, images map[string]v1.Image) {
	t.Helper()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for tag, img := range images {
		if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
			t.Fatal(err)
		}
	}
}

func busybox(t testing.TB) []byte {
	t.Helper()
	for _, p := range []string{"/usr/bin/busybox", "/bin/busybox"} {
		if data, err := os.ReadFile(p); err == nil {
			return data
		}
	}
	Unavailable(t, "the image of this test needs busybox-static (apt-get install busybox-static)")
	return nil
}

func build(t testing.TB, conf v1.Config, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, conf
	file.Created = v1.Time{Time: time.Unix(1_700_000_000, 0).UTC()}
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func layer(t testing.TB, data []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}
