package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func TestAcceptance01to04Python(t *testing.T) {
	sb := open(t, llmsandbox.Options{Language: "python"})
	t.Run("01 hello", func(t *testing.T) {
		res := run(t, sb, `print("hi")`, nil)
		wantExit(t, res, 0)
		wantStdout(t, res, "hi\n")
		if res.Stderr != "" {
			t.Errorf("stderr %q, want none", res.Stderr)
		}
	})
	t.Run("02 exit code", func(t *testing.T) {
		wantExit(t, run(t, sb, "import sys; sys.exit(7)", nil), 7)
	})
	t.Run("03 exception", func(t *testing.T) {
		res := run(t, sb, `raise ValueError("x")`, nil)
		wantExit(t, res, 1)
		if !strings.Contains(res.Stderr, "ValueError: x") || !strings.Contains(res.Stderr, "line 1") {
			t.Errorf("stderr %q, want ValueError: x at line 1", res.Stderr)
		}
	})
	t.Run("04 streams apart", func(t *testing.T) {
		res := run(t, sb, "import sys\nfor i in range(500):\n  print('o', i)\n  print('e', i, file=sys.stderr)", nil)
		wantExit(t, res, 0)
		var out, errs strings.Builder
		for i := range 500 {
			fmt.Fprintf(&out, "o %d\n", i)
			fmt.Fprintf(&errs, "e %d\n", i)
		}
		if res.Stdout != out.String() || res.Stderr != errs.String() {
			t.Errorf("stdout %d bytes, stderr %d bytes, want %d and %d, each whole", len(res.Stdout), len(res.Stderr), out.Len(), errs.Len())
		}
	})
}

var hellos = map[string]struct{ program, code string }{
	"python":     {"python3", `print("hello")`},
	"javascript": {"node", `console.log("hello")`},
	"java":       {"javac", `public class Greeter { public static void main(String[] a) { System.out.println("hello"); } }`},
	"cpp":        {"g++", "#include <iostream>\nint main() { std::cout << \"hello\\n\"; }"},
	"go":         {"go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }"},
	"ruby":       {"ruby", `puts "hello"`},
	"r":          {"Rscript", `cat("hello\n")`},
	"bash":       {"bash", `echo hello`},
}

func TestAcceptance05HelloInEveryLanguage(t *testing.T) {
	for lang, h := range hellos {
		t.Run(lang, func(t *testing.T) {
			requirePrograms(t, h.program)
			sb := open(t, llmsandbox.Options{Language: lang})
			res := run(t, sb, h.code, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, "hello\n")
		})
	}
}

func TestAcceptance06to07CompileError(t *testing.T) {
	requirePrograms(t, "g++")
	sb := open(t, llmsandbox.Options{Language: "cpp"})
	wantExit(t, run(t, sb, hellos["cpp"].code, nil), 0) // a binary that must not be run again
	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprintf("live %v", live), func(t *testing.T) {
			o := &llmsandbox.RunOptions{}
			var seen strings.Builder
			if live {
				o.Stdout = &seen
			}
			res := run(t, sb, "#include <iostream>\nint main() { std::cout << \"never\\n\" }", o)
			wantStatus(t, res, llmsandbox.StatusError)
			if *res.ExitCode == 0 || !strings.Contains(res.Stderr, "error") || res.Stdout != "" || seen.Len() > 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q: want the compiler's error and nothing run", *res.ExitCode, res.Stdout, clip(res.Stderr))
			}
		})
	}
}

func TestAcceptance08ExitCodeWithLiveOutput(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	var seen strings.Builder
	res := run(t, sb, "print('x'); import sys; sys.exit(7)", &llmsandbox.RunOptions{Stdout: &seen})
	wantExit(t, res, 7)
	if seen.String() != "x\n" {
		t.Errorf("live output %q", seen.String())
	}
}

func TestAcceptance09Commands(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, llmsandbox.Options{})
	for _, c := range []struct {
		argv []string
		line string
		code int
		out  string
	}{
		{argv: []string{"false"}, code: 1},
		{argv: []string{"echo", "a"}, out: "a\n"},
		{argv: []string{"echo", "a", "|", "wc"}, out: "a | wc\n"},
		{argv: []string{"sh", "-c", "exit 3"}, code: 3},
		{line: "echo a | wc -c", out: "2\n"},
		{line: "exit 3", code: 3},
	} {
		var res *llmsandbox.Result
		var err error
		if c.line != "" {
			res, err = sb.Shell(ctx, c.line, nil)
		} else {
			res, err = sb.Exec(ctx, c.argv, nil)
		}
		if err != nil {
			t.Fatalf("%q %q: %v", c.argv, c.line, err)
		}
		wantExit(t, res, c.code)
		wantStdout(t, res, c.out)
	}
	for _, argv := range [][]string{nil, {}, {""}} {
		if _, err := sb.Exec(ctx, argv, nil); !errors.Is(err, llmsandbox.ErrEmptyCommand) {
			t.Errorf("Exec(%q): %v, want ErrEmptyCommand", argv, err)
		}
	}
	if _, err := sb.Shell(ctx, " ", nil); !errors.Is(err, llmsandbox.ErrEmptyCommand) {
		t.Errorf("Shell of a blank line: %v, want ErrEmptyCommand", err)
	}
	if _, err := sb.Exec(ctx, []string{"no-such-program"}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v, want fs.ErrNotExist", err)
	}
}

func TestAcceptance10Closed(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, llmsandbox.Options{})
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sb.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	res, err := sb.Run(ctx, "print(1)", nil)
	if !errors.Is(err, llmsandbox.ErrClosed) || res.Status != llmsandbox.StatusSetupFailed || res.ExitCode != nil {
		t.Errorf("Run after Close: %v, %+v, want ErrClosed", err, res)
	}
	if _, err := sb.ReadFile(ctx, "x"); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("ReadFile after Close: %v, want ErrClosed", err)
	}
}

func TestAcceptance11FilesPersistStateDoesNot(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	wantExit(t, run(t, sb, "x = 1; open('f.txt', 'w').write('kept')", nil), 0)
	res := run(t, sb, "print(open('f.txt').read()); print('x' in globals())", nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "kept\nFalse\n")
}

func TestAcceptance12ConcurrentCompiles(t *testing.T) {
	requirePrograms(t, "g++")
	sb := open(t, llmsandbox.Options{Language: "cpp", Limits: llmsandbox.Limits{Memory: 1 << 30, CPUs: llmsandbox.Unlimited}})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			res, err := sb.Run(testContext(t), fmt.Sprintf("#include <cstdio>\nint main() { puts(\"program %d\"); }", i), nil)
			if err != nil || res.Stdout != fmt.Sprintf("program %d\n", i) {
				t.Errorf("program %d: %v, stdout %q, stderr %q", i, err, res.Stdout, clip(res.Stderr))
			}
		})
	}
	wg.Wait()
}

func TestAcceptance13FiftySandboxes(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx := testContext(t)
			sb, err := llmsandbox.Open(ctx, llmsandbox.Options{})
			if err != nil {
				t.Errorf("open %d: %v", i, err)
				return
			}
			defer sb.Close()
			res, err := sb.Run(ctx, fmt.Sprintf("import os; open('me','w').write('%d'); print(open('me').read(), sorted(os.listdir('.'))[-1:])", i), nil)
			if err != nil || res.Stdout != fmt.Sprintf("%d ['me']\n", i) {
				t.Errorf("sandbox %d: %v, status %s, stdout %q, stderr %q", i, err, res.Status, res.Stdout, clip(res.Stderr))
			}
		})
	}
	wg.Wait()
}

func TestAcceptance15NoStdin(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	start := time.Now()
	res := run(t, sb, "import sys; print(repr(sys.stdin.read()))", nil)
	wantStdout(t, res, "''\n")
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v, as if it had waited for input", d)
	}
	res = run(t, sb, "print(input() + input())", &llmsandbox.RunOptions{Stdin: strings.NewReader("a\nb\n")})
	wantStdout(t, res, "ab\n")
}

func TestAcceptance16to17Text(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	for name, c := range map[string]struct{ code, out string }{
		"16 indented": {"    for i in range(2):\n        print(i)\n\n    print('end')\n", "0\n1\nend\n"},
		"17 BOM":      {"\ufeffprint('bom')", "bom\n"},
		"17 CRLF":     {"if True:\r\n    print('crlf')\r\n", "crlf\n"},
		"17 emoji":    {"print('🎉 ünïcode')", "🎉 ünïcode\n"},
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, sb, c.code, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, c.out)
		})
	}
	t.Run("17 NUL", func(t *testing.T) {
		// Some interpreters refuse it, some read over it.
		res := run(t, sb, "print(1)\x00", nil)
		refused := res.Status == llmsandbox.StatusError && strings.Contains(res.Stderr, "null byte")
		if !refused && (res.Status != llmsandbox.StatusOK || res.Stdout != "1\n") {
			t.Errorf("status %s, stdout %q, stderr %q", res.Status, res.Stdout, res.Stderr)
		}
	})
}

func TestAcceptance18BackgroundChild(t *testing.T) {
	ctx := testContext(t)
	sb := open(t, llmsandbox.Options{})
	start := time.Now()
	res := run(t, sb, "import subprocess; subprocess.Popen(['sleep', '300']); print('main')", nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "main\n")
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v: the run waited for its background child", d)
	}
	left, err := sb.Shell(ctx, "cat /proc/[0-9]*/comm", nil)
	if err != nil || strings.Contains(left.Stdout, "sleep") {
		t.Errorf("after the run: %v, processes %q", err, left.Stdout)
	}
	start = time.Now()
	res = run(t, sb, "import subprocess; subprocess.Popen(['sleep', '300']); print('main')", &llmsandbox.RunOptions{KeepChildren: true})
	wantExit(t, res, 0)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v: the run waited for the child it keeps", d)
	}
	left, err = sb.Shell(ctx, "cat /proc/[0-9]*/comm", nil)
	if err != nil || !strings.Contains(left.Stdout, "sleep") {
		t.Errorf("after a run that keeps its children: %v, processes %q", err, left.Stdout)
	}
}
