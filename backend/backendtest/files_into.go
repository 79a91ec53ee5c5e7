package backendtest

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance40UnsafePaths(t *testing.T) {
	sb := s.shared(t)
	src := filepath.Join(hostTree(t, map[string]string{"f": "data"}), "f")
	for _, dest := range []string{here(sb, "/sandbox/../etc/x"), "../x", "a/..", "..", here(sb, "/sandbox/.."), ""} {
		if _, err := sb.CopyIn(testContext(t), src, dest); !errors.Is(err, llmsandbox.ErrUnsafePath) {
			t.Errorf("to %q: %v, want llmsandbox.ErrUnsafePath", dest, err)
		}
	}
	for _, dest := range []string{here(sb, "/sandbox/.env"), "x..y", "...", "..a"} {
		copyIn(t, sb, src, dest)
	}
}

func (s *suite) acceptance43Parents(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	dir := hostTree(t, map[string]string{"f": "data"})
	copyIn(t, sb, dir+"/f", here(sb, "/sandbox/a/b/c/f"))
	copyIn(t, sb, dir, here(sb, "/tmp/x/y/z"))
	wantStdout(t, run(t, sb, "import os\nprint(open('a/b/c/f').read(), open('/tmp/x/y/z/f').read(), os.access('a/b/new', os.W_OK) or os.mkdir('a/b/new'))", nil), "data data None\n")
	copyOut(t, sb, here(sb, "/sandbox/a/b/c/f"), dir+"/p/q/r")
	copyOut(t, sb, here(sb, "/tmp/x"), dir+"/s/t")
	if hostFile(t, dir+"/p/q/r") != "data" || hostFile(t, dir+"/s/t/x/y/z/f") != "data" {
		t.Error("not what was copied")
	}
}

// acceptance44ReadOnlyRoot writes where only root could, and where the program can.
func (s *suite) acceptance44ReadOnlyRoot(t *testing.T) {
	s.has(t, ReadOnlyRoot)
	sb := s.open(t, llmsandbox.Options{})
	src := filepath.Join(hostTree(t, map[string]string{"f": "data"}), "f")
	for _, dest := range []string{"/etc/f", "/etc/passwd", "/usr/bin/python3", "/f", "/new/f", "/etc"} {
		_, err := sb.CopyIn(testContext(t), src, dest)
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("to %s: %v, want fs.ErrPermission", dest, err)
		}
	}
	copyIn(t, sb, src, here(sb, "/tmp/f"))
	copyIn(t, sb, src, "f")
	// What was copied belongs to the program.
	wantStdout(t, run(t, sb, "import os\nprint(os.getuid() == os.stat('f').st_uid, os.getuid() != 0)\nopen('f', 'a').write('more'); os.remove('/tmp/f')", nil), "True True\n")
}
