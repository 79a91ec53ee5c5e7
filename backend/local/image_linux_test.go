package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

func TestImageUser(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		lower + "/etc/passwd": "app:x:7:8::/:/bin/sh\nroot:x:0:0::/:/bin/sh\n",
		upper + "/etc/passwd": "root:x:0:0::/:/bin/sh\napp:x:101:102::/:/bin/sh\nbad:x:-1:0::/:\nops:x:0:0::/:\n",
		lower + "/etc/group":  "web:x:33:\nwheel:x:0:\nshort\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layers := []string{upper, lower}
	for _, c := range []struct {
		spec     string
		uid, gid uint32
		bad      bool
	}{
		{"", 0, 0, false}, {"root", 0, 0, false}, {"0", 0, 0, false}, {"0:0", 0, 0, false}, {"ops", 0, 0, false},
		{"app", 101, 102, false}, {"101", 101, 102, false}, {"5000", 5000, 0, false}, {"app:web", 101, 33, false},
		{"5000:6000", 5000, 6000, false}, {"app:wheel", 101, 0, false}, {"app:root", 101, 0, false},
		{"nobody-here", 0, 0, true}, {"app:no-such", 0, 0, true}, {"bad", 0, 0, true}, {"4294967295", 0, 0, true},
	} {
		uid, gid, err := imageUser(layers, c.spec)
		if uid != c.uid || gid != c.gid || errors.Is(err, backend.ErrImageInvalid) != c.bad {
			t.Errorf("user %q is %d:%d, %v, want uid = %d, gid = %d, errors.Is(err, backend.ErrImageInvalid) = %v", c.spec, uid, gid, err, c.uid, c.gid, c.bad)
		}
	}
	// A link in an image leads nowhere on the host.
	linked := t.TempDir()
	if err := os.Symlink("/etc", linked+"/etc"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := imageUser([]string{linked}, "daemon"); !errors.Is(err, backend.ErrImageInvalid) {
		t.Errorf("a linked /etc is read: %v, want backend.ErrImageInvalid", err)
	}
}

func TestImageConfig(t *testing.T) {
	b := newBackend(t)
	for _, c := range []struct {
		name     string
		config   v1.Config
		ids, dir string
	}{
		{"named", v1.Config{User: "app", WorkingDir: "/srv"}, "1000 1000", "/srv"},
		{"number", v1.Config{User: "101:102", WorkingDir: "/srv"}, "101 102", "/srv"},
		{"root is mapped to the code's user", v1.Config{User: "root", WorkingDir: "/"}, "1000 1000", ""},
		{"directory of root", v1.Config{WorkingDir: "/root"}, "1000 1000", "closed"},
		{"missing directory", v1.Config{WorkingDir: "/srv/none"}, "1000 1000", ""},
		{"directory that is a file", v1.Config{WorkingDir: "/srv/motd"}, "1000 1000", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			img := testimage.Busybox(t, func(conf *v1.Config) { conf.User, conf.WorkingDir = c.config.User, c.config.WorkingDir })
			directory := testimage.Layout(t, map[string]v1.Image{"one": img})
			m := create(t, b, func(s *backend.Spec) { s.Image = directory + ":one" })
			if got := shell(t, m, "echo $(id -u) $(id -g); echo x >/sandbox/x && echo x >$HOME/x && cat /tmp/home/x"); got != c.ids+"\nx\n" {
				t.Errorf("prints %q, not %q, want %q", got, c.ids, c.ids+"\nx\n")
			}
			dir := m.Guest().StartDir
			if c.dir == "closed" { // what belongs to root belongs to the caller where there are no other users
				if dir != "" && shell(t, m, "cd "+dir+" && pwd") != dir+"\n" {
					t.Errorf("starts in %q, want a directory that the user can enter", dir)
				}
			} else if dir != c.dir {
				t.Errorf("starts in %q, not in %q", dir, c.dir)
			}
		})
	}
}
