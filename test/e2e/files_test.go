package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// hostTree makes files of a host folder: a name that ends in a slash is a folder.
func hostTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hostFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func copyIn(t testing.TB, sb *llmsandbox.Sandbox, host, path string) llmsandbox.CopyResult {
	t.Helper()
	res, err := sb.CopyIn(testContext(t), host, path)
	if err != nil {
		t.Fatalf("%v\nresult: %+v", err, res)
	}
	return res
}

func copyOut(t testing.TB, sb *llmsandbox.Sandbox, path, host string) llmsandbox.CopyResult {
	t.Helper()
	res, err := sb.CopyOut(testContext(t), path, host)
	if err != nil {
		t.Fatalf("%v\nresult: %+v", err, res)
	}
	return res
}

// TestAcceptance35to39FileNamesAndContent round-trips single files of each kind, by
// way of a program that reads them.
func TestAcceptance35to39FileNamesAndContent(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, content := range map[string]string{
		"text.txt": "héllo\r\nworld\n", "binary.bin": strings.Repeat(string(every), 1000), "empty": "", "a..b.txt": "dots",
		".env": "hidden", " ": "blank", "new\nline": "odd", "-rf": "dash", "bad\xff": "not UTF-8", "a:b": "colon", "back\\slash": "back",
	} {
		dir := hostTree(t, map[string]string{name: content})
		copyIn(t, sb, filepath.Join(dir, name), "in/"+name)
		res := run(t, sb, "import hashlib, os, sys\nprint(hashlib.sha256(open(os.fsencode('in') + b'/' + bytes.fromhex(sys.argv[1]), 'rb').read()).hexdigest())",
			&llmsandbox.RunOptions{Args: []string{fmt.Sprintf("%x", name)}})
		wantStdout(t, res, fmt.Sprintf("%x\n", sha256.Sum256([]byte(content))))
		back := filepath.Join(t.TempDir(), name)
		copyOut(t, sb, "/sandbox/in/"+name, back)
		if got := hostFile(t, back); got != content {
			t.Errorf("%q came back as %d bytes, want %d", name, len(got), len(content))
		}
	}
}

func TestAcceptance36Folders(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	from := hostTree(t, map[string]string{"a.txt": "a", "sub/deep/b.txt": "b", "sub/empty/": "", ".git/config": "c"})
	copyIn(t, sb, from, "/sandbox/out")
	d := filepath.Join(t.TempDir(), "d")
	copyOut(t, sb, "/sandbox/out", d)
	for name, want := range map[string]string{"a.txt": "a", "sub/deep/b.txt": "b", ".git/config": "c"} {
		if got := hostFile(t, filepath.Join(d, "out", name)); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if st, err := os.Stat(filepath.Join(d, "out/sub/empty")); err != nil || !st.IsDir() {
		t.Errorf("the empty folder: %v, %v", st, err)
	}
}

func TestAcceptance37Missing(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	dir := t.TempDir()
	if _, err := sb.CopyIn(testContext(t), dir+"/none", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in: %v", err)
	}
	_, err := sb.CopyOut(testContext(t), "/sandbox/none", dir+"/x")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/sandbox/none") {
		t.Errorf("out: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestAcceptance40UnsafePaths(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	src := filepath.Join(hostTree(t, map[string]string{"f": "data"}), "f")
	for _, dest := range []string{"/sandbox/../etc/x", "../x", "a/..", "..", "/sandbox/..", ""} {
		if _, err := sb.CopyIn(testContext(t), src, dest); !errors.Is(err, llmsandbox.ErrUnsafePath) {
			t.Errorf("to %q: %v", dest, err)
		}
	}
	for _, dest := range []string{"/sandbox/.env", "x..y", "...", "..a"} {
		copyIn(t, sb, src, dest)
	}
}

// TestAcceptance41HostileMembers has links, and names that look like ways out, made
// by the program. (Archives no file system can give are the extractor's own tests.)
func TestAcceptance41HostileMembers(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	wantExit(t, run(t, sb, `
import os
os.makedirs("mixed/sub"); os.makedirs("links/sub")
open("mixed/ok", "w").write("ok")
for d in ("mixed", "links"):
    os.symlink("/etc/passwd", d + "/absolute"); os.symlink("../../../etc/passwd", d + "/sub/relative")
    os.symlink("/", d + "/folder"); os.mkfifo(d + "/fifo")
`, nil), 0)
	dir := t.TempDir()
	res := copyOut(t, sb, "/sandbox/mixed", dir)
	if res.Files != 1 || len(res.Skipped) != 4 {
		t.Errorf("%+v", res)
	}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("%s is %v", path, d.Type())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	none := filepath.Join(dir, "none")
	_, err := sb.CopyOut(testContext(t), "/sandbox/links", none)
	if !errors.Is(err, llmsandbox.ErrNoSafeContent) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("only links: %v", err)
	}
	if _, err := os.Lstat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was left on the host: %v", err)
	}
	// The same on the way in: a link is left out and reported.
	from := hostTree(t, map[string]string{"ok": "ok"})
	if err := os.Symlink("/etc/passwd", from+"/link"); err != nil {
		t.Fatal(err)
	}
	if res := copyIn(t, sb, from, "in"); res.Files != 1 || len(res.Skipped) != 1 {
		t.Errorf("in: %+v", res)
	}
}

func TestAcceptance42Modes(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	from := hostTree(t, map[string]string{"wild": "x", "program": "x", "none": "x"})
	os.Chmod(from+"/wild", 0o777|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	os.Chmod(from+"/program", 0o755)
	os.Chmod(from+"/none", 0o400)
	copyIn(t, sb, from, "modes")
	res := run(t, sb, "import os\nprint(*(oct(os.stat('modes/' + n).st_mode) for n in ('wild', 'program', 'none')))", nil)
	wantStdout(t, res, "0o100755 0o100755 0o100600\n")
	wantExit(t, run(t, sb, "import os\nfor m in (0o6777, 0o1666, 0o755, 0): open('modes/%o' % m, 'w'); os.chmod('modes/%o' % m, m)", nil), 0)
	dir := t.TempDir()
	copyOut(t, sb, "/sandbox/modes/6777", dir+"/a")
	copyOut(t, sb, "/sandbox/modes/1666", dir+"/b")
	copyOut(t, sb, "/sandbox/modes/755", dir+"/c")
	for name, want := range map[string]fs.FileMode{"a": 0o755, "b": 0o644, "c": 0o755} {
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, st, err, want)
		}
	}
}

// TestAcceptance42SpecialFiles has FIFOs on the host: refused before anything is
// written, and never waited for.
func TestAcceptance42SpecialFiles(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	from := hostTree(t, map[string]string{"a": "a", "sub/b": "b"})
	if out, err := exec.Command("mkfifo", from+"/sub/fifo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, src := range []string{from, from + "/sub/fifo"} {
		start := time.Now()
		if _, err := sb.CopyIn(testContext(t), src, "special"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
			t.Errorf("%s: %v", src, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	}
	if _, err := sb.Stat(testContext(t), "special"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	if _, err := sb.CopyIn(testContext(t), "/dev/zero", "special"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
		t.Errorf("a device: %v", err)
	}
}

// TestAcceptance42LinkAtDestination has a link where something is copied to, on the
// host and in the sandbox: it is replaced or refused, and what it leads to is kept.
func TestAcceptance42LinkAtDestination(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	host := hostTree(t, map[string]string{"canary": "CANARY", "other/": "", "f": "new"})
	os.Symlink("canary", host+"/file-link")
	os.Symlink("other", host+"/folder-link")
	wantExit(t, run(t, sb, "import os\nos.makedirs('out/sub'); os.makedirs('other')\nopen('out/sub/f', 'w').write('new'); open('canary', 'w').write('CANARY')\nos.symlink('canary', 'file-link'); os.symlink('other', 'folder-link')", nil), 0)

	copyOut(t, sb, "/sandbox/out/sub/f", host+"/file-link")
	if got, kept := hostFile(t, host+"/file-link"), hostFile(t, host+"/canary"); got != "new" || kept != "CANARY" {
		t.Errorf("%q, canary %q", got, kept)
	}
	if _, err := sb.CopyOut(testContext(t), "/sandbox/out", host+"/folder-link"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
		t.Errorf("a folder over a link: %v", err)
	}
	os.Mkdir(host+"/out", 0o755)
	os.Symlink("../other", host+"/out/sub")
	res, err := sb.CopyOut(testContext(t), "/sandbox/out", host)
	if !errors.Is(err, llmsandbox.ErrNoSafeContent) || len(res.Skipped) == 0 {
		t.Errorf("through a link inside: %+v, %v", res, err)
	}
	if left, _ := os.ReadDir(host + "/other"); len(left) != 0 {
		t.Errorf("a link was followed: %v", left)
	}

	copyIn(t, sb, host+"/f", "file-link")
	if _, err := sb.CopyIn(testContext(t), host+"/out", "folder-link"); !errors.Is(err, llmsandbox.ErrUnsafePath) {
		t.Errorf("a folder over a link of the sandbox: %v", err)
	}
	wantStdout(t, run(t, sb, "import os\nprint(open('file-link').read(), open('canary').read(), os.path.islink('file-link'), os.listdir('other'))", nil), "new CANARY False []\n")
}

func TestAcceptance43Parents(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	dir := hostTree(t, map[string]string{"f": "data"})
	copyIn(t, sb, dir+"/f", "/sandbox/a/b/c/f")
	copyIn(t, sb, dir, "/tmp/x/y/z")
	wantStdout(t, run(t, sb, "import os\nprint(open('a/b/c/f').read(), open('/tmp/x/y/z/f').read(), os.access('a/b/new', os.W_OK) or os.mkdir('a/b/new'))", nil), "data data None\n")
	copyOut(t, sb, "/sandbox/a/b/c/f", dir+"/p/q/r")
	copyOut(t, sb, "/tmp/x", dir+"/s/t")
	if hostFile(t, dir+"/p/q/r") != "data" || hostFile(t, dir+"/s/t/x/y/z/f") != "data" {
		t.Error("not what was copied")
	}
}

// TestAcceptance44ReadOnlyRoot writes where only root could, and where the program can.
func TestAcceptance44ReadOnlyRoot(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	src := filepath.Join(hostTree(t, map[string]string{"f": "data"}), "f")
	for _, dest := range []string{"/etc/f", "/etc/passwd", "/usr/bin/python3", "/f", "/new/f", "/etc"} {
		_, err := sb.CopyIn(testContext(t), src, dest)
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("to %s: %v", dest, err)
		}
	}
	copyIn(t, sb, src, "/tmp/f")
	copyIn(t, sb, src, "f")
	// What was copied belongs to the program.
	wantStdout(t, run(t, sb, "import os\nprint(os.getuid() == os.stat('f').st_uid, os.getuid() != 0)\nopen('f', 'a').write('more'); os.remove('/tmp/f')", nil), "True True\n")
}

// TestLargeFile takes 100 MB in and out.
func TestLargeFile(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	const size = 100 << 20
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)
	from := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	want := sha256.Sum256(content)
	start := time.Now()
	copyIn(t, sb, from, "large")
	in := time.Since(start)
	wantStdout(t, run(t, sb, "import hashlib\nprint(hashlib.file_digest(open('large', 'rb'), 'sha256').hexdigest() if hasattr(hashlib, 'file_digest') else hashlib.sha256(open('large', 'rb').read()).hexdigest())", nil), fmt.Sprintf("%x\n", want))
	to := filepath.Join(t.TempDir(), "back")
	start = time.Now()
	copyOut(t, sb, "large", to)
	out := time.Since(start)
	back, err := os.ReadFile(to)
	if err != nil || sha256.Sum256(back) != want {
		t.Fatalf("%d bytes came back, %v", len(back), err)
	}
	t.Logf("in %v (%.0f MB/s), out %v (%.0f MB/s)", in, size/1e6/in.Seconds(), out, size/1e6/out.Seconds())
	got, err := sb.ReadFile(testContext(t), "large")
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("ReadFile: %d bytes, %v", len(got), err)
	}
}
