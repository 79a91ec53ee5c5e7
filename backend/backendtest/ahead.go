package backendtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// seen is all that a program can see of how it was started.
const seen = `from __future__ import annotations
import os, sys
print(sys.path, sys.argv[1:], len(sys.argv), sorted(os.environ), sorted(sys.modules), os.getcwd(), __name__)
print(sorted(int(f) for f in os.listdir("/proc/self/fd"))[:3], sys.stdin.read(), os.path.basename(__file__) == os.path.basename(sys.argv[0]))
print(open(__file__).read().count("count"))
def f():
    raise ValueError("x")
f()
`

// countAhead tells in Bash whether an interpreter runs: 1 or 0.
const countAhead = `cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "python[0-9.]* -u"`

// sameAhead runs code in a sandbox with a new interpreter and in one with an interpreter that was
// started ahead, and compares what they do.
func sameAhead(t *testing.T, bare, warm *llmsandbox.Sandbox, code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
	t.Helper()
	with := run(t, warm, code, o)
	same(t, run(t, bare, code, o), with)
	return with
}

// addresses are in messages that programs print, and differ between any two runs.
var addresses = regexp.MustCompile("0x[0-9a-f]{6,}")

// same compares the results of a program in a new interpreter and in one that was started ahead.
func same(t *testing.T, without, with *llmsandbox.Result) {
	t.Helper()
	plain := func(text string) string { return addresses.ReplaceAllString(text, "0x") }
	if with.Status != without.Status || plain(with.Stdout) != plain(without.Stdout) || plain(with.Stderr) != plain(without.Stderr) {
		t.Errorf("ahead, want Status = %v, Stdout = %v, Stderr = %v:\n%s\nwithout:\n%s", without.Status, without.Stdout, without.Stderr, describe(with), describe(without))
	}
	if with.ExitCode != without.ExitCode || with.Signal != without.Signal {
		t.Errorf("ahead, want ExitCode = %d, Signal = %q:\n%s\nwithout:\n%s", without.ExitCode, without.Signal, describe(with), describe(without))
	}
}

// interpreterAhead runs code in an interpreter that was started before it: no field of the
// result shows that.
func (s *suite) interpreterAhead(t *testing.T) {
	s.has(t, FreshInterpreters)
	bare, sb := s.open(t, llmsandbox.Options{}), s.open(t, llmsandbox.Options{})
	ctx := testContext(t)
	if err := sb.Prepare(ctx); err != nil {
		t.Fatalf("prepare: %v", err)
	}
	same := func(code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
		t.Helper()
		return sameAhead(t, bare, sb, code, o)
	}
	if res := same(seen, nil); res.Status != llmsandbox.StatusError || !strings.Contains(res.Stderr, "line 7, in f") {
		t.Errorf("%s, want Status = StatusError, Stderr containing \"line 7, in f\"", describe(res))
	}
	same("print('é'); import sys; sys.exit(7)", nil)
	same("def broken(:", nil)
	same("import os; os.kill(os.getpid(), 11)", nil)
	same("", nil)
	same("import os; print(os.listdir('artifacts')); import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(5)'], capture_output=True, text=True))", nil)
	res := same("print('x' * (11 << 20), flush=True); import time; time.sleep(600)", nil)
	wantStatus(t, res, llmsandbox.StatusOutputLimit)

	// The timeout counts from the code on.
	if res := run(t, sb, "import time; print('in time'); time.sleep(600)", &llmsandbox.RunOptions{Timeout: time.Second}); res.Status != llmsandbox.StatusTimeout || res.Stdout != "in time\n" {
		t.Errorf("%s, want Status = StatusTimeout, Stdout = \"in time\\n\"", describe(res))
	}
	// What was there before it began is not what it made.
	if err := sb.WriteFile(ctx, "artifacts/earlier.txt", []byte("x")); err != nil {
		t.Fatal(err)
	}
	wantArtifacts(t, run(t, sb, "open('artifacts/later.txt', 'w').write('y')", nil), "later.txt")

	// It takes on arguments, variables and a directory. Its command line shows that it is the one.
	const options = "import sys, os; print(sys.argv[1:], os.environ.get('A'), os.getcwd(), os.path.expanduser('~'), sys.path[1:3], sys.stdin.read(), os.path.splitext(__file__)[1]); " +
		"os.system('echo $A; pwd')"
	wantStdout(t, run(t, sb, "import sys; print(sys.argv[1:], open('/proc/self/cmdline').read().count('é'))", &llmsandbox.RunOptions{
		Args: []string{"é<\"\n"}, Env: map[string]string{"A": "b"}, Dir: "artifacts",
	}), "['é<\"\\n'] 0\n")
	// Any other run does without it.
	for _, o := range []llmsandbox.RunOptions{
		{Args: []string{"a", "ü\"\\<\u2028\x01"}}, {Env: map[string]string{"A": "b'\n\"é"}}, {Dir: "artifacts"},
		{Env: map[string]string{"HOME": "/b"}}, {Env: map[string]string{"PYTHONPATH": "lib"}, Dir: "artifacts"},
		{Files: map[string][]byte{"more.py": []byte("1")}}, {Name: "main.pyw"}, {KeepChildren: true},
	} {
		same(options, &o)
	}
	wantStdout(t, run(t, sb, "import sys; print(sys.stdin.read())", &llmsandbox.RunOptions{Stdin: strings.NewReader("in")}), "in\n")
	for range 2 {
		same("import os; print(os.getpid() > 0)", nil)
		wantStdout(t, run(t, sb, countAhead, &llmsandbox.RunOptions{Language: "bash"}), "1\n")
	}
	if res, err := sb.Run(ctx, options, &llmsandbox.RunOptions{Dir: "missing"}); err == nil || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("%s: %v, want the error of a directory that is missing", describe(res), err)
	}

	other := s.open(t, llmsandbox.Options{Language: "bash"})
	if err := other.Prepare(ctx); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("Bash ahead: %v, want llmsandbox.ErrUnsupported", err)
	}
}

// importsAhead has an interpreter import modules before its code is known.
func (s *suite) importsAhead(t *testing.T) {
	ctx := testContext(t)
	with := func(modules ...string) *llmsandbox.Sandbox { return s.open(t, llmsandbox.Options{Imports: modules}) }
	const loaded = "import sys; print('decimal' in sys.modules, 'xml.dom.minidom' in sys.modules, 'json' in sys.modules)"
	sb := with("decimal", "xml.dom.minidom")
	for _, c := range []struct {
		name string
		opts *llmsandbox.RunOptions
		want string
	}{
		{"as it is", nil, "True True False\n"},
		{"once more", nil, "True True False\n"},
		{"arguments", &llmsandbox.RunOptions{Args: []string{"a"}}, "True True False\n"},
		// A module may have looked at either.
		{"a variable", &llmsandbox.RunOptions{Env: map[string]string{"A": "b"}}, "False False False\n"},
		{"a directory", &llmsandbox.RunOptions{Dir: "artifacts"}, "False False False\n"},
		{"after those", nil, "True True False\n"},
	} {
		if res := run(t, sb, loaded, c.opts); res.Stdout != c.want {
			t.Errorf("%s: %s, want Stdout = %q", c.name, describe(res), c.want)
		}
	}
	// A program's own file comes first, as it does without.
	if err := sb.WriteFile(ctx, "decimal.py", []byte("Decimal = 'own'")); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, sb, "import decimal; print(decimal.Decimal)", nil), "own\n")

	// Another handle finds it.
	sb = with("decimal")
	other := s.attach(t, sb)
	for range 2 {
		wantStdout(t, run(t, other, loaded, nil), "True False False\n")
		wantStdout(t, run(t, sb, loaded, nil), "True False False\n")
	}

	// What modules print while they are imported is not output of a run, and tracebacks show only the program.
	const raises = "print('end')\nraise ValueError('x')"
	want := run(t, s.open(t, llmsandbox.Options{}), raises, nil)
	if res := run(t, with("this"), raises, nil); res.Stdout != "end\n" || res.Stderr != want.Stderr {
		t.Errorf("%s, want Stdout = \"end\\n\", Stderr = %q", describe(res), want.Stderr)
	}

	fails := func(text string, is error, o llmsandbox.Options) {
		t.Helper()
		o = s.options(o)
		sb, err := llmsandbox.Open(ctx, &o)
		if err == nil {
			sb.Close()
		}
		if !errors.Is(err, is) || !strings.Contains(err.Error(), text) {
			t.Errorf("imports %.40q: %v, want %v and %q", o.Imports, err, is, text)
		}
	}
	for _, modules := range [][]string{{""}, {"os; x"}, {"json", "a..b"}, {"1a"}, {"a\n"}, slices.Repeat([]string{"json"}, 65)} {
		fails("Options.Imports", llmsandbox.ErrInvalid, llmsandbox.Options{Imports: modules})
	}
	fails("not_there: ModuleNotFoundError: No module named 'not_there'", llmsandbox.ErrInvalid, llmsandbox.Options{Imports: []string{"json", "not_there"}})
	fails("Bash", llmsandbox.ErrUnsupported, llmsandbox.Options{Imports: []string{"json"}, Language: "bash"})
}

// freshLayout has programs and kernels start anew that would be forked: forks share a hash seed and addresses.
func (s *suite) freshLayout(t *testing.T) {
	const base = `next(l.split("-")[0] for l in open("/proc/self/maps") if "libc" in l)`
	const imported = "'decimal' in __import__('sys').modules"
	sb := s.open(t, llmsandbox.Options{Imports: []string{"decimal"}})
	layout := func(fresh bool) [2]string {
		t.Helper()
		f := strings.Fields(run(t, sb, "print("+imported+", hash('a'), "+base+")", &llmsandbox.RunOptions{FreshLayout: fresh}).Stdout)
		if want := map[bool]string{false: "True", true: "False"}[fresh]; len(f) != 3 || f[0] != want {
			t.Fatalf("FreshLayout %v: %q, want %s, a hash and an address", fresh, f, want)
		}
		return [2]string(f[1:])
	}
	forked := layout(false)
	one, other := layout(true), layout(true)
	for i, what := range []string{"hash of a string", "address"} {
		if one[i] == other[i] || one[i] == forked[i] || other[i] == forked[i] {
			t.Errorf("the %s is %s in a fork, %s and %s in new interpreters, want different ones", what, forked[i], one[i], other[i])
		}
	}
	if again := layout(false); again != forked {
		t.Errorf("the layout of a fork after them is %q, want %q: that of the same interpreter", again, forked)
	}
	p, err := sb.StartRun(testContext(t), "print("+imported+")", &llmsandbox.RunOptions{FreshLayout: true})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Wait(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	wantStdout(t, res, "False\n")

	k := openKernel(t, sb, "", &llmsandbox.KernelOptions{Plain: true, FreshLayout: true})
	wantValue(t, k, imported, "False")
	if err := k.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantValue(t, k, imported, "False")
	wantValue(t, openKernel(t, sb, "", plainPython), imported+", str(hash('a'))", "(True, '"+forked[0]+"')")
}

// attachedAhead has another handle take over a run in an interpreter that was started ahead.
// While that waits for its code, it is no program, and cannot be attached to.
func (s *suite) attachedAhead(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	other := s.attach(t, sb)
	if err := sb.Prepare(ctx); err != nil {
		t.Fatalf("prepare: %v", err)
	}
	if infos, err := other.Processes(ctx); err != nil || len(infos) != 0 {
		t.Errorf("processes while it waits: %+v, %v; want none", infos, err)
	}
	out := newReply()
	defer out.close()
	ran := make(chan error, 1)
	go func() {
		res, err := sb.Run(ctx, `import os, time
print("begun", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
open("artifacts/made.txt", "w").write("made")
raise SystemExit(7)`, &llmsandbox.RunOptions{Stdout: out})
		if errors.Is(err, llmsandbox.ErrDetached) && len(res.Artifacts) == 0 {
			err = nil
		} else {
			err = fmt.Errorf("%w: %s, artifacts %q; want ErrDetached and none", err, describe(res), artifactNames(res.Artifacts))
		}
		ran <- err
	}()
	out.want(t, "begun")
	infos, err := other.Processes(ctx)
	if err != nil || len(infos) != 1 {
		t.Fatalf("processes while it runs: %+v, %v; want the run's", infos, err)
	}
	p, err := other.AttachProcess(ctx, infos[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ran; err != nil {
		t.Errorf("the handle that began the run: %v", err)
	}
	if err := other.WriteFile(ctx, "go", nil); err != nil {
		t.Fatal(err)
	}
	res := wait(t, p)
	wantExit(t, res, 7)
	wantArtifacts(t, res, "made.txt")
}

// aheadLosesItsStream has the stream that starts an interpreter break after each of the bytes
// that this takes, and some of the run's: the run is what it is without, and nothing of the
// interpreter is left.
func (s *suite) aheadLosesItsStream(t *testing.T) {
	ctx := testContext(t)
	c := s.newCutting(t, 0, 0)
	sb := s.open(t, llmsandbox.Options{Backend: c})
	for after := range 45 {
		answers(t, sb)
		stream := c.latest.Load()
		stream.breakAfter(after)
		if err := sb.Prepare(ctx); err != nil && !errors.Is(err, llmsandbox.ErrLost) {
			t.Errorf("%d: prepare: %v, want no error or llmsandbox.ErrLost", after, err)
		}
		res, err := sb.Run(ctx, "print(6 * 7)", nil)
		if err != nil || res.Status != llmsandbox.StatusOK || res.Stdout != "42\n" {
			t.Errorf("%d: %s: %v, want no error, Status = StatusOK, Stdout = \"42\\n\"", after, describe(res), err)
		}
		stream.breakAfter(never)
		// What asks just when the stream breaks may be lost.
		if _, err := sb.Stat(ctx, "."); err != nil && !errors.Is(err, llmsandbox.ErrLost) {
			t.Errorf("%d: %v, want no error or llmsandbox.ErrLost", after, err)
		}
		if left := run(t, sb, countAhead, &llmsandbox.RunOptions{Language: "bash"}).Stdout; left != "0\n" && left != "1\n" {
			t.Errorf("%d: interpreters that are left: %q, want at most one", after, left)
		}
	}
}

// describe is what a program can do something about.
func describe(res *llmsandbox.Result) string {
	return fmt.Sprintf("%s, exit code %v, %s %s\nstdout: %s\nstderr: %s", res.Status, res.ExitCode, res.Signal, res.Reason, clip(res.Stdout), clip(res.Stderr))
}
