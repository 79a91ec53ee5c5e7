// Package testimage builds small real images for tests, with no engine and no
// registry.
package testimage

import (
	"archive/tar"
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
)

// applets are the commands of the busybox image.
var applets = []string{"sh", "ash", "cat", "echo", "env", "false", "head", "id", "ls", "mkdir", "mount", "ps", "pwd", "rm", "sleep", "stat", "touch", "true", "wc"}

// Busybox is an image of the host's static busybox, in two layers. The first has
// /etc/gone and /opt/old, which the second deletes: the one by a whiteout, the other
// by an opaque /opt with /opt/new. The working folder is /srv, FROM_IMAGE=yes is in
// the environment; edit, when not nil, may change the configuration.
func Busybox(t testing.TB, edit func(*v1.Config)) v1.Image {
	t.Helper()
	data := busybox(t)
	base := []entry{
		dir("bin", 0o755), dir("etc", 0o755), dir("opt", 0o755), dir("srv", 0o755), dir("tmp", 0o1777), dir("root", 0o700),
		file("bin/busybox", 0o755, string(data)),
		file("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/srv:/bin/sh\n"),
		file("etc/group", 0o644, "root:x:0:\napp:x:1000:\n"),
		file("etc/gone", 0o644, "a lower layer's\n"), file("opt/old", 0o644, "a lower layer's\n"),
		file("srv/motd", 0o644, "from the image\n"),
	}
	for _, a := range applets {
		base = append(base, link("bin/"+a, "busybox"))
	}
	change := []entry{
		dir("etc", 0o755), file("etc/.wh.gone", 0o644, ""),
		dir("opt", 0o755), file("opt/.wh..wh..opq", 0o644, ""), file("opt/new", 0o644, "the upper layer's\n"),
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
	return build(t, conf, layer(t, tarOf(t, base)), layer(t, tarOf(t, change)))
}

// Layout writes the images, by their tags, as the folder of an OCI layout.
func Layout(t testing.TB, images map[string]v1.Image) string {
	t.Helper()
	folder := t.TempDir()
	writeLayout(t, folder, images)
	return folder
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

func writeLayout(t testing.TB, folder string, images map[string]v1.Image) {
	t.Helper()
	l, err := layout.Write(folder, empty.Index)
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

// An entry is a file of a layer.
type entry struct {
	tar.Header
	body string
}

func dir(name string, mode int64) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}}
}

func file(name string, mode int64, body string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(body))}, body}
}

func link(name, to string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}}
}

func tarOf(t testing.TB, entries []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
