package e2e

import (
	"context"
	"fmt"
	"io"
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
s = socket.socket(socket.AF_UNIX); s.bind("socket")
try: os.mknod("device", 0o20666, os.makedev(1, 3))
except OSError: pass
for name in ("new\nline", "x" * 255, b"bad\xff\xfe", "-rf", "a..b", "\x1b[2J", "back\\slash", " "):
    open(name, "w").write("odd")
open("setuid", "w").write("setuid")
os.chmod("setuid", 0o6777)
`

// TestAbuse27to31CopyOut copies hostile folders out: what arrives are plain files, in
// the folder that was named, and soon.
func TestAbuse27to31CopyOut(t *testing.T) {
	secret := plantFile(t, os.TempDir())
	sb := open(t, llmsandbox.Options{})
	ctx := testContext(t)
	wantExit(t, run(t, sb, fmt.Sprintf(hostile, secret), nil), 0)
	around := t.TempDir()
	dest := filepath.Join(around, "dest")
	start := time.Now()
	res, err := sb.CopyOut(ctx, "/sandbox/out", dest)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	if len(res.Skipped) < 10 {
		t.Errorf("only these were reported as left out: %q", res.Skipped)
	}
	if n := wantOnlyPlainFiles(t, around); n < 4 {
		t.Errorf("%d files arrived", n)
	}
	entries, err := os.ReadDir(around)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the destination: %v, %v", entries, err)
	}
	for name, want := range map[string]string{"plain": "plain", "ok/inner": "inner", "a..b": "odd", "new\nline": "odd"} {
		if b, err := os.ReadFile(filepath.Join(dest, "out", name)); err != nil || string(b) != want {
			t.Errorf("%q: %q, %v", name, b, err)
		}
	}
	if fi, err := os.Stat(filepath.Join(dest, "out", "setuid")); err != nil || fi.Mode()&(os.ModeSetuid|os.ModeSetgid|0o022) != 0 {
		t.Errorf("setuid file: %v, %v", fi.Mode(), err)
	}
	for _, name := range []string{"absolute", "canary", "up", "folder", "self", "a", "proc", "maps", "root", "fifo", "socket", "device"} {
		t.Run("30 "+name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if _, err := sb.CopyOut(ctx, "/sandbox/out/"+name, filepath.Join(t.TempDir(), "one")); err == nil {
				t.Error("it was copied")
			}
			if b, err := sb.ReadFile(ctx, "/sandbox/out/"+name); err == nil && strings.Contains(string(b), abuse.Canary) {
				t.Errorf("it was read: %q", b)
			}
			if ctx.Err() != nil {
				t.Error("it blocked the host")
			}
		})
	}
	if list, err := sb.ListDir(ctx, "/sandbox/out"); err != nil || len(list) < 20 {
		t.Errorf("list: %d entries, %v", len(list), err)
	}
	if err := sb.Remove(ctx, "/sandbox/out"); err != nil {
		t.Errorf("remove: %v", err)
	}
	answers(t, sb)
}

// TestAbuse27CopyOutOverLinks copies over links that lie on the host already.
func TestAbuse27CopyOutOverLinks(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
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
	_, err := sb.CopyOut(ctx, "/sandbox/out", filepath.Join(around, "dest"))
	t.Logf("copy over links: %v", err)
	if b, err := os.ReadFile(victim); err != nil || string(b) != "unharmed" {
		t.Errorf("a link was followed: %q, %v", b, err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("a linked folder was written to: %v, %v", entries, err)
	}
}

// TestAbuse28SwapDuringCopy swaps files for links while they are read. The agent may
// read more than the code, and must not be led to it.
func TestAbuse28SwapDuringCopy(t *testing.T) {
	sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{CPUs: llmsandbox.Unlimited}})
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = sb.Run(ctx, `
import os
os.makedirs("out/d", exist_ok=True)
os.makedirs("spare", exist_ok=True)
os.symlink("/proc/1/maps", "link"); os.symlink("/proc/1", "folder")
open("file", "w").write("plain"); open("spare/maps", "w").write("plain")
print("started", flush=True)
while True:
    for source in ("link", "file"):
        try: os.unlink("out/x")
        except OSError: pass
        os.link(source, "out/x", follow_symlinks=False)
    os.rename("out/d", "out/e"); os.symlink("/proc/1", "out/d")
    os.unlink("out/d"); os.rename("out/e", "out/d")
    try: os.link("file", "out/d/maps")
    except OSError: pass`, &llmsandbox.RunOptions{Stdout: &first{started: started}, Timeout: 30 * time.Second})
	}()
	<-started
	look := func(what, text string) {
		if text != "" && text != "plain" {
			t.Errorf("%s was led to: %s", what, clip(text))
		}
	}
	end := time.Now().Add(3 * time.Second)
	rounds := 0
	for ; time.Now().Before(end); rounds++ {
		// Most of these fail, as they must when a link is there.
		for _, name := range []string{"out/x", "out/d/maps"} {
			b, _ := sb.ReadFile(ctx, name)
			look("ReadFile", string(b))
		}
		dir := t.TempDir()
		_, _ = sb.CopyOut(ctx, "/sandbox/out", dir)
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if !d.Type().IsRegular() {
					t.Errorf("%s is %v", path, d.Type())
				}
				b, _ := os.ReadFile(path)
				look("CopyOut", string(b))
			}
			return nil
		})
		_ = sb.WriteFile(ctx, "out/d/maps", []byte("plain"), 0o644)
	}
	if rounds < 3 {
		t.Errorf("only %d rounds", rounds)
	}
	cancel()
	<-done
	answers(t, sb)
}

// TestAbuse27to29CopyIn copies into places that hostile code has prepared.
func TestAbuse27to29CopyIn(t *testing.T) {
	secret := plantFile(t, os.TempDir())
	sb := open(t, llmsandbox.Options{})
	ctx := testContext(t)
	wantExit(t, run(t, sb, `
import os
os.makedirs("/tmp/elsewhere"); os.makedirs("in")
os.symlink("/tmp/elsewhere", "linked"); os.symlink("/tmp/elsewhere", "in/sub")
os.symlink("/tmp/elsewhere/file", "in/file")
os.mkfifo("in/fifo")`, nil), 0)
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "sub/file", "fifo"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte("from outside"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": secret, "sub/link": secret, "folder": os.TempDir()} {
		if err := os.Symlink(target, filepath.Join(source, link)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, dest := range []string{"/sandbox/in", "/sandbox/linked", "/sandbox/fresh"} {
		res, err := sb.CopyIn(ctx, source, dest)
		t.Logf("%s: %+v, %v", dest, res, err)
	}
	for _, name := range []string{"file", "fifo"} {
		res, err := sb.CopyIn(ctx, filepath.Join(source, "file"), "/sandbox/in/"+name)
		t.Logf("onto %s: %+v, %v", name, res, err)
	}
	if ctx.Err() != nil {
		t.Error("a FIFO in the way blocked the host")
	}
	for _, dest := range []string{"/sandbox/../etc/x", "../x", "a/..", "/sandbox/in/../../tmp/y"} {
		if _, err := sb.CopyIn(ctx, filepath.Join(source, "file"), dest); err == nil {
			t.Errorf("destination %q was accepted", dest)
		}
	}
	res := run(t, sb, attempts+`
if os.listdir("/tmp/elsewhere"):
    print("through a link REACHED", os.listdir("/tmp/elsewhere"))
for root, dirs, names in os.walk("/sandbox"):
    for name in names:
        path = os.path.join(root, name)
        if os.path.isfile(path) and not os.path.islink(path) and not name.startswith(".run-"):
            print(path, open(path).read())
print("end")`, nil)
	wantNothingReached(t, res)
	if !strings.Contains(res.Stdout, "/sandbox/fresh/sub/file from outside") {
		t.Errorf("the folder did not arrive:\n%s", res.Stdout)
	}
}

// TestAbuse10to12CopyOut copies out what is sparse, deep and many.
func TestAbuse10to12CopyOut(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	ctx, cancel := context.WithTimeout(testContext(t), 60*time.Second)
	defer cancel()
	wantExit(t, run(t, sb, `
import os
os.makedirs("sparse")
with open("sparse/file", "w") as f: f.truncate(1 << 40)
os.makedirs("deep"); os.chdir("deep")
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")`, nil), 0)
	t.Run("10 sparse", func(t *testing.T) {
		dest := t.TempDir()
		start := time.Now()
		_, err := sb.CopyOut(ctx, "/sandbox/sparse/file", filepath.Join(dest, "one"))
		if err == nil {
			t.Error("a file of 1 TiB was copied")
		}
		if _, err := sb.CopyOut(ctx, "/sandbox/sparse", dest); err == nil {
			t.Error("a folder with a file of 1 TiB was copied")
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("took %v to refuse it", d)
		}
		if n := wantOnlyPlainFiles(t, dest); n != 0 {
			t.Errorf("%d files were left", n)
		}
		taken := &limited{left: 1 << 20}
		if _, err := sb.ReadFileTo(ctx, "/sandbox/sparse/file", taken); err == nil {
			t.Error("reading went on though the writer failed")
		}
	})
	t.Run("11 deep", func(t *testing.T) {
		start := time.Now()
		_, err := sb.CopyOut(ctx, "/sandbox/deep", t.TempDir())
		t.Logf("copy out: %v", err)
		if err := sb.Remove(ctx, "/sandbox/deep"); err != nil {
			t.Errorf("remove: %v", err)
		}
		if d := time.Since(start); d > 15*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("09 many", func(t *testing.T) {
		wantExit(t, run(t, sb, "import os\nos.mkdir('many')\nfor i in range(20000): open('many/%d' % i, 'w')", nil), 0)
		start := time.Now()
		_, err := sb.ListDir(ctx, "/sandbox/many")
		t.Logf("list: %v", err)
		if err := sb.Remove(ctx, "/sandbox/many"); err != nil {
			t.Errorf("remove: %v", err)
		}
		if d := time.Since(start); d > 15*time.Second {
			t.Errorf("took %v", d)
		}
	})
	answers(t, sb)
}

// limited is a writer that fails after so many bytes.
type limited struct{ left int }

func (w *limited) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestAbuse39to41NothingIsShared writes to every place that another sandbox, a later
// one or a tool of the host might read.
func TestAbuse39to41NothingIsShared(t *testing.T) {
	requirePrograms(t, "go")
	const marker = "abuse-planted-7c2e"
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	plant := `
import os
places = ["/tmp", "/var/tmp", "/dev/shm", "/sandbox", "/run", "/", "/etc", "/usr/lib/python3/dist-packages", "/opt", "/srv", "/home", "/root",
          os.path.expanduser("~"), os.path.expanduser("~/.config"), os.path.expanduser("~/.ssh"), "/sandbox/.git/hooks", ` + fmt.Sprintf("%q", home) + `]
for variable in ("GOCACHE", "GOMODCACHE", "PIP_CACHE_DIR", "R_LIBS_USER", "GEM_HOME"):
    if variable in os.environ: places.append(os.environ[variable])
for root, dirs, _ in os.walk("/tmp"):
    places += [os.path.join(root, d) for d in dirs]
for place in places:
    for name in ("` + marker + `", ".bashrc", "post-checkout", "sitecustomize.py", ".bash_history"):
        try:
            os.makedirs(place, exist_ok=True)
            open(os.path.join(place, name), "a").write("` + marker + `")
        except OSError: pass
`
	const search = attempts + `
canary = "abuse-" + "planted-7c2e"
for root, dirs, names in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(root, d) not in ("/proc", "/sys")]
    for name in names:
        path = os.path.join(root, name)
        if canary in name: print("REACHED", path)
        if root.startswith(("/usr", "/opt/toolchains")) or not os.path.isfile(path) or os.path.getsize(path) > 1 << 20: continue
        try:
            if canary.encode() in open(path, "rb").read(): print("REACHED", path)
        except OSError: pass
if canary in str(os.environ): print("REACHED environ")
print("end")`
	python := &llmsandbox.RunOptions{Language: "python"}
	beside := open(t, llmsandbox.Options{Language: "go"})
	bad := open(t, llmsandbox.Options{Language: "go"})
	// 41: what a run sets for itself, its environment and its variables, ends with it.
	wantExit(t, run(t, bad, "import os\nos.environ['PLANTED'] = '"+marker+"'\nplanted = 1", python), 0)
	wantStdout(t, run(t, bad, "import os\nprint('PLANTED' in os.environ, 'planted' in globals())", python), "False False\n")
	wantExit(t, run(t, bad, plant, python), 0)
	wantNothingReached(t, run(t, beside, search, python)) // 39
	if err := bad.Close(); err != nil {
		t.Fatal(err)
	}
	later := open(t, llmsandbox.Options{Language: "go"})
	wantNothingReached(t, run(t, later, search, python))                       // 41
	for _, dir := range []string{os.TempDir(), home, "/var/tmp", "/dev/shm"} { // 39, 40
		if _, err := os.Lstat(filepath.Join(dir, marker)); err == nil {
			t.Errorf("%s of the host was written to", dir)
		}
	}
	for _, name := range []string{".bashrc", ".bash_history"} {
		if b, err := os.ReadFile(filepath.Join(home, name)); err == nil && strings.Contains(string(b), marker) {
			t.Errorf("%s of the host was written to", name)
		}
	}
}
