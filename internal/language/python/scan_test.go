package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

var scans = []lextest.Case{
	// How modules come in.
	{"import os", "import os"},
	{"import os, sys", "import os; import sys"},
	{"import sys, os", "import sys; import os"},
	{"import os;x", "import os; use x"},
	{"a='#';import os", "import os"},
	{"print('# '); import os", "call print; import os"},
	{"x=\"'''\";import os;y=\"'''\"", "import os"},
	{"import os.path as p; p.join('a')", "import os.path; call os.path.join"},
	{"import os.path; os.system('ls')", "import os.path; call os.system; call ls"},
	{"import os as x; x.system", "import os; use os.system"},
	{"from os import path", "import os; import os.path; use os.path"},
	{"from os import system as s; s ('x')", "import os; use os.system; call os.system; call x"},
	{"from os import (system as s,\n  popen, # more\n)\npopen('x')", "+call os.popen"},
	{"from os import *\nsystem('ls')", "import os; call os.system; call ls"},
	{"from math import *\nfrom os import *\nfrom time import *\nsystem('x')", "+call os.system"},
	{"from . import os; os.system('x')", "import ."},
	{"try:\n  import os\nexcept ImportError: pass", "import os; use ImportError"},
	{"if 1: import os", "import os"},
	{"\timport os", "import os"},
	{"\ufeffimport os", "import os"},
	{"import os\r\nos.system('x')\r\n", "+call os.system"},
	{"# comment\rimport os", "import os"},
	{"x = 1 \\\n  ; import os", "import os"},
	{"def f():\n  import os as o\n  def g():\n    o.system('x')", "+call os.system"},
	{"import logging; logging.os.system('x')", "import logging; call os.system; import os; call x"},
	{"from logging import os", "import logging; import os; use os"},
	{"𝐢𝐦𝐩𝐨𝐫𝐭 = 1", ""},
	{"import 𝐨𝐬; 𝐨𝐬.ˢystem('x')", "+call os.system"},
	{"ⅇval(x)", "call eval; computed code; use x"},
	{"__import__('os').system('x')", "call __import__; import os; call os.system; call x"},
	{"__import__('o' + 's')", "+import os"},
	{"__import__('o' 's')", "+import os"},
	{"__import__('so'[::-1])", "+computed import"},
	{"__import__(''.join(['o', 's']))", "+computed import"},
	{"__import__(''.join(map(chr, [111, 115])))", "+computed import"},
	{"__import__(chr(111) + chr(0x73))", "+computed import"},
	{"__import__(bytes([111, 115]).decode())", "+computed import"},
	{"__import__('%s' % 'os')", "+computed import"},
	{"__import__('o{}'.format('s'))", "+computed import"},
	{"import base64; __import__(base64.b64decode('b3M=').decode())", "+computed import"},
	{"m = 'os'; __import__(m)", "call __import__; computed import"},
	{"m = 'os'; m = f(); __import__(m)", "+computed import"},
	{"m = 'math'; globals()['m'] = 'os'; __import__(m)", "+computed import"},
	{"for m in ['os', 'sys']: __import__(m)", "+computed import"},
	{"__import__(x)", "+computed import"},
	{"i = __import__; i('os').system('x')", "use __import__; computed import; call __import__; import os; call os.system; call x"},
	{"[*map(__import__, ['os'])]", "+computed import"},
	{"import importlib; importlib.import_module('os').system('x')", "+call os.system"},
	{"from importlib import import_module as im; o = im('os'); o.system('x')", "+call os.system"},
	{"import importlib.util; importlib.util.spec_from_file_location('x', p)", "+computed import"},
	{"import sys; sys.modules['os'].system('x')", "+call os.system"},
	{"import sys; sys.modules.get('os').system('x')", "+import os"},
	{"import sys; sys.modules[__name__]", "import sys; use sys.modules"},
	{"import builtins; builtins.__import__('os')", "import builtins; call __import__; import os"},
	{"import runpy; runpy.run_path(x)", "+computed import"},
	{"__loader__.load_module('os').system('x')", "use __loader__; import os; call os.system; call x"},
	{"().__class__.__base__.__subclasses__()[84].load_module('os').system('x')",
		"use __class__; use __base__; call __subclasses__; import os; call os.system; call x"},
	// Names.
	{"import os; f = os.system; f('x')", "import os; use os.system; call os.system; call x"},
	{"import os; (f := os.system)('x')", "+call x"},
	{"import os; a, b = os.system, 1; a('x')", "+use os.system"},
	{"import os\nif x: f = os.system\nf('y')", "+call os.system"},
	{"import os\nif x: f: int = 1\nelse: f = os.system; f('y')", "+call os.system"},
	{"import os; (os.system)('x')", "import os; call os.system; call x"},
	{"import os\ndef f(): return os\nf().system('x')", "+use os"},
	{"import os\nclass A:\n  m = os\nA.m.system('x')", "+use os"},
	{"import socket; s = socket.socket()", "import socket; call socket.socket"},
	{"from socket import socket; socket()", "import socket; use socket.socket; call socket.socket"},
	{"import subprocess as p\np.run('curl x | sh', shell=True)", "import subprocess; call subprocess.run; call curl; call sh; computed code"},
	{"eval.__self__.exec('import os')", "use eval; use __self__; call exec; import os"},
	{"import functools\nfunctools.reduce(getattr, ['system'], __import__('os'))('x')", "+computed name"},
	{"import os\nx = os.system if y else print\nx('z')", "+use os.system"},
	{"import os.path; os.path.os.system('x')", "+call os.system"},
	{"def f(x=__import__('os').system('x')): pass", "+call os.system"},
	{"def f(x: __import__('os').system('x')): pass", "+call os.system"},
	{"get_ipython().system('ls')", "+computed code"},
	{"exec(b'\\x69mport os')", "+import os"},
	{"import os; a = b = os; b.system('x')", "+call os.system"},
	{"import os\nclass A:\n  m = os\nself.m = os\nself.m.system('x')", "+use os"},
	{"import os\ndef f(m=os):\n  m.system('x')", "+use os"},
	{"import os\nfor f in [os.system]: f('x')", "+use os.system"},
	{"import os\n[f('x') for f in (os.system, 1)]", "+use os.system"},
	{"import os; (os if 1 else 2).system('x')", "+use os"},
	{"import os; (None or os).system('x')", "+call os.system"},
	{"import os; [os][0].system('x')", "+use os"},
	{"import os; getattr(os, 'system')('x')", "import os; call os.system; use os; call x"},
	{"import os; getattr(os, 'sys' + 'tem')('x')", "+call os.system"},
	{"import os; g = getattr; g(os, 'system')('x')", "+call os.system"},
	{"import os; getattr(os, name)('x')", "import os; call getattr; computed name; use os; use name"},
	{"import os; os.__dict__['system']('x')", "import os; use os; use __dict__; call os.system; call x"},
	{"import os; vars(os)['system']('x')", "import os; call vars; use os; call os.system; call x"},
	{"import os; os.__getattribute__('system')('x')", "+call os.system"},
	{"import os, operator; operator.attrgetter('system')(os)('x')", "+call os.system"},
	{"import os, operator; operator.methodcaller('system', 'x')(os)", "+call os.system"},
	{"import os; f'{os.system(\"x\")}'", "import os; call os.system; call x"},
	{"import os; f'{f\"{os.system('x')}\"}'", "+call os.system"},
	{"import os; f'{1:{os.system(\"x\")}}'", "+call os.system"},
	{"import os; f'{{{os.system(1)}}}'", "+call os.system"},
	{"import os\n@os.system\ndef f(): pass", "import os; use os.system"},
	{"import os\nlambda: os.system('x')", "+call os.system"},
	{"import os\nwith open('x') as f, os.popen('y') as g: pass", "import os; call open; call os.popen; call y"},
	{"import os\nos . \\\n system ('x')", "+call os.system"},
	{"(\n__import__\n)\n('os')", "use __import__; computed import"},
	{"import os; os.system.__call__('x')", "import os; call os.system; call x"},
	{"from os import system\nclass A: __getitem__ = system", "+use os.system"},
	{"__builtins__['eval']('x')", "use __builtins__; call eval; use x"},
	{"__builtins__.eval(x)", "use __builtins__; call eval; computed code; use x"},
	{"globals()['__builtins__']['ev' + 'al'](x)", "+call eval"},
	{"globals()['eval'](x)", "+computed code"},
	{"print.__self__.eval(x)", "+call eval"},
	{"import builtins as b; b.exec(x)", "+call exec"},
	{"import builtins; getattr(builtins, 'eval')(x)", "+computed code"},
	{"f.__globals__['os'].system('x')", "use f; use __globals__; use os; call os.system; call x"},
	{"import ctypes; ctypes.CDLL(None).system(b'x')", "import ctypes; call ctypes.CDLL"},
	{"def g(): yield\ng().gi_frame.f_builtins['eval'](x)", "+call eval"},
	{"import os; (i := os.system)('x'); i('y')", "import os; call os.system; call x; call os.system; call y"},
	{"import os; f'\\{os.system(1)}'", "+call os.system"},
	{"import os; ((os)).system('x')", "import os; call os.system; call x"},
	{"import os; f: object = os.system; f('x')", "+call x"},
	{"import os; f = g = getattr(os, 'system'); g('x')", "+call x"},
	{"getattr(__import__('os'), 'system')('x')", "call os.system; call __import__; import os; call x"},
	{"import os; getattr(getattr(os, 'path'), 'os')", "+use os"},
	{"def s(): f('x')\nimport os\nf = os.system", "+call x"},
	{"import os\ndef f(os): pass\nos.system('x')", "+call os.system"},
	{"from os import *\ndef f(system): pass\nsystem('x')", "+call os.system"},
	{"from os import *\nopen('x'); getlogin()", "import os; call os.open; call open; call os.getlogin"},
	{"def f():\n  from x import eval\neval('1')", "+call eval"},
	{"eval(y)\nfrom x import eval", "+computed code"},
	{"from x import eval\neval(y)", "import x; import x.eval; use x.eval; call x.eval; use y"},
	{"def eval(x): return eval(x)\neval(1)", ""},
	{"def eval(x): pass\ndel print, eval\neval(x)", "+computed code"},
	{"def eval(x=eval): pass", "use eval; computed code"},
	{"class eval: f = eval", "use eval; computed code"},
	{"def eval(x): pass\nfrom builtins import *\neval(x)", "+call eval"},
	{"def eval(x): pass\nimport sys; delattr(sys.modules[__name__], 'eval')\neval(x)", "+call eval"},
	{"def eval(x): pass\nvars().clear()\neval(x)", "+call eval"},
	{"f = eval, lambda x=1: x", "use eval; computed code"},
	{"f = lambda x=os.system: x\nf(1)", "use os.system"},
	{"class A: exec = exec", "use exec; computed code"},
	{"import os\nclass A(b, os): pass", "+use os"},
	{"import os; print(f'{os.system=}')", "+use os.system"},
	{"lambda x, y=eval: x", "use eval; computed code"},
	{"x[lambda: 1, os]", "use x; use os"},
	{"if x: f = y.z\nf()", "use x; use y.z; call y.z"},
	{"import importlib; importlib.import_module('.path', 'os').join()", "+call os.path.join"},
	{"import importlib; importlib.import_module('.path', p)", "+computed import"},
	{"import importlib; importlib.import_module(name='os')", "+import os"},
	{"import pkgutil; pkgutil.resolve_name('os:system')('x')", "+call x"},
	{"__import__('os.path').system('x')", "+call os.system"},
	{"__import__(*['os'])", "+computed import"},
	{"import builtins; builtins.__dict__[x]", "import builtins; use builtins; use __dict__; use x; use __builtins__; computed name"},
	{"from operator import attrgetter as a; import os; g = a('path.join'); g(os)('x')", "+call os.path.join"},
	{"from operator import itemgetter; itemgetter('eval')(globals())(x)", "+computed code"},
	{"from operator import itemgetter; sorted(x, key=itemgetter(1))", "-computed"},
	{"import subprocess; subprocess.run(x, shell=False)", "-computed"},
	{"import subprocess; subprocess.run(x, shell=True)", "+computed code"},
	{"import os; os.system(x)", "import os; call os.system; computed code; use x"},
	{"match x:\n  case 1: import os", "use x; import os"},
	{"type X = int; import os", "use int; import os"},
	// What is no target, although it stands where they do.
	{"[f := eval][0] = 1\nf(x)", "+computed code"},
	{"(f := eval).x = 1\nf(y)", "+computed code"},
	{"a[(f := eval)] = 1", "use a; use eval; computed code"},
	{"{eval: 1}[0] = 1", "use eval; computed code"},
	{"for x[(f := eval)] in [1]: pass", "use x; use eval; computed code"},
	{"for (f := eval).x in [1]: f(y)", "+computed code"},
	{"match -1, (f := eval):\n  case _: f(x)", "+computed code"},
	{"lambda x=a *eval: 0", "use a; use eval; computed code"},
	{"def f(x=a ** eval): 0", "use a; use eval; computed code"},
	{"case -1: f = eval", "+computed code"},
	// Code.
	{"exec('import os')", "call exec; import os"},
	{"exec('imp' + 'ort os')", "+import os"},
	{"exec(\"exec('import os')\")", "+import os"},
	{"exec('import os as o'); o.system('x')", "+call os.system"},
	{"eval('__import__(\"os\").system(\"x\")')", "+call os.system"},
	{"exec(compile('import os', 'x', 'exec'))", "call exec; computed code; call compile; import os"},
	{"c = compile(x, '', 'exec'); exec(c)", "+computed code"},
	{"exec(open('x').read())", "call exec; computed code; call open"},
	{"exec(x)", "call exec; computed code; use x"},
	{"@exec\n@input\nclass X: pass", "use exec; computed code; use input"},
	{"list(map(eval, ['1']))", "call list; call map; use eval; computed code"},
	{"# coding: utf-7\n# +AAo-import os", "computed code; problem"},
	{"# -*- coding: utf-8 -*-\nimport os", "import os"},
	{"# coding: latin-1\nimport \xbas", "use s; problem"},
	{"# coding: latin-1\n# \xba\nx = '\xba'", ""},
	{"import timeit; timeit.timeit('import os')", "+import os"},
	// IPython's lines.
	{"!rm -rf /", "call !; call rm"},
	{"x = !ls", "call !; call ls"},
	{"%timeit eval('1')", "+call eval"},
	{"%%bash\ncurl x | sh", "+call curl"},
	{"%%time\nimport os", "+import os"},
	{"%run x.py", "+computed code"},
	{"%%time\n%%bash\ncurl x", "+call curl"},
	{"%%html\nimport os", "call %%html"},
	{"try:\n  %%html\nexcept E: import os", "+import os"},
	{"# A comment.\n%%html\nimport os", "+import os"},
	{"if 1:\n  !curl x", "+call curl"},
	{";exec import os", "computed code; call exec"},
	{"/eval(x)", "computed code; call eval"},
	{"%load_ext os", "+import os"},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanPlain(t *testing.T) {
	lextest.Run(t, scan, []lextest.Case{
		{"# import os", ""},
		{"'import os'", ""},
		{"def f():\n  \"\"\"\n  import os\n  \"\"\"", ""},
		{"reimport os", "use reimport; use os"},
		{"import osx", "import osx"},
		{"x = 'os.system'", ""},
		{"x = r'\\''; y = 'import os'", ""},
		{"def open(x): pass\nopen('x')", ""},
		{"def f(open): open('x')", "call open"},
		{"open('x')\ndef open(x): pass", "call open"},
		{"if 0:\n  def eval(x): pass\neval(x)", "+call eval"},
		{"def f(eval): pass\neval(x)", "+call eval"},
		{"eval = 1\ndel eval\neval(x)", "+call eval"},
		{"if 0: eval = 1\neval(x)", "+call eval"},
		{"eval: int\neval(x)", "+call eval"},
		{"[0 for eval in []]; eval(x)", "+call eval"},
		{"def f():\n  global eval\n  eval = 1\neval(x)", "+call eval"},
		{"import re; re.compile(x)", "import re; call re.compile; use x"},
		{"class M:\n  def eval(self): self.eval()\nm = M(); m.eval()", ""},
		{"import torch\nmodel = torch.nn.Linear(1, 2)\nmodel.eval()", "import torch; call torch.nn.Linear"},
		{"import pandas as pd\ndf = pd.DataFrame()\ndf.eval('a')", "import pandas; call pandas.DataFrame"},
		{"def f(os): os.system('x')", ""},
		{"for input in range(3): print(input)", "call range; call print; use input"},
		{"match x:\n  case [1, y]: pass", "use x; use y"},
		{"for (a, b), c in d: e.f = a, b, c", "use d; use e.f"},
		{"(a, [b]), *c = a, b, c = 1", ""},
		{"def f[T](a, *b, c: T=1, **d): return a, b, c, d\nlambda *a: a", "use T; use T"},
		{"lambda eval: eval(1)", "call eval; computed code"},
		{"print(f'{x!r:>{width}}')", "call print; use x; use width"},
		{"a = 5 % 3\nb = (1\n% 2)", ""},
		{"x: int = 1; y = x if x else 2", "use int"},
		{"global eval; eval = 1", ""},
	})
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func TestScanHostile(t *testing.T) {
	lextest.Hostile(t, scan, "(", "f'{", "lambda:", "a.", "a.b.c ", "x=(", "x=[x,", "f(a=", "[x for x in ", "x='a'+x\n",
		"a='b';a=a+a\n", "exec('x')\n", "exec(\"exec('x')\")\n", "def f():\n ", "from os import *;f()\n", "'\\N{", "f'{x:{", "a.b=os\n", "x[1:", "!a\n", "as(", "from.", "from a.", "lambda ", "lambda a,", "for a", "a=", "a:", "((a", "a=a.b\n", "getattr(", "getattr(a,'b').",
		"f'\\N{", "\\N{", "b.__dict__['a']", "from a import *;a=b;", "import a as b;", "match(", "case[", "del a,", "exec('exec(1)')(", "f'{x:", "f'{", "%time -n\n", "x=getattr(x,'a')\n", "def f(a,", "for x[", "lambda a=lambda a,", "a:a=", "x:=", "a.__dict__.")
	for _, part := range []string{"\\N{", "\\x", "{"} {
		for _, quote := range []string{`"""`, `f"""`} {
			code := []byte(quote + strings.Repeat(part, 50_000/len(part)))
			lextest.Sound(t, code, lextest.Scan(t, scan, code))
		}
	}
}

func TestLibraryName(t *testing.T) {
	for of, want := range map[string]string{
		"requests": "requests", "requests==2.31": "requests", "Zope.Interface[a,b]>=1,<2": "zope-interface",
		"a_b": "a-b", "a--b~=1": "a-b", "x===1": "x", "x!=1": "x",
	} {
		if got := libraryName(of); got != want {
			t.Errorf("%s is %q, not %q", of, got, want)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, `import os, json
from pathlib import Path

class Report:
    """A report."""
    def __init__(self, path, limit=10):
        self.path, self.limit = Path(path), limit
        self.rows = [row.strip() for row in open(path) if row and not row.startswith("#")]

    def total(self):
        # All of them.
        return sum(float(value) for value in self.rows[:self.limit]) / max(1, len(self.rows))

if __name__ == "__main__":
    report = Report(os.environ.get("REPORT", "report.txt"), limit=5)
    print(f"total: {report.total():.2f} of {len(report.rows)}", json.dumps({"a": [1, 2, 3]}))
`)
}

// Well-formed files are read to their end.
func TestScanFiles(t *testing.T) {
	for _, pattern := range []string{"*.py", "*/*.py", "/usr/lib/python3*/[a-c]*.py"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 && pattern[0] == '*' {
			t.Fatalf("%s: %v, %v, want no error, files not empty or pattern[0] != '*'", pattern, files, err)
		}
		for _, name := range files {
			code, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f := lextest.Scan(t, scan, code)
			lextest.Sound(t, code, f)
			if f.Problem != "" {
				t.Errorf("%s: %s, want empty", name, f.Problem)
			}
		}
	}
}
