package backendtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// hostileLibrary is a package that looks around while it is built, and takes what it found and
// links to everywhere along.
const hostileLibrary = `import glob, os, socket
def attempt(what, do):
    try:
        return what + ": " + repr(do())[:2000]
    except BaseException as e:
        return what + ": failed: " + type(e).__name__
def connect(host, port):
    s = socket.create_connection((host, port), timeout=5)
    s.close()
    return "connected"
def build():
    found = [
        attempt("environment", lambda: sorted(os.environ.items())),
        attempt("user", lambda: os.getuid()),
        attempt("loopback", lambda: connect("127.0.0.1", %d)),
        attempt("metadata", lambda: connect("169.254.169.254", 80)),
        attempt("name", lambda: socket.getaddrinfo("example.com", 80)),
        attempt("home", lambda: open(%q).read()),
        attempt("root", lambda: open("/usr/evil", "w")),
        attempt("disk", lambda: os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize),
        attempt("folders", lambda: glob.glob("/tmp/.llmsandbox-lib-*")),
    ]
    for folder in glob.glob("/tmp/.llmsandbox-lib-*"):
        os.symlink("/etc/passwd", folder + "/passwd")
        os.symlink("../../../../../../../../../../" + %q, folder + "/up")
        os.symlink(".", folder + "/circle")
        with open(folder + "/setuid", "w") as f:
            f.write("x")
        os.chmod(folder + "/setuid", 0o4755)
    return {"hostile.py": "found = " + repr("\n".join(found))}
`

// abuse24HostileLibraries installs packages that attack the programs that install and use them.
func (s *suite) abuse24HostileLibraries(t *testing.T) {
	s.keepsLibraries(t)
	s.plantCanaries(t)
	hidden := hostTexts()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("LIBRARY-CANARY"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("build", func(t *testing.T) {
		dir, name := s.sdist(t, fmt.Sprintf(hostileLibrary, listening(t), secret, strings.TrimPrefix(secret, "/")))
		sb := s.open(t, libraries(dir, name))
		res := run(t, sb, "import hostile; print(hostile.found)", nil)
		wantExit(t, res, 0)
		for _, line := range []string{"loopback: failed", "metadata: failed", "name: failed", "home: failed", "root: failed"} {
			if !strings.Contains(res.Stdout, line) {
				t.Errorf("no %q in what it found:\n%s", line, res.Stdout)
			}
		}
		for _, text := range append(hidden, "LIBRARY-CANARY", "user: 0\n") {
			if strings.Contains(res.Stdout, text) {
				t.Errorf("it found %q:\n%s", text, res.Stdout)
			}
		}
		// Of layers it has seen its own and no other.
		if n := strings.Count(res.Stdout[strings.Index(res.Stdout, "folders: "):], ".llmsandbox-lib-"); n != 1 {
			t.Errorf("it saw %d directories of libraries, want 1:\n%s", n, res.Stdout)
		}
		// Its links lead where they lead inside, and nothing of the host came along.
		res = run(t, sb, `import glob, os
folder = glob.glob("/tmp/.llmsandbox-lib-*")[0]
print(os.readlink(folder + "/passwd"), os.path.exists(folder + "/up"), oct(os.stat(folder + "/setuid").st_mode))
for path in (folder + "/setuid", folder + "/new", folder):
    try:
        os.chmod(path, 0o777) if os.path.exists(path) else open(path, "w")
        print("changed")
    except OSError as e:
        print(e.errno)`, nil)
		wantStdout(t, res, "/etc/passwd False 0o100755\n30\n30\n30\n")
	})
	t.Run("a file of 1 TiB", func(t *testing.T) {
		dir, name := s.sdist(t, `import glob
def build():
    with open(glob.glob("/tmp/.llmsandbox-lib-*")[0] + "/huge", "wb") as f:
        f.truncate(1 << 40)
    return {}
`)
		// By the file system, where that has no files so large, or by us.
		failed := s.openFails(t, libraries(dir, name))
		if text := failed.Error(); !strings.Contains(text, "too large") {
			t.Errorf("the error says %q, want it to contain \"too large\"", text)
		}
	})
	t.Run("words without end", func(t *testing.T) {
		dir, name := s.sdist(t, `import os
def build():
    os.write(2, b"\x1b]0;title\x07" + b"\n" + b"x" * (1 << 20) + b"\n\xff\x00\x1b[31mred\n")
    raise SystemExit(1)
`)
		failed := s.openFails(t, libraries(dir, name))
		if len(failed.Output) > 20_000 || strings.ContainsAny(failed.Output, "\x1b\x00\x07") {
			t.Errorf("its last lines: %q, want len(failed.Output) <= 20_000, strings.ContainsAny(failed.Output, \"\\x1b\\x00\\x07\") = false", clip(failed.Output))
		}
	})
	t.Run("forged marks", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{})
		for _, forge := range []string{
			"os.mkdir(marks)\nfor i in range(3000): open(marks + '/.llmsandbox-lib-python-%032x' % i, 'w')\nopen(marks + '/\\n:evil', 'w')",
			"open(marks, 'w')", "os.symlink('/etc', marks)", "os.symlink(marks, marks)", "os.mkfifo(marks)", "os.mkdir(marks, 0)",
		} {
			code := "import os, shutil\nmarks = '/tmp/.llmsandbox-libraries'\n"
			wantExit(t, run(t, sb, code+forge, nil), 0)
			a, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
			if err != nil {
				t.Fatal(err)
			}
			res, err := a.Run(testContext(t), "import os; print(len(os.environ.get('PYTHONPATH', '').split(':')) < 100)", nil)
			if err != nil || res.Stdout != "True\n" {
				t.Errorf("%s: %+v, %v, want no error, Stdout = \"True\\n\"", forge, res, err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			wantExit(t, run(t, sb, code+"if os.path.isdir(marks) and not os.path.islink(marks):\n    os.chmod(marks, 0o700); shutil.rmtree(marks)\nelse:\n    os.remove(marks)", nil), 0)
		}
	})
	answers(t, s.open(t, llmsandbox.Options{}))
}

// listening is a port of this machine's loopback that has a listener.
func listening(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
