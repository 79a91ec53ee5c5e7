//go:build unix

package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeWheelTools runs the script of its arguments with something in the place of uv: what it installs is
// of the same shape.
const fakeWheelTools = `import json, os, runpy, subprocess, sys, types
fails = os.environ.pop("FAKE_FAILS", "")
def put(*path):
    path = os.path.join(*path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("")
def run(argv, env, **options):
    print(json.dumps({"argv": argv, "env": ["%s=%s" % e for e in env.items()]}), flush=True)
    value = lambda option: argv[argv.index(option) + 1]
    if argv[1] == "-c":
        put(env["MPLCONFIGDIR"], "fontlist-1.json")
    elif argv[2] == "compile":
        put(value("--output-file"))
    elif not fails:
        prefix = value("--prefix")
        place = os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        for name in "a.py", "p/b.py", "p/tests/c.py", "a-1.dist-info/RECORD":
            put(place, *name.split("/"))
        put(prefix, ".lock")
    return types.SimpleNamespace(returncode=int(fails or 0))
subprocess.run = run
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
`

// TestWheelScripts: what is locked and installed, with which options, and what is left.
func TestWheelScripts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"wheels.py": string(wheelsInstaller), "tools.py": fakeWheelTools} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const index = "PIP_INDEX_URL=https://a.test/simple"
	for name, c := range map[string]struct {
		command string
		args    []string
		env     []string
		argv    string   // what the first program is started with, or a part of it; empty: none is
		left    []string // below the directory, with V for the interpreter's version
		fails   bool
	}{
		"a lock": {command: "lock", args: []string{"six", "x>1"}, env: []string{index}, argv: "/uv pip compile --no-config --cache-dir SCRATCH/uv --default-index https://a.test/simple --index-strategy unsafe-best-match --python",
			left: []string{"pylock.toml"}},
		"a lock without an index": {command: "lock", args: []string{"six"}},
		"a lock of what is built": {command: "lock", args: []string{"six"}, env: []string{index, "PIP_NO_BINARY=six"}},
		"a lock of older wheels":  {command: "lock", args: []string{"six"}, env: []string{index, "PIP_PREFER_BINARY=1"}},
		"a wheel": {command: "install", args: []string{"six==1.0", "00", "11"}, env: []string{index}, argv: "--prefix DIR --no-deps --only-binary :all: --require-hashes --requirement SCRATCH/requirements.txt",
			left: []string{"lib/pythonV/site-packages/__pycache__/a.cpython-V.pyc", "lib/pythonV/site-packages/a-1.dist-info/RECORD", "lib/pythonV/site-packages/a.py",
				"lib/pythonV/site-packages/p/__pycache__/b.cpython-V.pyc", "lib/pythonV/site-packages/p/b.py", "lib/pythonV/site-packages/p/tests/c.py", "site"}},
		"a wheel that uv refuses": {command: "install", args: []string{"six==1.0", "00"}, env: []string{index, "FAKE_FAILS=2"}, argv: "--require-hashes", fails: true},
		"fonts":                   {command: "fonts", argv: "-c import matplotlib.font_manager", left: []string{"fonts/fontlist-1.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			target, scratch := t.TempDir(), filepath.Join(t.TempDir(), "scratch")
			args := slices.Concat([]string{"-B", filepath.Join(dir, "tools.py"), filepath.Join(dir, "wheels.py"), c.command, target, scratch, "/uv", "--"}, c.args)
			cmd := exec.Command(interpreter(t), args...)
			cmd.Env = append(c.env, "PATH="+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Fatalf("%v, want an error: %v\n%s", err, c.fails, out)
			}
			calls := started(out)
			argv := strings.NewReplacer("SCRATCH", scratch, "DIR", target).Replace(c.argv)
			if len(calls) != min(len(argv), 1) || len(calls) > 0 && !strings.Contains(strings.Join(calls[0].Argv, " "), argv) {
				t.Errorf("%s\nwant %q started", out, argv)
			}
			if left := leftBelow(t, target); !c.fails && !slices.Equal(left, c.left) {
				t.Errorf("left %q, want %q", left, c.left)
			}
			if c.command == "install" {
				want := strings.Join(c.args, " --hash=sha256:")
				if text, err := os.ReadFile(filepath.Join(scratch, "requirements.txt")); err != nil || string(text) != want {
					t.Errorf("requirements %q, %v, want %q", text, err, want)
				}
			}
		})
	}
}

// leftBelow lists what is no directory, without the versions of Python.
func leftBelow(t *testing.T, dir string) (left []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			name = pythonVersion().ReplaceAllString(name, "${1}V")
			left = append(left, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

var pythonVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(python|cpython-)3\.?[0-9]+`) })
