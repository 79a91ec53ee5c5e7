package backendtest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance42Modes(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	writtenModes(t, sb)
	from := hostTree(t, map[string]string{"wild": "x", "program": "x", "none": "x"})
	os.Chmod(from+"/wild", 0o777|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	os.Chmod(from+"/program", 0o755)
	os.Chmod(from+"/none", 0o400)
	copyIn(t, sb, from, "modes")
	res := run(t, sb, "import os\nprint(*(oct(os.stat('modes/' + n).st_mode) for n in ('wild', 'program', 'none')))", nil)
	wantStdout(t, res, "0o100755 0o100755 0o100600\n")
	wantExit(t, run(t, sb, "import os\nfor m in (0o6777, 0o1666, 0o755, 0): open('modes/%o' % m, 'w'); os.chmod('modes/%o' % m, m)", nil), 0)
	dir := t.TempDir()
	copyOut(t, sb, here(sb, "/sandbox/modes/6777"), dir+"/a")
	copyOut(t, sb, here(sb, "/sandbox/modes/1666"), dir+"/b")
	copyOut(t, sb, here(sb, "/sandbox/modes/755"), dir+"/c")
	for name, want := range map[string]fs.FileMode{"a": 0o755, "b": 0o644, "c": 0o755} {
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, st, err, want)
		}
	}
}

// writtenModes has files written with a mode, without one, and over a file that has one.
func writtenModes(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	for _, c := range []struct {
		name, file string
		write      func() error
		want       fs.FileMode
	}{
		{"new", "written", func() error { return sb.WriteFile(testContext(t), "written", []byte("1")) }, 0o644},
		{"kept", "written", func() error {
			return errors.Join(sb.Chmod(testContext(t), "written", 0o750), sb.WriteFile(testContext(t), "written", []byte("2")))
		}, 0o750},
		{"with a mode", "program", func() error {
			return sb.WriteFileFrom(testContext(t), "program", strings.NewReader("3"), 0o755)
		}, 0o755},
	} {
		if err := c.write(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if info, err := sb.Stat(testContext(t), c.file); err != nil || info.Mode != c.want {
			t.Errorf("%s: mode %v, %v, want %v", c.name, info.Mode, err, c.want)
		}
	}
}

// acceptance42SpecialFiles has FIFOs on the host: refused before anything is
// written, and never waited for.
func (s *suite) acceptance42SpecialFiles(t *testing.T) {
	sb := s.shared(t)
	from := hostTree(t, map[string]string{"a": "a", "sub/b": "b"})
	if out, err := exec.Command("mkfifo", from+"/sub/fifo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, src := range []string{from, from + "/sub/fifo"} {
		start := time.Now()
		if _, err := sb.CopyIn(testContext(t), src, "special"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
			t.Errorf("%s: %v, want llmsandbox.ErrUnsafePath", src, err)
		}
		if d := time.Since(start); d > hang {
			t.Errorf("took %v, want at most %v", d, hang)
		}
	}
	if _, err := sb.Stat(testContext(t), "special"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v, want fs.ErrNotExist", err)
	}
	if _, err := sb.CopyIn(testContext(t), "/dev/zero", "special"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
		t.Errorf("a device: %v, want llmsandbox.ErrUnsafePath", err)
	}
}
