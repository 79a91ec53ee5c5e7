package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// standIn is what an index has as uv: it makes the module tiny itself.
const standIn = `#!python
import os, sys
site = os.path.join(sys.argv[sys.argv.index("--prefix") + 1], "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
os.makedirs(site)
with open(os.path.join(site, "tiny.py"), "w") as f:
    f.write("answer = 'by uv'")
`

// A uvCase is an index and a cache of libraries of its own.
type uvCase struct {
	backend *local.Backend
	index   string // a directory with a directory for each package
	mu      sync.Mutex
	asked   int // for uv
	said    []string
}

func newUVCase(t *testing.T) *uvCase {
	t.Helper()
	c := &uvCase{backend: local.New(&local.Options{CacheDir: t.TempDir()}), index: t.TempDir()}
	files := http.FileServer(http.Dir(c.index))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/uv/") {
			c.mu.Lock()
			c.asked++
			c.mu.Unlock()
		}
		files.ServeHTTP(w, r)
	}))
	for name, value := range map[string]string{"PIP_INDEX_URL": url, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""} {
		t.Setenv(name, value)
	}
	for _, name := range []string{"tiny", "other"} {
		testpackage.Wheel(t, c.directory(t, name), name, "1.0", map[string]string{name + ".py": "answer = 'by pip'\n"})
	}
	return c
}

func (c *uvCase) directory(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(c.index, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// installs opens a sandbox with libraries, and checks the answer of tiny, how often the index was
// asked for uv, and what was said.
func (c *uvCase) installs(t *testing.T, want string, asked int, says string, libraries ...string) {
	t.Helper()
	c.mu.Lock()
	c.asked, c.said = 0, nil
	c.mu.Unlock()
	o := llmsandbox.Options{Backend: c.backend, Language: "python", Libraries: libraries, Progress: func(p backend.Progress) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, p.Output)
	}}
	res, err := open(t, o).Run(testContext(t), "import tiny; print(tiny.answer)", nil)
	if err != nil || res.Stdout != want+"\n" {
		t.Fatalf("%+v, %v, want %s; said %q", res, err, want, c.said)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if (c.asked > 0) != (asked > 0) || !strings.Contains(strings.Join(c.said, "\n"), says) {
		t.Errorf("asked %d times for uv, said %q, want asked: %v, said %q", c.asked, c.said, asked > 0, says)
	}
}

// withoutUV skips where what this machine has comes first.
func withoutUV(t *testing.T) {
	t.Helper()
	if path, err := exec.LookPath("uv"); err == nil {
		t.Skipf("this machine has %s", path)
	}
}

// TestLibrariesByUV: uv is fetched from the configured index, once, and what cannot be had is not
// looked for again by the next list.
func TestLibrariesByUV(t *testing.T) {
	withoutUV(t)
	t.Run("of the index", func(t *testing.T) {
		c := newUVCase(t)
		testpackage.Wheel(t, c.directory(t, "uv"), "uv", "0.9.1", map[string]string{"uv-0.9.1.data/scripts/uv": standIn})
		c.installs(t, "by uv", 1, "", "tiny")
		c.installs(t, "by uv", 0, "", "tiny", "other")
	})
	t.Run("that the index lacks", func(t *testing.T) {
		c := newUVCase(t)
		c.installs(t, "by pip", 1, "installing without uv: libraries could not be installed: uv", "tiny")
		c.installs(t, "by pip", 0, "installing without uv: it could not be had not long ago", "tiny", "other")
	})
	t.Run("that has to be built", func(t *testing.T) {
		c := newUVCase(t)
		testpackage.SDist(t, c.directory(t, "uv"), "uv", "0.9.1", "def build(): raise SystemExit('code of uv ran')")
		c.installs(t, "by pip", 1, "installing without uv", "tiny")
		if said := strings.Join(c.said, "\n"); strings.Contains(said, "code of uv ran") {
			t.Errorf("%s\nwant no code of the package run", said)
		}
	})
	t.Run("of this machine", func(t *testing.T) {
		c := newUVCase(t)
		program, err := os.ReadFile("/bin/false")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "uv"), program, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		c.installs(t, "by pip", 0, "uv did not install: it ended with 1. Trying pip.", "tiny")
	})
}

// TestLibrariesByUVOfTheRegistry has the true one install a package with a command out of the
// machine's own registry.
func TestLibrariesByUVOfTheRegistry(t *testing.T) {
	o := llmsandbox.Options{Backend: local.New(&local.Options{CacheDir: t.TempDir()}), BestEffort: true, Language: "python", Libraries: []string{"pyjokes", "markupsafe"}}
	sb, err := llmsandbox.Open(testContext(t), &o)
	if err != nil {
		require(t, !strings.Contains(err.Error(), "could not reach"), "the registries cannot be reached from here")
		t.Fatal(err)
	}
	defer sb.Close()
	const code = `
import glob, importlib.metadata, markupsafe._speedups, os, subprocess
root = os.environ["SANDBOX_LIBRARIES"]
print([importlib.metadata.distribution(name).read_text("INSTALLER") for name in ("pyjokes", "markupsafe")])
print(subprocess.run(["pyjoke"], capture_output=True).returncode, open(root + "/bin/pyjoke").readline().startswith("#!" + os.path.dirname(root)))
print(sorted(os.listdir(root)))
sources = glob.glob(root + "/lib/**/*.py", recursive=True)
print(len(sources) > 5, len(glob.glob(root + "/lib/**/*.pyc", recursive=True)) == len(sources))`
	const want = "['uv', 'uv']\n0 False\n['bin', 'lib', 'site']\nTrue True\n"
	if res, err := sb.Run(testContext(t), code, nil); err != nil || res.Stdout != want {
		t.Errorf("%+v, %v, want Stdout = %q", res, err, want)
	}
}
