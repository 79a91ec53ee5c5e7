package backendtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// hostileArtifacts fills the artifacts directory with what is none. %q is a file of the host.
const hostileArtifacts = `
import os, socket
os.chdir("/sandbox/artifacts")
open("plain.txt", "w").write("plain")
def link(name, target):
    try: os.symlink(target, name)
    except OSError as e: print(name, e)
link("absolute", "/etc/passwd"); link("canary", %q); link("up", "../../../../etc/passwd")
link("folder", "/"); link("self", "self"); link("a", "b"); link("b", "a")
link("proc", "/proc/1/environ"); link("root", "/proc/1/root")
os.mkdir("sub"); link("sub/loop", "..")
os.mkfifo("fifo"); os.mkfifo("sub/fifo")
try: s = socket.socket(socket.AF_UNIX); s.bind("socket")
except OSError: pass
try: os.mknod("device", 0o20666, os.makedev(1, 3))
except OSError: pass
with open("sparse.bin", "w") as f:
    try: f.truncate(1 << 40)
    except OSError: f.truncate(1 << 33)
for name in ("new\nline", b"bad\xff\xfe", "-rf", "\x1b[2J", "back\\slash"):
    open(name, "w").write("odd")
deep = os.open(".", os.O_RDONLY)
for _ in range(2000):
    os.mkdir("d", dir_fd=deep)
    below = os.open("d", os.O_RDONLY, dir_fd=deep); os.close(deep); deep = below
open(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=deep), "w").write("deep")
`

// abuse10to31Artifacts has programs that put into the artifacts directory what must not
// come out, or not all of it.
func (s *suite) abuse10to31Artifacts(t *testing.T) {
	secret := plantFile(t, os.TempDir())
	t.Run("links, special files, sparse files, deep folders", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{})
		start := time.Now()
		res := run(t, sb, fmt.Sprintf(hostileArtifacts, secret), nil)
		wantExit(t, res, 0)
		var names []string
		for _, a := range res.Artifacts {
			names = append(names, a.Name)
			if text := string(a.Data); strings.Contains(text, abuse.Canary) || strings.Contains(text, "root:") || len(a.Data) > 10 {
				t.Errorf("%s has %q, want text without Canary, text without \"root:\", len(a.Data) <= 10", a.Name, clip(text))
			}
		}
		slices.Sort(names)
		want := []string{"_[2J", "bad_", "new_line", "plain.txt", "rf", "slash"}
		if !slices.Equal(names, want) {
			t.Errorf("artifacts %q, want %q", names, want)
		}
		said := strings.Join(res.ArtifactsDropped, "\n")
		if !strings.Contains(said, "sparse.bin was left out") || !strings.Contains(said, "not all new files were considered") {
			t.Errorf("left out: %q, want said containing \"sparse.bin was left out\", said containing \"not all new files were considered\"", said)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v, want at most 1m", took)
		}
	})
	t.Run("many", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{})
		res := run(t, sb, `
import os
os.mkdir("/sandbox/artifacts/many"); os.chdir("/sandbox/artifacts/many")
for n in range(60000):
    try: os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))
    except OSError: break
`, nil)
		wantExit(t, res, 0)
		if len(res.Artifacts) != 64 || !strings.Contains(strings.Join(res.ArtifactsDropped, "\n"), "at most 64") {
			t.Errorf("%d artifacts, left out: %q, want len(res.Artifacts) = 64, it to contain \"at most 64\"", len(res.Artifacts), res.ArtifactsDropped)
		}
		answers(t, sb)
	})
	t.Run("swapped while they are read", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{})
		// The swapper outlives the run, so it goes on while its artifacts are read.
		res := run(t, sb, `
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", '''
import os
os.chdir("/sandbox/artifacts")
while True:
    for n in range(40):
        os.makedirs(f"f{n}", exist_ok=True)
        open(f"f{n}/passwd", "w").write("mine")
        os.rename(f"f{n}", "aside")
        os.symlink("/etc", f"f{n}")
        os.unlink(f"f{n}")
        os.rename("aside", f"f{n}")
        open(f"y{n}", "w").write("mine")
        os.symlink("/etc/passwd", "next"); os.rename("next", f"y{n}")
        os.unlink(f"y{n}")
'''])
time.sleep(0.3)
`, &llmsandbox.RunOptions{KeepChildren: true})
		wantExit(t, res, 0)
		for _, a := range res.Artifacts {
			if text := string(a.Data); text != "mine" && text != "" {
				t.Errorf("%s has %q, want text = \"mine\" or text empty", a.Name, clip(text))
			}
		}
	})
	t.Run("the folder is a link, a file, or gone", func(t *testing.T) {
		for _, code := range []string{
			"os.symlink('/etc', 'artifacts')",
			"open('artifacts', 'w').write('x')",
			"pass",
			"os.mkdir('artifacts'); open('artifacts/x', 'w').write('x'); shutil.rmtree('/tmp', ignore_errors=True)",
		} {
			sb := s.open(t, llmsandbox.Options{})
			for i := range 2 {
				res := run(t, sb, `
import os, shutil
if os.path.isdir("artifacts") and not os.path.islink("artifacts"): shutil.rmtree("artifacts")
elif os.path.lexists("artifacts"): os.unlink("artifacts")
`+code, nil)
				wantExit(t, res, 0)
				for _, a := range res.Artifacts {
					if strings.Contains(string(a.Data), "root:") {
						t.Errorf("run %d of %q: %s has %q, want Data without \"root:\"", i, code, a.Name, clip(string(a.Data)))
					}
				}
			}
			wantStdout(t, run(t, sb, "print(6 * 7)", nil), "42\n")
		}
	})
}

// abuse81to82Captures has programs that write into the capture directory of their run what
// no capture writes.
func (s *suite) abuse81to82Captures(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	res := run(t, sb, `
import glob, os
root, = glob.glob("/tmp/.llmsandbox-*/capture")
os.chdir(root)
def put(number, description, content=b"x"):
    with open(number + ".data", "wb") as f: f.write(content)
    with open(number + ".json", "w") as f: f.write(description)
put("900000", '{"name": "../../evil.png", "mime": "image/png", "title": "\\u001b[2Jred"}', b"<script>alert(1)</script>")
put("900001", '{"name": "bomb.json"' + "[" * 100000)
put("900002", '{"name": "chart.png", "chart": {"axes": [{"series": [{"type": "line", "y": {"a": 1}}]}]}}')
put("900003", '{"name": "form", "also": [{"mime": "text/plain", "file": "/etc/passwd"}]}')
os.mkfifo("900004.data"); open("900004.json", "w").write('{"name": "fifo"}')
os.symlink("/etc/passwd", "900005.data"); open("900005.json", "w").write('{"name": "link"}')
open("900006.json", "w").truncate(1 << 30)
put("900007", '{"name": "page.html", "mime": "text/html"}', b"<script>alert(1)</script>")
open("dropped", "w").write("\x1b]0;owned\x07said\n")
`, nil)
	wantExit(t, res, 0)
	if got, want := artifactNames(res.Artifacts), []string{"evil.png", "chart.png", "form", "page.html"}; !slices.Equal(got, want) {
		t.Fatalf("artifacts %q, want %q; left out: %q", got, want, res.ArtifactsDropped)
	}
	if a := res.Artifacts[0]; a.MIME != "application/octet-stream" || a.Title != "[2Jred" {
		t.Errorf("what is no picture: %s, titled %q, want MIME = \"application/octet-stream\", Title = \"[2Jred\"", a.MIME, a.Title)
	}
	if a := res.Artifacts[1]; a.Chart != nil {
		t.Errorf("a chart that is none: %+v, want nil", a.Chart)
	}
	said := strings.Join(res.ArtifactsDropped, "\n")
	for _, want := range []string{"900001", "chart data", "further form", "fifo", "link", "900006", "said"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said of in %q", want, said)
		}
	}
	if strings.Contains(said, "\x1b") {
		t.Errorf("%q, want it not to contain \"\\x1b\"", said)
	}
	answers(t, sb)
}
