package backendtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// hostile fills /sandbox/out with what must not come out of a sandbox as it is. %s is
// a file of the host.
const hostile = `
import os, socket
os.makedirs("out/ok", exist_ok=True)
os.chdir("out")
open("plain", "w").write("plain")
open("ok/inner", "w").write("inner")
def link(name, target):
    try: os.symlink(target, name)
    except OSError as e: print(name, e)
link("absolute", "/etc/passwd")
link("canary", %q)
link("up", "../../../../../../etc/passwd")
link("folder", "/")
link("self", "self")
link("a", "b"); link("b", "a")
link("ok/loop", "..")
link("proc", "/proc/1/environ"); link("maps", "/proc/1/maps"); link("root", "/proc/1/root")
link("cwd", "/proc/self/cwd"); link("fd", "/proc/self/fd/0")
open("twin", "w").write("twin"); os.link("twin", "hard")
for name, target in (("hard-passwd", "/etc/passwd"), ("hard-program", "/bin/sh")):
    try: os.link(target, name)
    except OSError: pass
os.mkfifo("fifo"); os.mkfifo("ok/fifo")
try: s = socket.socket(socket.AF_UNIX); s.bind("socket")
except OSError: pass
try: os.mknod("device", 0o20666, os.makedev(1, 3))
except OSError: pass
for name in ("new\nline", "x" * 255, b"bad\xff\xfe", "-rf", "a..b", "\x1b[2J", "back\\slash", " "):
    open(name, "w").write("odd")
open("setuid", "w").write("setuid")
try: os.chmod("setuid", 0o6777)
except PermissionError: pass # to code that shares the caller's uid
`

// abuse27to31CopyOut copies hostile directories out: what arrives are plain files, in
// the directory that was named, and soon.
func (s *suite) abuse27to31CopyOut(t *testing.T) {
	secret := plantFile(t, os.TempDir())
	sb := s.open(t, llmsandbox.Options{})
	ctx := testContext(t)
	wantExit(t, run(t, sb, fmt.Sprintf(hostile, secret), nil), 0)
	around := t.TempDir()
	dest := filepath.Join(around, "dest")
	start := time.Now()
	res, err := sb.CopyOut(ctx, here(sb, "/sandbox/out"), dest)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > hang {
		t.Errorf("took %v, want at most %v", d, hang)
	}
	if len(res.Skipped) < 10 {
		t.Errorf("only these were reported as left out: %q, want len(res.Skipped) >= 10", res.Skipped)
	}
	if n := wantOnlyPlainFiles(t, around); n < 4 {
		t.Errorf("%d files arrived, want at least 4", n)
	}
	entries, err := os.ReadDir(around)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the destination: %v, %v, want no error, len(entries) = 1", entries, err)
	}
	for name, want := range map[string]string{"plain": "plain", "ok/inner": "inner", "a..b": "odd", "new\nline": "odd"} {
		if b, err := os.ReadFile(filepath.Join(dest, "out", name)); err != nil || string(b) != want {
			t.Errorf("%q: %q, %v, want no error, b = %v", name, b, err, want)
		}
	}
	if fi, err := os.Stat(filepath.Join(dest, "out", "setuid")); err != nil || fi.Mode()&(os.ModeSetuid|os.ModeSetgid|0o022) != 0 {
		t.Errorf("setuid file: %v, %v, want no error, fi.Mode()&(os.ModeSetuid|os.ModeSetgid|0o022) = 0", fi.Mode(), err)
	}
	for _, name := range []string{"absolute", "canary", "up", "folder", "self", "a", "proc", "maps", "root", "fifo", "socket", "device"} {
		t.Run("30 "+name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if _, err := sb.CopyOut(ctx, here(sb, "/sandbox/out/")+name, filepath.Join(t.TempDir(), "one")); err == nil {
				t.Error("it was copied: got no error, want an error")
			}
			if b, err := sb.ReadFile(ctx, here(sb, "/sandbox/out/")+name); err == nil && strings.Contains(string(b), abuse.Canary) {
				t.Errorf("it was read: %q, want an error or b without Canary", b)
			}
			if ctx.Err() != nil {
				t.Errorf("it blocked the host: %v, want no error", ctx.Err())
			}
		})
	}
	if list, err := sb.ListDir(ctx, here(sb, "/sandbox/out")); err != nil || len(list) < 20 {
		t.Errorf("list: %d entries, %v, want no error, len(list) >= 20", len(list), err)
	}
	if err := sb.Remove(ctx, here(sb, "/sandbox/out")); err != nil {
		t.Errorf("remove: %v", err)
	}
	answers(t, sb)
}

// abuse27CopyOutOverLinks copies over links that lie on the host already.
func (s *suite) abuse27CopyOutOverLinks(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	ctx := testContext(t)
	wantExit(t, run(t, sb, "import os\nos.makedirs('out/sub')\nfor n in ('out/file', 'out/sub/file'): open(n, 'w').write('from inside')", nil), 0)
	around := t.TempDir()
	victim := filepath.Join(around, "victim")
	if err := os.MkdirAll(filepath.Join(around, "dest", "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(victim, []byte("unharmed"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for link, target := range map[string]string{"dest/out/file": victim, "dest/out/sub": elsewhere} {
		if err := os.Symlink(target, filepath.Join(around, link)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := sb.CopyOut(ctx, here(sb, "/sandbox/out"), filepath.Join(around, "dest"))
	t.Logf("copy over links: %v", err)
	if b, err := os.ReadFile(victim); err != nil || string(b) != "unharmed" {
		t.Errorf("a link was followed: %q, %v, want no error, b = \"unharmed\"", b, err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("a linked directory was written to: %v, %v, want no error, no entries", entries, err)
	}
}
