//go:build unix

package python

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

var cells = kerneltest.Cells{
	State: []string{"x = 40", "def add(n):\n    return x + n\n", "import math\nprint('sum', add(1))\nadd(math.floor(2.5))"},
	Out:   "sum 41\n", Value: "42",
	Fails:   "a = 1\nb = 0\na / b",
	Failure: [3]string{"ZeroDivisionError", "division by zero", "line 3"},
	Syntax:  "x = 1\ny = = 2", SyntaxAt: "line 2",
	Sleep:  "import time\nprint('sleeping')\ntime.sleep(1000)",
	Loop:   "print('looping')\nwhile True: pass",
	Stderr: "import sys; print('careful', file=sys.stderr)",
	Child:  "import subprocess; _ = subprocess.run('echo child; echo fault >&2; ls /proc/self/fd', shell=True)",
	Input:  "input('name? ')", Prompt: "name? ", InputIs: "'Ann'",
	Exit: "print('bye'); import sys; sys.exit(3)", Stays: true,
	Crash:  "import os; os.kill(os.getpid(), 9)",
	Define: "zebra = [1, 2]", Complete: "zeb", Completes: "zebra",
	Member: "zebra.app", MemberIs: "zebra.append",
	Inspect: "zebra", Inspects: "[1, 2]", Variable: [2]string{"zebra", "list"},
}

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	plain := Language
	def := *plain.Kernel
	def.Plan = func(src language.KernelSource) (language.Plan, error) {
		src.Plain = true
		return planKernel(src)
	}
	plain.Kernel = &def
	t.Run("plain", func(t *testing.T) { kerneltest.Suite(t, &plain, cells) })
	t.Run("exits", func(t *testing.T) { exits(t, kerneltest.Start(t, &plain)) })
	t.Run("frames", func(t *testing.T) { frames(t, kerneltest.Start(t, &plain)) })
	t.Run("magics", func(t *testing.T) { magics(t, kerneltest.Start(t, &plain)) })
	t.Run("future", func(t *testing.T) {
		k := kerneltest.Start(t, &plain)
		k.MustRun("from __future__ import annotations")
		if e := k.Run("def f(x: nothing): pass\nf.__annotations__"); e.Value["text/plain"] != "{'x': 'nothing'}" {
			t.Errorf("%+v, want e.Value[\"text/plain\"] = \"{'x': 'nothing'}\"", e)
		}
	})
	t.Run("await", func(t *testing.T) {
		k := kerneltest.Start(t, &plain)
		if e := k.Run("import asyncio\nawait asyncio.sleep(0)\n'slept'"); e.Value["text/plain"] != "'slept'" {
			t.Errorf("%+v, want e.Value[\"text/plain\"] = \"'slept'\"", e)
		}
	})
	t.Run("fork", func(t *testing.T) {
		k := kerneltest.Start(t, &plain)
		if e := k.Run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"); e.Status != "ok" {
			t.Errorf("%+v, want Status = \"ok\"", e)
		}
		if e := k.Run("1"); e.Value["text/plain"] != "1" {
			t.Errorf("after a fork: %+v, want e.Value[\"text/plain\"] = \"1\"", e)
		}
	})
	t.Run("html", func(t *testing.T) {
		k := kerneltest.Start(t, &plain)
		if e := k.Run("class T:\n  def _repr_html_(self): return '<b>'\nT()"); e.Value["text/html"] != "<b>" || e.Value["text/plain"] == "" {
			t.Errorf("%+v, want e.Value[\"text/html\"] = \"<b>\", e.Value[\"text/plain\"] not empty", e)
		}
	})
	t.Run("ipython", func(t *testing.T) {
		if exec.Command("python3", "-c", "import IPython").Run() != nil {
			t.Skip("IPython is not installed: the plain shell is what there is here")
		}
		rich := cells
		rich.Inspects = "[1, 2]"
		kerneltest.Suite(t, &Language, rich)
		magics(t, kerneltest.Start(t, &Language))
		exits(t, kerneltest.Start(t, &Language))
		frames(t, kerneltest.Start(t, &Language))
	})
}

// exits are the ways to end a cell. None of them costs the state.
func exits(t *testing.T, k *kerneltest.Kernel) {
	k.MustRun("x = 5")
	for _, c := range []struct {
		code string
		want int
	}{
		{"exit", 0}, {"quit", 0}, {"exit()", 0}, {"quit()", 0}, {"exit(3)", 3}, {"quit(code=4)", 4}, {"exit('bad')", 1},
		{"print(1)\nexit", 0}, {"print(1)\nexit(3)\nx = 6", 3}, {"import sys\nsys.exit()", 0}, {"import sys; sys.exit(300)", 44}, {"raise SystemExit", 0},
		{"%reset -f\nx = 5\nexit", 0},
	} {
		if e := k.Run(c.code); e.Status != "exit" || e.ExitCode == nil || *e.ExitCode != c.want || e.Lost || e.Failure != nil {
			t.Errorf("%q: %+v, want Status = \"exit\", ExitCode = %d, Lost false, Failure = nil", c.code, e, c.want)
		}
	}
	if e := k.Run("x"); e.Value["text/plain"] != "5" {
		t.Errorf("after exits: %+v, want e.Value[\"text/plain\"] = \"5\"", e)
	}
}

// frames: a traceback has the code's frames, and none of the driver's.
func frames(t *testing.T, k *kerneltest.Kernel) {
	looping := "def run():\n    print('looping')\n    while True: pass\nrun()"
	for code, e := range map[string]kerneltest.Event{
		looping:     k.RunWhile(looping, k.Interrupt),
		"input()":   k.Run("def ask():\n    return input()\nask()"),
		"getpass()": k.Run("import getpass\ngetpass.getpass()"),
		"!":         k.Run("def fail():\n    x = 1/0\ntry:\n    fail()\nexcept Exception as e:\n    raise ValueError(input()) from e"),
		"await":     k.Run("import asyncio\nasync def f(): 1/0\nawait f()"),
	} {
		if e.Failure == nil || strings.Contains(e.Failure.Traceback, "driver.py") || strings.Contains(e.Failure.Traceback, "<kernel ") || e.Failure.Traceback == "" {
			t.Errorf("%s: %+v %+v, want a traceback without the driver", code, e, e.Failure)
		}
	}
}

// magics are what ACCEPTANCE 65 names.
func magics(t *testing.T, k *kerneltest.Kernel) {
	k.MustRun("x = 5")
	for code, want := range map[string]string{
		"%who": "x", "!echo child {x}": "child 5\n", "%%time\ny = x\nprint(y)": "5\n", "%timeit 1+1": "loop",
		"l = !echo a; echo b\nprint(l)": "['a', 'b']\n", "for i in range(2):\n    !echo {i}": "0\n1\n",
		"s = '''\n%d\n!no\n''' % 3\nprint(s)": "\n3\n!no\n\n",
	} {
		if e := k.Run(code); e.Status != "ok" || !strings.Contains(e.Stdout, want) {
			t.Errorf("%s: %+v, want Status = \"ok\", Stdout containing %q", code, e, want)
		}
	}
	if e := k.Run("%pwd"); e.Value["text/plain"] != "'"+k.Workdir+"'" {
		t.Errorf("%%pwd: %+v, want e.Value[\"text/plain\"] = %v", e, "'"+k.Workdir+"'")
	}
	k.Run("%reset -f")
	if e := k.Run("x"); e.Status != "error" {
		t.Errorf("after %%reset: %+v, want Status = \"error\"", e)
	}
}

func TestRoundTrip(t *testing.T) {
	kerneltest.Need(t, &Language)
	t.Logf("a trivial cell takes %v", kerneltest.RoundTrip(kerneltest.Start(t, &Language), "1+1", 200))
}
