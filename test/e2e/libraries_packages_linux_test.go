package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testcommand"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// withPackageTool puts the true uv into the PATH, out of the machine's own registry.
func withPackageTool(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("python3", "-m", "pip", "install", "--target", dir, "--no-deps", "--only-binary", ":all:", "uv>=0.8,<0.14").CombinedOutput()
	require(t, err == nil, fmt.Sprintf("uv cannot be had: %v: %s", err, out))
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
}

// A packageCase is an index that tells digests, and a cache of libraries of its own.
type packageCase struct {
	cache, files string
	mu           sync.Mutex
	fetched      []string          // files
	claims       map[string]string // digests of files, where they are not the true ones
	hidden       []string          // files that the index does not list
	withheld     string            // a file that is asked for in vain
	asked        chan struct{}     // is sent when it was asked for
	said         []string
}

func newPackageCase(t *testing.T) *packageCase {
	t.Helper()
	c := &packageCase{cache: t.TempDir(), files: t.TempDir(), claims: map[string]string{}}
	url := serve(t, c)
	for name, value := range map[string]string{"PIP_INDEX_URL": url + "/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""} {
		t.Setenv(name, value)
	}
	return c
}

func (c *packageCase) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := strings.CutPrefix(r.URL.Path, "/files/")
	c.mu.Lock()
	if ok && file == c.withheld && r.Method == http.MethodGet && r.Header.Get("Range") == "" {
		c.mu.Unlock()
		c.asked <- struct{}{}
		<-r.Context().Done()
		return
	}
	defer c.mu.Unlock()
	if ok {
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
			c.fetched = append(c.fetched, file)
		}
		http.ServeFile(w, r, filepath.Join(c.files, file))
		return
	}
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple/"), "/")
	w.Header().Set("Content-Type", "text/html")
	files, _ := filepath.Glob(filepath.Join(c.files, name+"-*"))
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil || slices.Contains(c.hidden, filepath.Base(path)) {
			continue
		}
		digest := c.claims[filepath.Base(path)]
		if digest == "" {
			digest = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		fmt.Fprintf(w, "<a href=\"/files/%[1]s#sha256=%[2]s\">%[1]s</a>\n", filepath.Base(path), digest)
	}
}

func (c *packageCase) wheel(t *testing.T, name, version string, files map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	testpackage.Wheel(t, c.files, name, version, files)
}

// options are those of a sandbox with libraries.
func (c *packageCase) options(libraries ...string) llmsandbox.Options {
	return llmsandbox.Options{
		Backend: local.New(&local.Options{CacheDir: c.cache}), BestEffort: true, Language: "python", Libraries: libraries,
		Progress: func(p backend.Progress) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.said = append(c.said, p.Output)
		},
	}
}

// prints runs code with libraries, and checks what it prints, which files were fetched, and whether
// the list was made of packages that are kept.
func (c *packageCase) prints(t *testing.T, code, want string, fetched []string, kept bool, libraries ...string) {
	t.Helper()
	c.mu.Lock()
	c.fetched, c.said = nil, nil
	c.mu.Unlock()
	res, err := open(t, c.options(libraries...)).Run(testContext(t), code, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || res.Stdout != want+"\n" {
		t.Fatalf("%v: %+v, %v, want %s; said %s", libraries, res, err, want, strings.Join(c.said, "\n"))
	}
	slices.Sort(c.fetched)
	if fetched != nil && !slices.Equal(slices.Compact(c.fetched), fetched) {
		t.Errorf("%v: fetched %q, want %q", libraries, c.fetched, fetched)
	}
	if without := strings.Contains(strings.Join(c.said, "\n"), "installing without cached packages"); without == kept {
		t.Errorf("%v: said %s, want packages kept: %v", libraries, strings.Join(c.said, "\n"), kept)
	}
}

const (
	showVictim = "import victim; print(victim.answer)"
	wheelName  = "-1.0-py3-none-any.whl"
)

// TestPackagesAreKept: a package is fetched once for all lists, which versions there are is asked
// for each time, and what is not there as a file of a known digest is installed as it would be without.
func TestPackagesAreKept(t *testing.T) {
	withPackageTool(t)
	none := []string{}
	t.Run("shared by lists", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n", "shared/__init__.py": ""})
		c.wheel(t, "other", "1.0", map[string]string{"other.py": "answer = 2\n", "shared/__init__.py": ""})
		c.prints(t, showVictim, "1", []string{"victim" + wheelName}, true, "victim")
		c.prints(t, "import victim, other; print(victim.answer + other.answer)", "3", []string{"other" + wheelName}, true, "victim", "other")
		c.prints(t, showVictim, "1", none, true, "victim<2")
		c.wheel(t, "victim", "1.1", map[string]string{"victim.py": "answer = 11\n"})
		c.prints(t, showVictim, "11", []string{"victim-1.1-py3-none-any.whl"}, true, "victim<3")
		c.hidden = []string{"victim-1.1-py3-none-any.whl"} // it is withdrawn
		c.prints(t, showVictim, "1", none, true, "victim<4")
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 'new'\n"}) // another file of that name
		c.prints(t, showVictim, "new", []string{"victim" + wheelName}, true, "victim<5")
	})
	t.Run("that have to be built", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
		testpackage.SDist(t, c.files, "built", "1.0", "def build(): return {'built.py': 'answer = 2'}")
		c.prints(t, "import victim, built; print(victim.answer + built.answer)", "3", nil, false, "victim", "built")
		layers, err := local.New(&local.Options{CacheDir: c.cache}).Layers()
		if err != nil {
			t.Fatal(err)
		}
		list, err := layers.List(testContext(t))
		if err != nil || slices.ContainsFunc(list, func(l backend.LayerInfo) bool { return l.Package }) {
			t.Errorf("layers %+v, %v, want none of a package", list, err)
		}
	})
	t.Run("by two at once", func(t *testing.T) {
		c := newPackageCase(t)
		libraries := []string{"a", "b", "c", "d"}
		for _, name := range libraries {
			c.wheel(t, name, "1.0", map[string]string{name + ".py": "answer = 1\n"})
		}
		var wg sync.WaitGroup
		for i := range libraries {
			wg.Go(func() {
				o := c.options(libraries[:i+1]...)
				res, err := llmsandbox.Run(testContext(t), "import a; print(a.answer)", &o)
				if err != nil || res.Stdout != "1\n" {
					t.Errorf("%+v, %v, want 1", res, err)
				}
			})
		}
		wg.Wait()
		slices.Sort(c.fetched)
		if want := []string{"a" + wheelName, "b" + wheelName, "c" + wheelName, "d" + wheelName}; !slices.Equal(slices.Compact(slices.Clone(c.fetched)), want) {
			t.Errorf("fetched %q, want %q", c.fetched, want)
		}
	})
	t.Run("after an installer that was killed", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
		c.withheld, c.asked = "victim"+wheelName, make(chan struct{}, 10)
		commands, err := testcommand.In(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(commands, "llmsandbox"), "run", "--quiet", "--lib", "victim", "-c", "pass")
		cmd.Env = append(os.Environ(), "LLMSANDBOX_CACHE_DIR="+c.cache)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.asked:
		case <-testContext(t).Done():
			t.Error("the package was not fetched")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		c.mu.Lock()
		c.withheld = ""
		c.mu.Unlock()
		c.prints(t, showVictim, "1", nil, true, "victim")
		c.onlyFiles(t)
	})
	t.Run("on a disk that is full", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("mounting a small disk needs root")
		}
		c := newPackageCase(t)
		c.cache = filepath.Join(c.cache, "small")
		if err := os.Mkdir(c.cache, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", c.cache, "tmpfs", 0, "size=80m,mode=0700"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(c.cache, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
		c.wheel(t, "large", "1.0", map[string]string{"large.txt": strings.Repeat("x", 100<<20)})
		c.prints(t, showVictim, "1", nil, true, "victim")
		o := c.options("victim", "large")
		if sb, err := llmsandbox.Open(testContext(t), &o); err == nil || !strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("%v, %v, want no space left", sb, err)
		}
		c.prints(t, showVictim, "1", none, true, "victim<2")
	})
}

// TestHostilePackages: whatever a package holds or does, another one is what it was in the next list.
func TestHostilePackages(t *testing.T) {
	withPackageTool(t)
	place := func(t *testing.T) string {
		t.Helper()
		out, err := exec.Command("python3", "-c", "import sys; print('lib/python%d.%d/site-packages' % sys.version_info[:2])").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}(t)
	const evil = "answer = 'evil'\n"
	up := strings.Repeat("../", 12)
	for name, files := range map[string]map[string]string{
		"data in another package's place": {"evil-1.0.data/data/" + place + "/victim.py": evil, "evil-1.0.data/purelib/victim.py": evil},
		"the same file":                   {"victim.py": evil},
		"compiled modules":                {"__pycache__/victim.cpython-311.pyc": "\x00\x00\x00\x00", "__pycache__/victim.cpython-312.pyc": "\x00"},
		"names that lead out":             {"../../../../../victim.py": evil, up + "tmp/.llmsandbox-lib-lock/pylock.toml": "", "/tmp/victim.py": evil},
		"a script's name":                 {"evil-1.0.data/scripts/../../../victim.py": evil},
		"an entry point's name":           {"evil-1.0.dist-info/entry_points.txt": "[console_scripts]\n" + up + "tmp/.llmsandbox-lib-x = evil:main\n"},
		"another package's description":   {"victim-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: victim\nVersion: 1.0\n", "victim-1.0.dist-info/RECORD": "victim.py,,\n../../../../../etc/passwd,,\n"},
		"code at the start of Python":     {"sitecustomize.py": "import victim\nvictim.answer = 'evil'\n", "evil.pth": "import sys; sys.modules['victim'] = None\n"},
		"names of the cache":              {"evil-1.0.data/data/site/x": "", "evil-1.0.data/data/fonts/x": "", "evil-1.0.data/data/bin/python3": "#!/bin/sh\necho evil\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPackageCase(t)
			c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
			c.wheel(t, "evil", "1.0", files)
			o := c.options("evil", "victim")
			if sb, err := llmsandbox.Open(testContext(t), &o); err == nil { // that it fails is fine
				_, rerr := sb.Run(testContext(t), showVictim, nil)
				if cerr := sb.Close(); rerr != nil || cerr != nil {
					t.Fatal(rerr, cerr)
				}
			}
			c.prints(t, showVictim, "1", nil, true, "victim")
			c.onlyFiles(t)
		})
	}
	t.Run("a link", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim/__init__.py": "answer = 1\n"})
		c.linkWheel(t, "evil", map[string]string{"victim": "/etc", "evil": "../../../../../../../../../../etc"})
		o := c.options("evil", "victim")
		if sb, err := llmsandbox.Open(testContext(t), &o); err == nil {
			if err := sb.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c.prints(t, showVictim, "1", nil, true, "victim")
		c.onlyFiles(t)
	})
	t.Run("a file of another digest", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": evil})
		c.claims["victim"+wheelName] = strings.Repeat("0", 64)
		o := c.options("victim")
		if sb, err := llmsandbox.Open(testContext(t), &o); err == nil {
			t.Errorf("%v is open with it: %v, want an error", sb.ID(), sb.Close())
		}
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
		delete(c.claims, "victim"+wheelName)
		c.prints(t, showVictim, "1", nil, true, "victim")
	})
	t.Run("code that is built", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
		testpackage.SDist(t, c.files, "evil", "1.0", `def build():
    import glob
    for path in glob.glob("/tmp/.llmsandbox*/**", recursive=True) + glob.glob("/tmp/.install/**", recursive=True):
        try:
            with open(path, "ab") as f:
                f.write(b"evil")
        except OSError:
            pass
    return {"evil.py": ""}
`)
		o := c.options("evil", "victim")
		if sb, err := llmsandbox.Open(testContext(t), &o); err == nil {
			if err := sb.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c.prints(t, showVictim, "1", nil, true, "victim")
	})
	t.Run("code in a sandbox", func(t *testing.T) {
		c := newPackageCase(t)
		c.wheel(t, "victim", "1.0", map[string]string{"victim.py": "answer = 1\n"})
		const code = `
import os, victim
failed = 0
for root, dirs, names in os.walk(os.environ["SANDBOX_LIBRARIES"]):
    for path in [root] + [os.path.join(root, name) for name in names]:
        for change in lambda: open(path, "w"), lambda: os.chmod(path, 0o777), lambda: os.remove(path), lambda: os.utime(path), lambda: os.truncate(path, 0):
            try:
                change()
                print("changed", path)
            except OSError:
                failed += 1
print(failed > 10)`
		c.prints(t, code, "True", nil, true, "victim")
		c.prints(t, showVictim, "1", nil, true, "victim<2")
	})
}

// TestFontsAreFoundByTheirPackages: what finds the fonts of matplotlib for all lists has no package
// of the list but those that it needs.
func TestFontsAreFoundByTheirPackages(t *testing.T) {
	withPackageTool(t)
	c := newPackageCase(t)
	c.wheel(t, "matplotlib", "1.0", map[string]string{"matplotlib/__init__.py": "", "matplotlib/font_manager.py": `
import os, sys
os.makedirs(os.environ["MPLCONFIGDIR"])
with open(os.path.join(os.environ["MPLCONFIGDIR"], "fontlist-1.json"), "w") as f:
    f.write("evil" if "evil" in sys.modules else "good")
`})
	c.wheel(t, "evil", "1.0", map[string]string{"sitecustomize.py": "import evil", "evil.py": "", "numpy.py": ""})
	const show = `import os; print(open(os.environ["SANDBOX_LIBRARIES"] + "/fonts/fontlist-1.json").read())`
	c.prints(t, show, "good", nil, true, "matplotlib", "evil")
	c.prints(t, show, "good", []string{}, true, "matplotlib")
}

// onlyFiles makes sure that the cache has nothing but layers, and no link leads out of one by a relative way.
func (c *packageCase) onlyFiles(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.cache, "layers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "python-") {
			t.Errorf("%s is among the layers", e.Name())
		}
	}
	err = filepath.WalkDir(c.cache, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 {
			t.Errorf("%s is %v", path, d.Type())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// linkWheel makes a wheel whose members are symbolic links.
func (c *packageCase) linkWheel(t *testing.T, name string, links map[string]string) {
	t.Helper()
	f, err := os.Create(filepath.Join(c.files, name+wheelName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	info := name + "-1.0.dist-info/"
	add := func(path, text string, mode fs.FileMode) {
		h := zip.FileHeader{Name: path}
		h.SetMode(mode)
		w, err := z.CreateHeader(&h)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	record := info + "RECORD,,\n"
	for path, target := range links {
		add(path, target, fs.ModeSymlink|0o777)
		record += path + ",,\n"
	}
	add(info+"METADATA", "Metadata-Version: 2.1\nName: "+name+"\nVersion: 1.0\n", 0o644)
	add(info+"WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n", 0o644)
	add(info+"RECORD", record+info+"METADATA,,\n"+info+"WHEEL,,\n", 0o644)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
