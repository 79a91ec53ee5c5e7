//go:build unix

package python

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeTools runs the script of its arguments, and writes what it would start as JSON, one a
// line, with what is in its directory. uv leaves a file and ends with FAKE_UV; "" is an uv that is not there.
const fakeTools = `import json, os, runpy, subprocess, sys, types
folder, failed = os.environ.pop("FAKE_DIR"), os.environ.pop("FAKE_UV")
def run(argv, env, **options):
    print(json.dumps({"argv": argv, "env": ["%s=%s" % e for e in env.items()], "there": os.listdir(folder)}), flush=True)
    if argv[1] != "pip":
        return types.SimpleNamespace(returncode=0)
    if not failed:
        raise FileNotFoundError(2, "no uv")
    for name in "one", "lib":
        os.makedirs(os.path.join(folder, name, "more"))
    os.symlink("lib", os.path.join(folder, "link"))
    return types.SimpleNamespace(returncode=int(failed))
subprocess.run = run
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
`

// A call is a program that was started.
type call struct{ Argv, Env, There []string }

func started(out []byte) (calls []call) {
	for line := range strings.Lines(string(out)) {
		var c call
		if json.Unmarshal([]byte(line), &c) == nil {
			calls = append(calls, c)
		}
	}
	return calls
}

// TestUV passes pip's settings to uv, and has pip install where uv has no equivalent.
func TestUV(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"libraries.py": string(installer), "tools.py": fakeTools} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const index = "PIP_INDEX_URL=https://a.test/simple"
	for name, c := range map[string]struct {
		uv, ends string
		options  []string
		env      []string
		first    string   // the arguments of uv; empty: it is not started
		has      []string // of its environment
		lacks    []string
		pip      bool // pip is started
	}{
		"an index": {uv: "/uv", ends: "0", options: []string{"--ignore-installed"}, env: []string{index, "UV_DEFAULT_INDEX=https://evil.test", "UV_NO_VERIFY_HASHES=1", "PYTHONPATH=/x"},
			first: "--default-index https://a.test/simple --index-strategy unsafe-best-match",
			has:   []string{"UV_PYTHON_DOWNLOADS=never"}, lacks: []string{"UV_DEFAULT_INDEX=", "UV_NO_VERIFY_HASHES=", "PYTHONPATH=", "SSL_CERT_FILE="}},
		"everything": {uv: "uv", ends: "0", options: []string{"--ignore-installed", "--no-warn-conflicts"}, env: []string{index,
			"PIP_EXTRA_INDEX_URL=https://b.test https://c.test", "PIP_FIND_LINKS=https://d.test/a,b", "PIP_TRUSTED_HOST=b.test", "PIP_ONLY_BINARY=:all:", "PIP_NO_BINARY=x,y",
			"PIP_CERT=/ca", "PIP_TIMEOUT=9", "PIP_RETRIES=2"},
			first: "--default-index https://a.test/simple --index-strategy unsafe-best-match --index https://b.test --index https://c.test --find-links https://d.test/a%2Cb" +
				" --allow-insecure-host b.test --only-binary :all: --no-binary x --no-binary y",
			has: []string{"SSL_CERT_FILE=/ca", "UV_HTTP_TIMEOUT=9", "UV_HTTP_RETRIES=2"}},
		"one that fails":       {uv: "/uv", ends: "2", options: []string{"--ignore-installed"}, env: []string{index}, first: "--default-index https://a.test/simple --index-strategy unsafe-best-match", pip: true},
		"one that is not one":  {uv: "/uv", options: []string{"--ignore-installed"}, env: []string{index}, first: "--default-index https://a.test/simple --index-strategy unsafe-best-match", pip: true},
		"none":                 {options: []string{"--ignore-installed"}, env: []string{index}, pip: true},
		"no index":             {uv: "/uv", options: []string{"--ignore-installed"}, pip: true},
		"wheels before news":   {uv: "/uv", options: []string{"--ignore-installed"}, env: []string{index, "PIP_PREFER_BINARY=true"}, pip: true},
		"what an image has":    {uv: "/uv", env: []string{index}, pip: true},
		"what a directory has": {uv: "/uv", options: []string{"--ignore-installed", "--no-index", "--find-links", "/wheels"}, pip: true},
	} {
		t.Run(name, func(t *testing.T) {
			target, scratch := t.TempDir(), filepath.Join(t.TempDir(), "scratch")
			args := slices.Concat([]string{"-B", filepath.Join(dir, "tools.py"), filepath.Join(dir, "libraries.py"), target, scratch, c.uv}, c.options, []string{"--", "six", "x>1"})
			cmd := exec.Command(interpreter(t), args...)
			cmd.Env = append(c.env, "FAKE_UV="+c.ends, "FAKE_DIR="+target, "PATH="+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			calls := started(out)
			want := 0
			if c.first != "" {
				want++
				python := filepath.Join(scratch, "bin", "python")
				argv := strings.Join([]string{c.uv, "pip install --no-config --cache-dir", filepath.Join(scratch, "uv"), c.first, "--python", python, "--prefix", target, "-- six x>1"}, " ")
				if len(calls) == 0 || strings.Join(calls[0].Argv, " ") != argv {
					t.Fatalf("%s\nwant a first call %s", out, argv)
				}
				for _, v := range c.has {
					if !slices.Contains(calls[0].Env, v) {
						t.Errorf("environment %q, want %s", calls[0].Env, v)
					}
				}
				for _, v := range c.lacks {
					if slices.ContainsFunc(calls[0].Env, func(e string) bool { return strings.HasPrefix(e, v) }) {
						t.Errorf("environment %q, want none with %s", calls[0].Env, v)
					}
				}
			}
			if c.pip {
				want++
				last := calls[len(calls)-1]
				if !strings.Contains(strings.Join(last.Argv, " "), "-m pip install --prefix "+target) || len(last.There) != 0 {
					t.Errorf("the last call %q finds %q, want pip, nothing", last.Argv, last.There)
				}
			}
			if len(calls) != want {
				t.Errorf("%d calls, want %d\n%s", len(calls), want, out)
			}
		})
	}
}

// TestUVInstallsEnvironments: the digests of a lock are required of uv as of pip, and pip gets an
// environment that uv has left nothing in.
func TestUVInstallsEnvironments(t *testing.T) {
	dir := t.TempDir()
	digest := strings.Repeat("0", 64)
	lock := `[{"name": "six", "version": "1.17.0", "sha256": ["` + digest + `"]}]`
	for name, text := range map[string]string{"environment.py": string(environmentInstaller), "tools.py": fakeTools, "lock.json": lock} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, ends := range []string{"0", "1"} {
		t.Run("uv ends with "+ends, func(t *testing.T) {
			target, scratch := t.TempDir(), t.TempDir()
			cmd := exec.Command(interpreter(t, "pip"), "-B", filepath.Join(dir, "tools.py"), filepath.Join(dir, "environment.py"), "install", target, scratch, "/uv", "--", filepath.Join(dir, "lock.json"))
			cmd.Env = []string{"PIP_INDEX_URL=https://a.test", "FAKE_UV=" + ends, "FAKE_DIR=" + target, "PATH=" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			requirements := filepath.Join(scratch, "requirements.txt")
			if text, err := os.ReadFile(requirements); err != nil || string(text) != "six==1.17.0 --hash=sha256:"+digest+"\n" {
				t.Errorf("requirements %q, %v, want six with its digest", text, err)
			}
			python := filepath.Join(target, "bin", "python")
			common := "--no-deps --requirement " + requirements + " --require-hashes"
			calls := started(out)
			if len(calls) == 0 || !strings.HasSuffix(strings.Join(calls[0].Argv, " "), "--python "+python+" "+common) {
				t.Fatalf("%s\nwant a first call of uv ending in %s", out, common)
			}
			if ends == "0" {
				if len(calls) != 1 {
					t.Errorf("%d calls, want 1\n%s", len(calls), out)
				}
				return
			}
			last := calls[len(calls)-1]
			if len(calls) != 2 || !strings.HasPrefix(strings.Join(last.Argv, " "), python+" -m pip install") || !strings.HasSuffix(strings.Join(last.Argv, " "), common) {
				t.Errorf("%s\nwant a second call, of pip, ending in %s", out, common)
			}
			if slices.Contains(last.There, "one") || slices.Contains(last.There, "link") || !slices.Contains(last.There, "pyvenv.cfg") {
				t.Errorf("pip finds %q, want a new environment", last.There)
			}
		})
	}
}
