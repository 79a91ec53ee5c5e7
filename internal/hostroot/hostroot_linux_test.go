package hostroot

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

func prepare(t *testing.T, env map[string]string) *Root {
	t.Helper()
	opts := Options{}
	if env != nil {
		opts.Getenv = func(name string) string { return env[name] }
	}
	root, err := Prepare(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// inside runs a command in the root with bubblewrap.
func inside(t *testing.T, root *Root, argv ...string) (string, error) {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err == nil {
		err = exec.Command(bwrap, "--unshare-all", "--ro-bind", "/", "/", "/bin/true").Run()
	}
	if err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatalf("bubblewrap does not work here: %v", err)
		}
		t.Skipf("bubblewrap does not work here: %v", err)
	}
	args := []string{"--unshare-all", "--clearenv", "--ro-bind", root.Skeleton, "/"}
	for _, b := range root.Binds {
		args = append(args, "--ro-bind", b.Source, b.Target)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/sandbox", "--chdir", "/sandbox", "--setenv", "HOME", "/tmp")
	for _, e := range root.Env {
		k, v, _ := strings.Cut(e, "=")
		args = append(args, "--setenv", k, v)
	}
	out, err := exec.Command(bwrap, append(append(args, "--"), argv...)...).CombinedOutput()
	return string(out), err
}

func TestToolchainsWorkInside(t *testing.T) {
	root := prepare(t, nil)
	checks := map[string][]string{
		"python3": {"python3", "-c", "import ssl, sqlite3, ctypes, json, sys; ssl.create_default_context(); print(sys.version)"},
		"node":    {"node", "-e", "console.log(1)"}, "ruby": {"ruby", "-e", "require 'json'; puts 1"},
		"Rscript": {"Rscript", "--vanilla", "-e", "cat(1)"}, "bash": {"bash", "-c", "echo 1 | awk 1"},
		"java": {"java", "-version"}, "javac": {"javac", "-version"}, "go": {"go", "version"},
		"g++": {"bash", "-c", "echo 'int main(){}' > /tmp/a.cpp && g++ /tmp/a.cpp -o /tmp/a && /tmp/a"},
	}
	for _, f := range root.Toolchains {
		t.Run(f.Program, func(t *testing.T) {
			argv, ok := checks[f.Program]
			if !ok {
				argv = []string{f.Path, "--version"}
			}
			if out, err := inside(t, root, argv...); err != nil {
				t.Errorf("%v: %v\n%s\n%+v", argv, err, out, root)
			}
			if out, err := inside(t, root, "/bin/sh", "-c", "command -v "+f.Program); err != nil || strings.TrimSpace(out) != f.Path {
				t.Errorf("%s is %q inside, not %s", f.Program, out, f.Path)
			}
		})
	}
}

func TestSameInterpreterInsideAndOutside(t *testing.T) {
	const script = "import sys; print(sys.version)"
	outside, err := exec.Command("python3", "-c", script).Output()
	if err != nil {
		t.Skipf("no python3: %v", err)
	}
	if out, err := inside(t, prepare(t, nil), "python3", "-c", script); err != nil || out != string(outside) {
		t.Errorf("%v: %s, outside %s, want no error, out = %s", err, out, outside, string(outside))
	}
}

func TestSkeletonIsReadableAndHoldsNoSecrets(t *testing.T) {
	root := prepare(t, nil)
	err := filepath.WalkDir(root.Skeleton, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if d.IsDir() || strings.HasPrefix(path, filepath.Join(root.Skeleton, scriptDir)) {
			want = 0o755
		}
		if d.Type()&fs.ModeSymlink == 0 && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want ModeSymlink != 0 or Perm = %v", path, info.Mode(), want)
		}
		if strings.HasPrefix(d.Name(), "shadow") || d.Name() == "private" || d.Name() == "machine-id" {
			t.Errorf("%s was copied, want Name not beginning with \"shadow\", Name != \"private\", Name != \"machine-id\"", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	passwd, err := os.ReadFile(filepath.Join(root.Skeleton, "etc/passwd"))
	if err != nil || string(passwd) != synthetic["passwd"] {
		t.Errorf("passwd: %q, %v, want no error, string(passwd) = synthetic[\"passwd\"]", passwd, err)
	}
}

func TestPrepareOnceInParallel(t *testing.T) {
	dir := t.TempDir()
	roots := make([]*Root, 8)
	var wg sync.WaitGroup
	for i := range roots {
		wg.Go(func() {
			var err error
			if roots[i], err = Prepare(dir, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, r := range roots[1:] {
		if !reflect.DeepEqual(r, roots[0]) {
			t.Errorf("%+v is not %+v", r, roots[0])
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v, want no error, len(entries) = 1", entries, err)
	}
}

func touch(t *testing.T, home string, names ...string) {
	t.Helper()
	for _, n := range names {
		p := filepath.Join(home, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func bindOf(r *Root, target string) string {
	for _, b := range r.Binds {
		if b.Target == target {
			return b.Source
		}
	}
	return ""
}

func TestToolchainsInHomes(t *testing.T) {
	home := t.TempDir()
	touch(t, home, ".pyenv/shims/python3", ".pyenv/versions/3.9.1/bin/python3", ".pyenv/versions/3.9.1/lib/python3.9/os.py",
		".nvm/versions/node/v20/bin/node", ".nvm/versions/node/v20/include/node/node.h",
		".local/bin/ruby", ".local/lib/ruby/3", "bin/go", "src/runtime/runtime.go", "secret")
	if err := os.WriteFile(filepath.Join(home, ".pyenv/version"), []byte("3.9.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, ".pyenv/shims") + ":" + filepath.Join(home, ".nvm/versions/node/v20/bin") + ":" + filepath.Join(home, ".local/bin") + ":" + filepath.Join(home, "bin") + ":.:"
	r := prepare(t, map[string]string{"HOME": home, "PATH": path})
	if got, want := bindOf(r, "/opt/toolchains/python"), filepath.Join(home, ".pyenv/versions/3.9.1"); got != want {
		t.Errorf("python: %q, want %q", got, want)
	}
	if got, want := bindOf(r, "/opt/toolchains/javascript"), filepath.Join(home, ".nvm/versions/node/v20"); got != want {
		t.Errorf("node: %q, want %q", got, want)
	}
	for _, b := range r.Binds {
		if b.Source == home || b.Source == filepath.Join(home, ".local") || strings.HasPrefix(b.Target, home) {
			t.Errorf("%v reveals the home, want Source != %v, b.Source != filepath.Join(home, \".local\"), Target not beginning with %q", b, home, home)
		}
	}
}

func TestVirtualEnvironment(t *testing.T) {
	home := t.TempDir()
	touch(t, home, "venv/pyvenv.cfg", "venv/lib/python3.11/site-packages/x.py")
	if err := os.MkdirAll(filepath.Join(home, "venv/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/python3", filepath.Join(home, "venv/bin/python3")); err != nil {
		t.Fatal(err)
	}
	r := prepare(t, map[string]string{"HOME": home, "VIRTUAL_ENV": filepath.Join(home, "venv"), "PATH": "/usr/bin"})
	if got := bindOf(r, "/opt/toolchains/venv"); got != filepath.Join(home, "venv/lib/python3.11/site-packages") {
		t.Errorf("packages: %q of %+v, want got = filepath.Join(home, \"venv/lib/python3.11/site-packages\")", got, r)
	}
}

func BenchmarkPrepareCached(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if _, err := Prepare(dir, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCopiesKeepTheirTimes: what caches were made from must not look newer than them.
func TestCopiesKeepTheirTimes(t *testing.T) {
	root := prepare(t, nil)
	compared := 0
	err := filepath.WalkDir(filepath.Join(root.Skeleton, "etc"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(filepath.Join(root.Skeleton, "etc"), path)
		if err != nil {
			return err
		}
		if _, ours := synthetic[rel]; ours {
			return nil
		}
		copied, err := d.Info()
		if err != nil {
			return err
		}
		original, err := os.Stat(filepath.Join("/etc", rel))
		if err != nil {
			return err
		}
		compared++
		if !copied.ModTime().Equal(original.ModTime()) {
			t.Errorf("/etc/%s is of %v, its copy of %v, want copied.ModTime().Equal(original.ModTime()) = true", rel, original.ModTime(), copied.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if compared == 0 {
		t.Skip("nothing of this host's /etc is copied")
	}
}

// TestSystemDirs: where the host's shell looks for programs below /usr, it is looked inside, too, but last.
func TestSystemDirs(t *testing.T) {
	root := prepare(t, map[string]string{"PATH": "/usr/lib:/usr/no-such-directory:/usr/bin:/etc:/usr/lib"})
	i := slices.IndexFunc(root.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	path := strings.Split(strings.TrimPrefix(root.Env[i], "PATH="), ":")
	at, count := slices.Index(path, "/usr/lib"), 0
	for _, dir := range path {
		if dir == "/usr/lib" || dir == "/etc" || dir == "/usr/no-such-directory" {
			count++
		}
	}
	if count != 1 || at < slices.Index(path, "/bin") {
		t.Errorf("PATH is %q, want /usr/lib once behind /bin, and neither /etc nor what is not there", path)
	}
}
