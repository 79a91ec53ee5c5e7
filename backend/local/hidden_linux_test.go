package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// tell is all of /proc that repeats where mounts and files are from.
const tell = "cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats /proc/self/maps /proc/1/mountinfo /proc/*/cmdline 2>/dev/null; ls -l /proc/self/ /proc/self/fd/ 2>/dev/null; cat /proc/self/environ"

// TestHostPathsHidden gives the cache, the toolchains, layers and an image paths that
// hold a name, which nothing inside may tell.
func TestHostPathsHidden(t *testing.T) {
	const canary = "alice-5d1f0c9b"
	home := filepath.Join(t.TempDir(), "home", canary)
	for path, mode := range map[string]os.FileMode{"bin/python3": 0o755, "lib/python3.11/os.py": 0o644} {
		path = filepath.Join(home, "versions/3.11", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho toolchain\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "versions/3.11/bin")+":"+os.Getenv("PATH"))
	layer := filepath.Join(home, "layer")
	if err := os.Mkdir(layer, 0o755); err != nil {
		t.Fatal(err)
	}
	b := New(&Options{StateDir: filepath.Join(home, "state"), CacheDir: filepath.Join(home, "cache"), agent: agentBinary})
	t.Cleanup(b.sweeping.Wait)
	layers := func(s *backend.Spec) {
		s.Layers = []backend.Layer{{Source: layer, Target: "/opt/layer"}, {Source: layer, Target: "/tmp/home/.cache/a", Writable: true}}
	}
	check := func(t *testing.T, m backend.Machine, script, want string) {
		t.Helper()
		if got := shell(t, m, script); got != want {
			t.Errorf("%s prints %q, not %q", script, got, want)
		}
		if k, ok := m.Capabilities().Get("host-paths"); !ok || !k.Enforced {
			t.Errorf("host-paths is %+v, want ok = true, Enforced true", k)
		}
		for _, line := range strings.Split(shell(t, m, tell), "\n") {
			if strings.Contains(line, canary) {
				t.Errorf("the sandbox can read %s, want it hidden", line)
			}
		}
	}
	t.Run("host", func(t *testing.T) {
		m := create(t, b, layers)
		check(t, m, "/opt/toolchains/python/bin/python3; test -f /etc/ld.so.cache && echo etc", "toolchain\netc\n")
	})
	t.Run("image", func(t *testing.T) {
		dir := filepath.Join(home, "image")
		if err := os.Rename(testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}), dir); err != nil {
			t.Fatal(err)
		}
		m := create(t, b, func(s *backend.Spec) {
			layers(s)
			s.Image = dir + ":one"
		})
		check(t, m, "cat /srv/motd", "from the image\n")
	})
}

// TestHostPathsExposed is about a directory that no overlay can be laid over.
func TestHostPathsExposed(t *testing.T) {
	b := newBackend(t)
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.empty); err != nil {
		t.Fatal(err)
	}
	m := create(t, b, nil)
	if k, _ := m.Capabilities().Get("host-paths"); k.Enforced || k.Why == "" || k.Fix == "" {
		t.Errorf("host-paths is %+v, want Enforced false, Why not empty, Fix not empty", k)
	}
	if got := shell(t, m, "test -f /etc/ld.so.cache && echo works"); got != "works\n" {
		t.Errorf("prints %q, want \"works\\n\"", got)
	}
}
