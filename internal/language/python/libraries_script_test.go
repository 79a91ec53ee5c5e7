//go:build unix

package python

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakePip runs the script of its arguments, with something in the place of pip: it installs
// "plain" and "native" where pip puts them, and "hostile", which leaves what leads astray who
// looks for packages. Nothing else is started.
const fakePip = `import os, runpy, subprocess, sys, types
version = "python%d.%d" % sys.version_info[:2]
folder, library = sys.argv[2], sys.argv[-1]
def put(*path):
    path = os.path.join(folder, *path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("where = %r" % os.path.relpath(path, folder))
def install(*args, **options):
    if args[0][1] == "-c":  # has matplotlib look for fonts
        sys.path.insert(0, options["env"]["PYTHONPATH"])
        import plain
        os.makedirs(options["env"]["MPLCONFIGDIR"])
        for name in "fontlist-v1.json", "other":
            with open(os.path.join(options["env"]["MPLCONFIGDIR"], name), "w") as f:
                f.write(plain.where)
        return types.SimpleNamespace(returncode=1)
    put("lib", version, "site-packages", "plain.py")
    if library == "native":
        put("lib64", version, "site-packages", "native.py")
        put("lib64", version, "site-packages", "plain.py")
    if library == "plots":
        put("lib", version, "site-packages", "matplotlib", "font_manager.py")
        put("lib", version, "site-packages", "matplotlib", "tests", "font_manager.py")
    if library == "hostile":
        os.chdir(folder)
        put("lib", version, "site-packages", "python", "site-packages", "inside.py")
        put("data", "outer", "inner", "python3", "more", "python3", "site-packages", "far.py")
        put("outside", "site-packages", "no.py")
        for name, target in ("circle", "."), ("lib/circle", ".."), ("aaa", "lib"), ("python", "outside"), ("up", "/"):
            os.symlink(target, name)
        os.mkdir("python3")
        os.symlink("../outside/site-packages", "python3/site-packages")
        os.mkdir("python4")
        os.mkfifo("python4/site-packages")
        os.mkfifo("lib/fifo.py")
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        os.chdir("/")
    return types.SimpleNamespace(returncode=0)
subprocess.run = install
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
`

// TestConfiguration asks the pips that there are.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"user/.config/pip/pip.conf": "[global]\nindex-url = https://user.test\ntimeout = 7\n[install]\nretries = 3\n",
		"machine/pip/pip.conf":      "[global]\nindex-url = https://machine.test\nextra-index-url =\n  https://b.test\n  https://c.test\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	for _, python := range interpreters(t) {
		if exec.Command(python, "-m", "pip", "--version").Run() != nil {
			continue
		}
		asked++
		cmd := exec.Command(python, "-c", configuration)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "user"), "XDG_CONFIG_DIRS=" + filepath.Join(dir, "machine"), "PIP_TIMEOUT=9"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", python, err)
		}
		own, list, _ := strings.Cut(string(out), "\n")
		if f := strings.Fields(own); len(f) != 2 || !strings.HasPrefix(f[0], "https://") {
			t.Errorf("%s: its own index is %q, want an address and a host", python, own)
		}
		got := settings(list)
		for name, want := range map[string]string{"index-url": "https://user.test", "extra-index-url": "\nhttps://b.test\nhttps://c.test", "timeout": "9", "retries": "3"} {
			if got[name] != want {
				t.Errorf("%s: %s is %q, want %q, of\n%s", python, name, got[name], want, list)
			}
		}
	}
	if asked == 0 {
		t.Skip("no Python here has pip")
	}
}

// What the script calls site has what pip installed, whatever else packages wrote.
func TestLibrariesScript(t *testing.T) {
	for _, python := range interpreters(t) {
		out, err := exec.Command(python, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])").Output()
		if err != nil {
			t.Fatal(err)
		}
		lib := filepath.Join("lib", strings.TrimSpace(string(out)), "site-packages")
		for _, c := range []struct {
			library, link string
			want, fonts   []string
		}{
			{"plain", lib, []string{"plain.py"}, nil},
			{"hostile", lib, []string{"plain.py", "python"}, nil},
			{"native", "", []string{"native.py", "plain.py"}, nil},
			{"plots", lib, []string{"matplotlib", "plain.py"}, []string{"fontlist-v1.json"}},
		} {
			t.Run(python+" "+c.library, func(t *testing.T) {
				dir := t.TempDir()
				directory, site := filepath.Join(dir, "lib"), filepath.Join(dir, "lib", "site")
				for name, text := range map[string]string{"libraries.py": string(installer), "pip.py": fakePip} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				out, err := exec.Command(python, "-B", filepath.Join(dir, "pip.py"), filepath.Join(dir, "libraries.py"), directory, filepath.Join(dir, "scratch"), "", "--", c.library).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if link, _ := os.Readlink(site); link != c.link {
					t.Errorf("site leads to %q, want %q", link, c.link)
				}
				names, err := filepath.Glob(filepath.Join(site, "[a-z]*"))
				for i, name := range names {
					names[i] = filepath.Base(name)
				}
				if err != nil || !slices.Equal(names, c.want) {
					t.Errorf("in it are %q, %v, want %q", names, err, c.want)
				}
				fonts, err := filepath.Glob(filepath.Join(directory, "fonts", "*"))
				for i, name := range fonts {
					fonts[i] = filepath.Base(name)
				}
				if err != nil || !slices.Equal(fonts, c.fonts) {
					t.Errorf("fonts has %q, %v, want %q", fonts, err, c.fonts)
				}
				for place, want := range map[string]int{"plain.py": 1, "matplotlib/font_manager.py": len(c.fonts), "matplotlib/tests/font_manager.py": 0} {
					dir, name := filepath.Split(filepath.Join(lib, place))
					compiled, err := filepath.Glob(filepath.Join(directory, dir, "__pycache__", strings.TrimSuffix(name, "py")+"*"))
					if err != nil || len(compiled) != want {
						t.Errorf("%s is compiled as %q, %v, want %d files", place, compiled, err, want)
					}
				}
				text, err := os.ReadFile(filepath.Join(site, "plain.py"))
				if want := "where = '" + filepath.Join(lib, "plain.py") + "'"; err != nil || string(text) != want {
					t.Errorf("%q, %v, want %q", text, err, want)
				}
			})
		}
	}
}
