package python

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// state is what a program can see of how it was started.
const state = `from __future__ import annotations
import os, sys
print(sys.path, sys.argv, __file__, os.environ.get("PYTHONPATH"), sorted(os.environ), sorted(sys.modules))
def f():
    raise ValueError("x")
try:
    import matplotlib_that_is_not_there
except ImportError as e:
    print(e)
f()
`

func TestAProgramDoesNotSeeTheCapture(t *testing.T) {
	for _, python := range interpreters(t) {
		for _, before := range []string{"", "PYTHONPATH=/nonexistent/a:/nonexistent/b"} {
			t.Run(python+" "+before, func(t *testing.T) {
				p := newProgram(t, python)
				p.environ = append(p.environ, "PYTHONDONTWRITEBYTECODE=1")
				if before != "" {
					p.environ = append(p.environ, before)
				}
				with, withErr, items := p.run(state)
				without, withoutErr := p.bare()
				if with != without || withErr != withoutErr {
					t.Errorf("with the capture\n%s%s\nwithout\n%s%s", with, withErr, without, withoutErr)
				}
				if !strings.Contains(withErr, "main.py\", line 5, in f") {
					t.Errorf("the traceback is %s, want it to contain \"main.py\\\", line 5, in f\"", withErr)
				}
				if len(items) > 0 || p.dropped() != "" {
					t.Errorf("captured %s, dropped %s, want no items, dropped empty", names(items), p.dropped())
				}
			})
		}
	}
}

// TestTheSiteCustomizationStillRuns has one of the program's own on the path.
func TestTheSiteCustomizationStillRuns(t *testing.T) {
	p := newProgram(t, interpreter(t))
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, "sitecustomize.py"), []byte("import builtins\nbuiltins.customized = __file__\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.environ = append(p.environ, "PYTHONPATH="+own)
	if stdout, stderr, _ := p.run("print(customized)"); stdout != filepath.Join(own, "sitecustomize.py")+"\n" || stderr != "" {
		t.Errorf("stdout %q, stderr %q, want stdout = filepath.Join(own, \"sitecustomize.py\")+\"\\n\", stderr empty", stdout, stderr)
	}
}

// TestAFailingImportIsTheProgramsOwn has a module that is looked after fail: the
// traceback shows the program and the module, nothing between.
func TestAFailingImportIsTheProgramsOwn(t *testing.T) {
	p := newProgram(t, interpreter(t))
	if err := os.Mkdir(filepath.Join(p.dir, "matplotlib"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "matplotlib", "__init__.py"), []byte("import not_there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, _ := p.run("import matplotlib\n")
	if n := strings.Count(stderr, "  File "); n != 2 || !strings.Contains(stderr, "ModuleNotFoundError: No module named 'not_there'") {
		t.Errorf("stderr %s, want n = 2, stderr containing \"ModuleNotFoundError: No module named 'not_there'\"", stderr)
	}
}

// TestWhatCannotBeCapturedIsNoted has a library that is not what it is said to be: the
// program runs, and the note is there.
func TestWhatCannotBeCapturedIsNoted(t *testing.T) {
	p := newProgram(t, interpreter(t))
	for _, name := range []string{"matplotlib", "PIL"} {
		if err := os.Mkdir(filepath.Join(p.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"matplotlib/__init__.py": "", "matplotlib/pyplot.py": "", "PIL/__init__.py": "", "PIL/Image.py": ""} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, items := p.run("import matplotlib.pyplot, PIL.Image\nprint('ran')")
	if stdout != "ran\n" || stderr != "" || len(items) > 0 {
		t.Errorf("stdout %q, stderr %q, captured %s, want stdout = \"ran\\n\", stderr empty, no items", stdout, stderr, names(items))
	}
	for _, want := range []string{"matplotlib.pyplot", "PIL.Image"} {
		if !strings.Contains(p.dropped(), want) {
			t.Errorf("no note of %s: %s", want, p.dropped())
		}
	}
}

// TestThePrecompiledBootstrapIsUsed takes the source away: what Python then runs is what
// was compiled here.
func TestThePrecompiledBootstrapIsUsed(t *testing.T) {
	for _, python := range interpreters(t) {
		t.Run(python, func(t *testing.T) {
			tag, err := exec.Command(python, "-c", "import sys; print(sys.implementation.cache_tag.split('-')[1])").Output()
			if err != nil {
				t.Fatal(err)
			}
			if _, listed := compiled()[strings.TrimSpace(string(tag))]; !listed {
				return // it compiles the source
			}
			p := newProgram(t, python)
			c := p.lay()
			if err := os.WriteFile(filepath.Join(p.source.Support, "sitecustomize.py"), []byte("raise SystemExit('the source was compiled')"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(python, "-c", "import sys; print(type(sys.meta_path[0]).__name__)")
			cmd.Env = append(p.environ, c.Env...)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "Finder\n" {
				t.Errorf("%v: %s, want no error, out = \"Finder\\n\"", err, out)
			}
		})
	}
}

// TestTheProgramRemovesTheCapture has it delete what it finds in its temporary directory: it
// can do without.
func TestTheProgramRemovesTheCapture(t *testing.T) {
	python := interpreter(t, "PIL")
	for _, what := range []string{"", "/capture.zip", "/directory"} {
		p := newProgram(t, python)
		code := fmt.Sprintf(`
import os, shutil
what = %q
shutil.rmtree(what) if os.path.isdir(what) else os.remove(what)
from PIL import Image
print(Image.new("RGB", (1, 1)).size)
`, p.source.Support+what)
		if stdout, stderr, items := p.run(code); stdout != "(1, 1)\n" || stderr != "" || len(items) > 0 {
			t.Errorf("without %s: stdout %q, stderr %q, captured %s, want stdout = \"(1, 1)\\n\", stderr empty, no items", what, stdout, stderr, names(items))
		}
	}
}

func TestIsModule(t *testing.T) {
	for name, want := range map[string]bool{
		"numpy": true, "matplotlib.pyplot": true, "_a1.b": true, "größe": true,
		"": false, ".": false, "a.": false, ".a": false, "a..b": false, "1a": false, "a b": false, "a;b": false, "a\n": false, "a'": false,
		"a\x00": false, "\xff": false, strings.Repeat("a", 200): true, strings.Repeat("a", 201): false,
	} {
		if got := isModule(name); got != want {
			t.Errorf("isModule(%q) = %v, want %v", name, got, want)
		}
	}
}

// TestImportsAheadFail has modules end the interpreter while they are imported: it says why, and
// no code is run.
func TestImportsAheadFail(t *testing.T) {
	for _, python := range interpreters(t) {
		p := newProgram(t, python)
		own := t.TempDir()
		for name, text := range map[string]string{"leaves": "raise SystemExit(3)", "fails": "raise ValueError('\"\\n\u20ac' + 'x' * 5000)"} {
			if err := os.WriteFile(filepath.Join(own, name+".py"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.environ = append(p.environ, "PYTHONPATH="+own)
		for module, want := range map[string]string{
			"leaves": `{"event": "reply", "error": "leaves: SystemExit: 3"}` + "\n",
			"fails":  `{"event": "reply", "error": "fails: ValueError: \"\n\u20ac` + strings.Repeat("x", 978) + `"}` + "\n",
			"gone":   `{"event": "reply", "error": "gone: ModuleNotFoundError: No module named 'gone'"}` + "\n",
		} {
			p.capture, p.source.Imports = ahead, []string{"json", module}
			c := p.lay()
			said := filepath.Join(p.dir, "said")
			cmd := exec.Command("sh", "-c", `exec "$0" -c 'print("ran")' 3</dev/null 4>"$1"`, python, said)
			cmd.Env = append(p.environ, c.Env...)
			out, err := cmd.CombinedOutput()
			text, rerr := os.ReadFile(said)
			if err == nil || rerr != nil || len(out) > 0 || string(text) != want {
				t.Errorf("%s, %s: it says %q, %v, prints %q, %v, want %q, exit status 1, nothing", python, module, text, rerr, out, err, want)
			}
		}
	}
}
