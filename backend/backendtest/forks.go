package backendtest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// forkImports are modules that programs of the difference test use, and some that they do not.
var forkImports = []string{
	"decimal", "json", "random", "uuid", "logging", "threading", "multiprocessing", "subprocess", "asyncio", "concurrent.futures",
	"unittest", "argparse", "inspect", "traceback", "tempfile", "atexit", "socket", "ssl", "sqlite3", "csv", "xml.dom.minidom",
}

// forkedPrograms runs many programs in new interpreters, in forks of a bare one and in forks of one with
// modules, and compares all they print.
func (s *suite) forkedPrograms(t *testing.T) {
	s.has(t, FreshInterpreters)
	bare, warm := s.open(t, llmsandbox.Options{}), s.open(t, llmsandbox.Options{})
	if err := warm.Prepare(testContext(t)); err != nil {
		t.Fatal(err)
	}
	with := s.open(t, llmsandbox.Options{Imports: forkImports})
	few := s.open(t, llmsandbox.Options{Imports: []string{"json"}}) // without multiprocessing, which refers to the main module
	for i, code := range forkPrograms {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			without := run(t, bare, code, nil)
			same(t, without, run(t, warm, code, nil))
			same(t, without, run(t, with, code, nil))
			same(t, without, run(t, few, code, nil))
			if t.Failed() {
				t.Logf("the program:\n%s", code)
			}
		})
	}
	for _, code := range []string{
		`import sys; i = sys.stdin; print(i.seekable(), i.name, i.mode, i.encoding, i.errors, i.newlines, i.line_buffering, i is sys.__stdin__, i.buffer.raw.name, i.buffer.raw.mode, i)
print(input("? "), repr(sys.stdin.read()), repr(sys.stdin.read()))`,
		"import os, subprocess; print(os.read(0, 3)); print(subprocess.run(['cat'], capture_output=True))",
		"print('not read')",
		"def broken(:",
	} {
		input := func() *llmsandbox.RunOptions {
			return &llmsandbox.RunOptions{Stdin: strings.NewReader("one\r\ntwo é\n")}
		}
		without := run(t, bare, code, input())
		same(t, without, run(t, warm, code, input()))
		same(t, without, run(t, with, code, input()))
	}
	// Its input is whole also where it is then run in a new interpreter.
	if err := few.WriteFile(testContext(t), "json.py", nil); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, few, "import json; print(input(), json.__file__)", &llmsandbox.RunOptions{Stdin: strings.NewReader("whole")}), "whole "+few.Workdir()+"/json.py\n")

	for name, sb := range map[string]*llmsandbox.Sandbox{"new": bare, "forked": warm, "forked with modules": with} {
		// What a fork could share. The last is shared, and says which of them was forked.
		const code = `import os, random, secrets, ssl, time, uuid, tempfile, numbers
print(random.random(), secrets.token_hex(), uuid.uuid4(), uuid.uuid1(), ssl.RAND_bytes(8), os.urandom(8), tempfile.mktemp(), os.getpid(), time.monotonic(), sep="\n")
print(hash("x"))`
		first, second := strings.Split(run(t, sb, code, nil).Stdout, "\n"), strings.Split(run(t, sb, code, nil).Stdout, "\n")
		if len(first) != 11 || len(second) != 11 {
			t.Fatalf("%s: %q, %q, want 10 lines each", name, first, second)
		}
		for i := range 9 {
			if first[i] == second[i] {
				t.Errorf("%s: line %d is %q in both runs, want different ones", name, i, first[i])
			}
		}
		if forked := first[9] == second[9]; forked != (sb != bare) {
			t.Errorf("%s: the hash of a string is %s and %s, want forks to share it", name, first[9], second[9])
		}
	}
}

// forkedEnds has forked programs end in every way, and leave behind what they can: the next one finds nothing of
// it, and is forked again.
func (s *suite) forkedEnds(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{Imports: []string{"decimal"}})
	const forked = "import sys; print('decimal' in sys.modules)"
	again := func(after string) {
		t.Helper()
		if res := run(t, sb, forked, nil); res.Stdout != "True\n" || res.Status != llmsandbox.StatusOK {
			t.Errorf("the run after %s: %s, want one that is forked", after, describe(res))
		}
	}
	processes := func() string {
		t.Helper()
		return run(t, sb, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 10[0-9][0-9]'", &llmsandbox.RunOptions{Language: "bash"}).Stdout
	}

	wantStdout(t, run(t, sb, `import subprocess
subprocess.Popen(["sleep", "1001"])
print("left")`, nil), "left\n")
	again("one that left a child")
	wantStdout(t, run(t, sb, `import os, subprocess
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "1002"])
    os._exit(0)
os.wait()
print("left")`, nil), "left\n")
	again("one that left a daemon")
	if left := processes(); left != "0\n" {
		t.Errorf("processes that are left: %s, want 0", left)
	}

	// It reaches neither the interpreter that forks nor what that forks next.
	wantStdout(t, run(t, sb, `import os
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) == os.getpid():
        continue
    for name in "mem", "environ", "maps", "fd/0", "fd/1", "fd/3", "fd/4", "cwd", "exe":
        for flags in os.O_RDONLY, os.O_RDWR:
            try:
                print(os.open("/proc/%s/%s" % (pid, name), flags), pid, name, open("/proc/%s/cmdline" % pid).read())
            except OSError:
                pass
print(os.path.exists("/proc/self/fd/0"), open("/proc/self/maps").read(1) != "")`, nil), "True True\n")

	// What it uses is its own.
	res := run(t, sb, "x = bytearray(100 << 20)\nimport time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass", nil)
	if res.CPU.Seconds() < 0.3 || res.PeakMemory < 100<<20 {
		t.Errorf("CPU %v, peak %d, want at least 0.3 s and 100 MiB", res.CPU, res.PeakMemory)
	}
	if after := run(t, sb, "print(1)", nil); after.PeakMemory >= res.PeakMemory {
		t.Errorf("a program after it has the peak %d, want less than %d", after.PeakMemory, res.PeakMemory)
	}

	// Its end is shorter if nothing of the rest would be seen but by an audit hook, and if its Python has nothing called later.
	first := run(t, sb, "import atexit; print(atexit._ncallbacks())", nil).Stdout == "1\n"
	for code, whole := range map[string]bool{"": !first, "kept = open(1, 'wb', closefd=False)": true, "raise SystemExit": true} {
		const hook = "import os, sys; sys.addaudithook(lambda event, args, write=os.write: event.startswith('cpython.') and write(1, b'cleared'))\n"
		if res := run(t, sb, hook+code, nil); strings.Contains(res.Stdout, "cleared") != whole {
			t.Errorf("the end after %q: %s, want all of it: %t", code, describe(res), whole)
		}
	}

	// Only one at a time is forked, and none waits for it.
	var all sync.WaitGroup
	results := make([]*llmsandbox.Result, 4)
	for i := range results {
		all.Go(func() { results[i], _ = sb.Run(ctx, fmt.Sprintf("import decimal; print(decimal.Decimal(%d))", i), nil) })
	}
	all.Wait()
	for i, res := range results {
		if want := fmt.Sprintf("%d\n", i); res.Stdout != want {
			t.Errorf("one of many: %s, want Stdout = %q", describe(res), want)
		}
	}
	again("several at once")

	// What kills whatever it can gets the interpreter, which the next run replaces.
	res, _ = sb.Run(ctx, `import os, signal
for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) > 1):
    try:
        if pid != os.getpid():
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
print("alive")`, nil)
	if res.Status != llmsandbox.StatusLost && res.Stdout != "alive\n" {
		t.Errorf("one that kills: %s, want Stdout = \"alive\\n\", or lost where it could kill what watches it", describe(res))
	}
	wantStdout(t, run(t, sb, "import decimal; print(decimal.Decimal(1))", nil), "1\n")
	again("one that killed the interpreter")
	// One that stops it costs the next run time, and no more.
	run(t, sb, `import os, signal
for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) > 1):
    try:
        if pid != os.getpid() and "python" in open("/proc/%d/comm" % pid).read():
            os.kill(pid, signal.SIGSTOP)
    except OSError:
        pass`, nil)
	wantStdout(t, run(t, sb, "print(1)", nil), "1\n")
	wantStdout(t, run(t, sb, "print(2)", nil), "2\n")
	again("one that stopped the interpreter")

	// A directory where Python looks for modules has appeared.
	wantStdout(t, run(t, sb, `import os, site
os.makedirs(site.getusersitepackages())
open(site.getusersitepackages() + "/later.py", "w").write("x = 1")`, nil), "")
	wantStdout(t, run(t, sb, "import later; print(later.x)", nil), "1\n")
	wantStdout(t, run(t, sb, "import later; print(later.x)", nil), "1\n")
}

// forkedKernels has kernels forked from a prepared interpreter.
func (s *suite) forkedKernels(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Imports: []string{"decimal", "colorsys"}})
	const forked = "'colorsys' in __import__('sys').modules"
	k := openKernel(t, sb, "", plainPython)
	wantValue(t, k, forked, "True")
	wantValue(t, k, "import os, sys; x = 5; (sys.argv, sys.path[0], os.getcwd() == "+fmt.Sprintf("%q", sb.Workdir())+", __name__)", "([''], '', True, '__main__')")
	wantValue(t, k, "sorted(os.listdir('.'))", "['artifacts']")
	c := cell(t, k, "def f():\n    raise ValueError('x')\nf()", nil)
	if c.Error == nil || !strings.Contains(c.Error.Traceback, "line 2, in f") || strings.Contains(c.Error.Traceback, "exec") {
		t.Errorf("%+v, want the traceback of the cell alone", c.Error)
	}
	wantStdout(t, run(t, sb, "import sys; print('colorsys' in sys.modules)", nil), "False\n") // the kernel is the one that is forked
	wantValue(t, openKernel(t, sb, "", plainPython), forked, "False")
	if err := k.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantValue(t, k, forked+", 'x' in globals()", "(True, False)")
	if c := cell(t, k, "import os; os.kill(os.getpid(), 9)", nil); c.Status != llmsandbox.StatusKilled || !c.StateLost {
		t.Errorf("a cell that kills its kernel: %+v, want Status = StatusKilled, StateLost true", c)
	}
	wantValue(t, k, forked, "True")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, sb, "import sys; print('colorsys' in sys.modules)", nil), "True\n")

	// A new interpreter in place of the one that has forked it leaves it alone.
	k = openKernel(t, sb, "", plainPython)
	wantValue(t, k, "z = 7", "")
	if err := sb.Prepare(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, sb, "import sys; print('colorsys' in sys.modules)", nil), "True\n")
	wantValue(t, k, "z", "7")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}

	// Another handle takes one over.
	k = openKernel(t, sb, "", plainPython)
	wantValue(t, k, "y = 6", "")
	other := s.attach(t, sb)
	taken, err := other.AttachKernel(testContext(t), k.Info().ID, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, taken, "y", "6")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
}

// forkPrograms are programs of which all the output is the same in every run.
var forkPrograms = strings.Split(strings.Trim(forkProgramTexts, "\n"), "\n---\n")

const forkProgramTexts = `
print("hello")
---
---
import sys; print(sys.argv, sys.path[1:], sys.flags, sys.executable, sys.version, sys.orig_argv[1:2] if hasattr(sys, "orig_argv") else "")
---
import sys; print(sys.stdin.read(), sys.stdin.isatty(), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.stdout.line_buffering)
---
import sys; print(sys.stdout.seekable(), sys.stdin.seekable(), sys.stdout.fileno(), sys.stdin.buffer.raw.mode, sys.stdout.write_through)
---
import os; print(sorted(os.environ.items()), os.getcwd(), os.umask(0o22), os.nice(0), os.getuid() == os.geteuid(), os.getgid() == os.getegid(), len(os.getgroups()))
---
import os; print(sorted(os.listdir("/proc/self/fd"))[:3], os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), os.getppid() > 0)
---
import signal; print([(s, signal.getsignal(s)) for s in (1, 2, 3, 13, 14, 15, 17, 20)], signal.pthread_sigmask(0, []))
---
import resource; print([resource.getrlimit(r) for r in range(16)])
---
import os; os.system("echo $PATH $HOME; ulimit -a; umask; pwd; exit 3")
---
print(__name__, __file__ == __import__("sys").argv[0], __doc__, __package__, __spec__, sorted(globals()))
---
"""A docstring."""
print(__doc__)
---
if __name__ == "__main__":
    print("main")
---
import inspect
def f(a, b=2):
    # a comment
    return a + b
print(inspect.getsource(f), inspect.signature(f))
---
import inspect, sys; print(len(inspect.stack()), sys._getframe().f_back, sys._getframe().f_lineno)
---
import traceback
def f(): traceback.print_stack()
f()
---
def f(n): return f(n + 1)
try:
    f(0)
except RecursionError as e:
    print(e)
---
import sys; print(sys.getrecursionlimit())
def f(n):
    try: return f(n + 1)
    except RecursionError: return n
print(f(0) > 900)
---
raise ValueError("no")
---
class E(Exception): pass
try:
    raise E("inner")
except E as e:
    raise KeyError("outer") from e
---
def g(:
---
  x = 1
---
import nothing_of_this_name
---
from json import nothing
---
1 / 0
---
import sys; sys.exit()
---
import sys; sys.exit(3)
---
import sys; sys.exit("a message")
---
raise SystemExit(300)
---
exit(4)
---
import os; os._exit(5)
---
import os; os.abort()
---
import os, signal; os.kill(os.getpid(), signal.SIGTERM)
---
import os, signal; os.kill(os.getpid(), signal.SIGINT)
---
import signal, os
signal.signal(signal.SIGUSR1, lambda *a: print("handled", a[0]))
os.kill(os.getpid(), signal.SIGUSR1)
---
import signal, time
came = []
signal.signal(signal.SIGALRM, lambda *a: came.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
while not came: time.sleep(0.01)
print(came)
---
raise KeyboardInterrupt
---
import atexit
atexit.register(print, "first registered")
atexit.register(print, "last registered")
print("end")
---
import atexit
@atexit.register
def f(): raise ValueError("at exit")
---
import atexit, json, decimal, sys
@atexit.register
def f(): print(json.dumps([1]), decimal.Decimal("1.10"), "json" in sys.modules, "decimal" in sys.modules)
---
class A:
    def __del__(self): print("deleted")
a = A()
---
import json
class A:
    def __del__(self): print(json.dumps({"a": 1}))
a = A()
b = [a]
del a
---
class A:
    def __del__(self): print("deleted in a cycle")
a = A(); a.self = a
del a
import gc; print(gc.collect() > 0, gc.isenabled(), gc.get_threshold(), gc.garbage)
---
import weakref
class A: pass
a = A()
weakref.finalize(a, print, "finalized")
print(weakref.ref(a)() is a)
---
def g(): return f
f = open("left-open.txt", "w"); f.write("flushed at the end")
---
print(open("left-open.txt").read()); import os; os.remove("left-open.txt")
---
class A:
    def __del__(self): print("deleted", __name__, A, b, g())
def g(): return sorted(k for k in globals() if not k.startswith("__"))
a = A()
b = [a]
del a
---
import __main__, sys; print(__main__ is sys.modules["__main__"], __main__.__dict__ is globals())
---
import sys; sys.exit(None)
---
raise SystemExit(1 << 40)
---
raise SystemExit("several", 3)
---
import atexit, sys
atexit.register(sys.exit, 5)
print("end")
---
import atexit; atexit.register(lambda: print("__file__" in globals(), "__cached__" in globals(), "__name__" in globals()))
---
import sys
def hook(*args):
    print(args[0].__name__); sys.exit(7)
sys.excepthook = hook
1 / 0
---
import atexit, sys
@atexit.register
def forget():
    for name in "last_type", "last_value", "last_traceback": delattr(sys, name)
1 / 0
---
(lambda names, leave: (names.clear(), leave(3)))(globals(), exit)
---
del __file__, __cached__; exit(3)
---
import sys; sys.modules["__main__"] = sys; sys.exit(4)
---
import sys; sys.modules.clear(); raise SystemExit(5)
---
import os; print("lost"); os.close(1)
---
import sys
class Writer:
    def write(self, text): return sys.__stdout__.write(text)
    def flush(self): sys.__stdout__.write("flushed\n")
sys.stdout = Writer(); print("written")
---
import sys
class Writer:
    def write(self, text): return sys.__stdout__.write(text)
    def flush(self): raise OSError("not flushed")
sys.stdout = Writer(); print("written")
---
class A:
    def __del__(self): raise ValueError("in a destructor")
a = A()
---
import sys
class A:
    def __init__(self, say=print, ends=sys.is_finalizing): self.say, self.ends = say, ends
    def __del__(self): self.say(self.ends())
a = A()
---
import sys
sys.unraisablehook = lambda u: print("unraisable", repr(u.exc_value))
class A:
    def __del__(self): raise ValueError
a = A(); del a
b = A()
---
def f():
    try: yield
    finally: print("closed")
g = f(); next(g)
---
import os, threading
class A:
    def __del__(self, say=os.write): say(1, b"of a thread\n")
local = threading.local(); local.a = A()
---
import json
class A:
    def __del__(self): print("deleted with a module")
json.kept = A()
---
class A:
    __slots__ = ()
    def __del__(self): print("deleted without a dictionary")
a = A()
---
import weakref
class A: pass
def f(reference): print("called", reference() is None)
a = A(); r = weakref.ref(a, f); p = weakref.proxy(a, lambda proxy: print("called for a proxy"))
---
import weakref
class A:
    def f(self, reference): print("called with a method")
a = A(); b = A(); r = weakref.ref(a, b.f)
---
import sys
def hook(*args):
    for name in "last_type", "last_value", "last_traceback": delattr(sys, name)
sys.excepthook = hook
1 / 0
---
import io, sys
sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False)); print("flushed by its end")
---
import sqlite3
c = sqlite3.connect("left.db"); print(c.execute("pragma journal_mode=wal").fetchall()); c.execute("create table t (x)"); c.execute("insert into t values (1)"); c.commit()
---
import os; print(sorted(n for n in os.listdir() if n.startswith("left"))); [os.remove(n) for n in os.listdir() if n.startswith("left")]
---
async def f(): pass
c = f()
---
import gc, sys; gc.unfreeze(); print(len(sys.modules) > 5, gc.get_freeze_count())
---
import ctypes; ctypes.CDLL(None).printf(b"flushed by C\n")
---
import ctypes; ctypes.pythonapi.Py_AtExit(ctypes.CDLL(None).abort); print("end")
---
import ctypes; print(ctypes._SimpleCData.__subclasses__())
---
import concurrent.futures, time
concurrent.futures.ThreadPoolExecutor(1).submit(lambda: (time.sleep(0.05), print("after the end of main")))
---
import multiprocessing, time
def f(): time.sleep(0.05); print("the child ends")
if __name__ == "__main__": multiprocessing.get_context("fork").Process(target=f).start(); print("main ends", flush=True)
---
import sys; sys.stdout.write("no newline"); sys.stderr.write("to stderr")
---
import sys; sys.stdout.close()
---
import os; os.close(1); os.write(2, b"closed\n")
---
import os; r, w = os.pipe(); print((r, w)); os.dup2(w, 1); print("into the pipe", flush=True); os.dup2(2, 1); print(os.read(r, 100))
---
import threading
def f(): print(threading.current_thread().name, threading.main_thread() is threading.current_thread())
t = threading.Thread(target=f, name="other"); t.start(); t.join(); f()
print(threading.active_count(), threading.get_ident() == threading.main_thread().ident, threading.get_native_id() == __import__("os").getpid())
---
import threading, time
def f(): time.sleep(0.05); print("after the end of main")
threading.Thread(target=f).start()
---
import threading, time
def f():
    time.sleep(100); print("never")
threading.Thread(target=f, daemon=True).start()
print("main ends")
---
import threading
def f(): raise ValueError("in a thread")
t = threading.Thread(target=f, name="T"); t.start(); t.join()
---
import threading
lock = threading.Lock(); cond = threading.Condition(); event = threading.Event(); local = threading.local()
def f():
    with cond: event.set(); cond.notify()
with cond:
    threading.Thread(target=f).start(); cond.wait(5)
print(event.is_set(), lock.acquire(False))
---
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(4) as p: print(list(p.map(lambda x: x * x, range(5))))
---
import multiprocessing
def f(x): return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as p: print(p.map(f, range(5)))
---
import multiprocessing, os
def f(q): q.put((multiprocessing.current_process().name, multiprocessing.parent_process() is not None))
if __name__ == "__main__":
    c = multiprocessing.get_context("fork")
    q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode, multiprocessing.active_children())
---
import multiprocessing
def f(x): return x + 1
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as p: print(p.map(f, [1, 2]))
---
import os
pid = os.fork()
if pid == 0:
    print("child", flush=True); os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(os, "waitstatus_to_exitcode") else 7)
---
import os
if os.fork() == 0:
    raise ValueError("in the child")
os.wait(); print("parent")
---
import os
try: print(os.wait())
except ChildProcessError as e: print(e)
---
import os, signal
signal.signal(signal.SIGCHLD, lambda *a: print("SIGCHLD", flush=True))
if os.fork() == 0: os._exit(0)
os.wait(); print("end")
---
import os; os.register_at_fork(before=lambda: print("before", flush=True), after_in_parent=lambda: print("parent", flush=True))
if os.fork() == 0: os._exit(0)
os.wait()
---
import subprocess, sys; print(subprocess.run([sys.executable, "-c", "import sys; print(sys.path[1:], sys.argv, sorted(sys.modules)[:5])"], capture_output=True, text=True).stdout)
---
import subprocess; print(subprocess.check_output("cat; echo $0", shell=True, input=b"in"))
---
import subprocess; p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False); print(p.communicate(b"x"), p.returncode)
---
import os; os.execvp("echo", ["echo", "executed"])
---
import os, sys; os.execv(sys.executable, [sys.executable, "-c", "import os, sys; print(sorted(os.environ), sys.path[1:])"])
---
import asyncio
async def f(n):
    await asyncio.sleep(0.01 * n); return n
async def main(): print(await asyncio.gather(*map(f, range(3))))
asyncio.run(main())
---
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("echo", "x", stdout=asyncio.subprocess.PIPE); print(await p.communicate())
asyncio.run(main())
---
import asyncio
async def main(): raise ValueError("in a task")
asyncio.run(main())
---
import logging
logging.warning("to stderr"); logging.getLogger("x").info("not shown"); print(logging.getLogger().handlers)
---
import warnings
warnings.warn("careful"); print(warnings.filters == warnings.filters)
---
import warnings; warnings.simplefilter("error")
try: warnings.warn("x", DeprecationWarning)
except DeprecationWarning as e: print(repr(e))
---
import random; random.seed(1); print([random.random() for _ in range(3)], random.sample(range(9), 3))
---
import time; print(time.tzname, time.strftime("%z"), time.perf_counter() > 0, time.process_time() < 5, time.thread_time() < 5)
---
import locale; print(locale.getlocale(), locale.setlocale(locale.LC_ALL))
---
import decimal; print(decimal.getcontext(), decimal.Decimal(1) / 3)
---
import json, re, collections, itertools, functools, math
print(json.loads('{"a": [1, 2.5, null]}'), re.sub("b+", "x", "abbbc"), collections.Counter("abca"), functools.reduce(math.gcd, [12, 18]))
---
import sqlite3
c = sqlite3.connect(":memory:"); c.execute("create table t (x)"); c.execute("insert into t values (1)"); print(c.execute("select * from t").fetchall())
---
import socket
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); c = socket.create_connection(s.getsockname()); d, _ = s.accept(); c.send(b"y"); print(d.recv(1))
---
import tempfile, os
with tempfile.TemporaryDirectory() as d: open(d + "/x", "w").write("x"); print(os.listdir(d))
print(tempfile.gettempdir())
---
import pickle, copy
class A:
    def __init__(self): self.x = [1]
a = pickle.loads(pickle.dumps(A())); print(a.x, copy.deepcopy(a).x, A.__module__, A.__qualname__)
---
import dataclasses, enum, typing
@dataclasses.dataclass(order=True)
class P: x: int; y: typing.List[int] = dataclasses.field(default_factory=list)
class C(enum.Enum): A = 1
print(P(1), sorted([P(2), P(1)]), C.A, C(1), typing.get_type_hints(P))
---
import ctypes; print(ctypes.CDLL(None).abs(-3), ctypes.sizeof(ctypes.c_long))
---
import gc; print(gc.get_count()[2] >= 0, gc.get_debug(), gc.isenabled())
---
import sys; sys.excepthook = lambda *a: print("hook", a[0].__name__); raise ValueError
---
import sys; sys.settrace(lambda *a: None); print(sys.gettrace() is not None)
def f(): pass
f()
---
import sys, builtins; builtins.print("x"); sys.displayhook(3); print(builtins.open is open, _ if "_" in globals() else "", builtins._)
---
import importlib, sys
open("mine.py", "w").write("x = 1"); importlib.invalidate_caches()
import mine; print(mine.x, mine.__file__.endswith("/mine.py")); open("mine.py", "w").write("x = 22"); print(importlib.reload(mine).x)
---
import mine; print(mine.x)
import os, shutil; os.remove("mine.py"); shutil.rmtree("__pycache__", ignore_errors=True)
---
import runpy; open("r.py", "w").write("print(__name__)"); runpy.run_path("r.py", run_name="__main__"); import os; os.remove("r.py")
---
import code; code.InteractiveInterpreter({"x": 2}).runcode(compile("print(x)", "<s>", "exec"))
---
exec("def f(): return 1"); print(f(), eval("1 + 1"), (lambda: __name__)())
---
import unittest
class T(unittest.TestCase):
    def test(self): self.assertEqual(1, 1)
r = unittest.TextTestRunner(stream=open("/dev/null", "w")).run(unittest.defaultTestLoader.loadTestsFromTestCase(T)); print(r.testsRun, r.wasSuccessful())
---
import argparse; argparse.ArgumentParser(prog="p").parse_args(["--nothing"])
---
import argparse; argparse.ArgumentParser(prog="p").print_help()
---
import shutil; print(shutil.get_terminal_size(), shutil.which("sh"))
---
import platform, os; print(platform.python_version(), platform.node(), os.cpu_count() > 0, os.uname().sysname)
---
import zlib, hashlib, base64; print(zlib.crc32(b"x"), hashlib.sha256(b"x").hexdigest(), base64.b64encode(b"x"))
---
import csv, io; w = io.StringIO(); csv.writer(w).writerows([[1, "a,b"]]); print(repr(w.getvalue()))
---
input()
---
async def f(): pass
f()
---
x = [i for i in range(100000)]; print(sum(x)); del x
---
import faulthandler; print(faulthandler.is_enabled()); faulthandler.enable(); import os; os.write(1, b"ok\n")
---
from __future__ import annotations
def f(x: nothing) -> nothing: return x
print(f(1), f.__annotations__)
---
match = 1; print(match)
---
print("é", "日本", "\N{SNOWMAN}", "\udcff".encode("utf-8", "surrogateescape"))
---
print("\udcff")
---
import sys; print(sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.flags.utf8_mode, sys.float_info.max, sys.maxsize, sys.getswitchinterval())
`
