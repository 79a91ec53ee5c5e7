package all

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

type outcome struct {
	stdout, stderr string
	code           int
}

// execute runs a plan outside of any sandbox, as a sandbox would.
func execute(t *testing.T, lang, stdin string, src language.Source) outcome {
	t.Helper()
	l, err := Get(lang)
	if err != nil {
		t.Fatal(err)
	}
	choose := func(names ...string) string {
		for _, n := range names {
			if _, err := exec.LookPath(n); err == nil {
				return n
			}
		}
		return names[0]
	}
	for _, alternatives := range l.Programs {
		if _, err := exec.LookPath(choose(alternatives...)); err != nil {
			missing(t, l.Install)
		}
	}
	src.RunID, src.Program = "t1", choose
	if src.Workdir == "" {
		src.Workdir = t.TempDir()
	}
	src.TempDir = t.TempDir()
	plan, err := l.Plan(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o755), os.WriteFile(f.Path, f.Data, os.FileMode(f.Mode))); err != nil {
			t.Fatal(err)
		}
	}
	var out outcome
	for _, step := range plan.Steps {
		var so, se bytes.Buffer
		cmd := exec.Command(step.Argv[0], step.Argv[1:]...)
		cmd.Env = append(append(os.Environ(), step.Env...), goCache()) // or Go would compile its library for each test
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = src.Workdir, strings.NewReader(stdin), &so, &se
		if step.Dir != "" {
			cmd.Dir = step.Dir
		}
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		out = outcome{so.String(), se.String(), cmd.ProcessState.ExitCode()}
		if step.Compile {
			out.stderr, out.stdout = out.stdout+out.stderr, ""
		}
		if out.code != 0 {
			break
		}
	}
	for _, p := range plan.Cleanup {
		if err := os.RemoveAll(p); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range []string{src.Workdir, src.TempDir} {
		if left, _ := filepath.Glob(filepath.Join(dir, ".run-*")); len(left) > 0 {
			t.Errorf("left behind: %v, want none", left)
		}
	}
	return out
}

// goCache is the environment variable for the caller's own build cache.
var goCache = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "GOCACHE="
	}
	return "GOCACHE=" + strings.TrimSpace(string(out))
})

func missing(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Each program greets its first argument and a line of standard input and exits with 7.
var greeters = map[string]string{
	"python":     "import sys\nprint('hi', sys.argv[1], input())\nsys.exit(7)",
	"javascript": "import fs from 'fs'\nconsole.log('hi', process.argv[2], fs.readFileSync(0, 'utf8').trim()); process.exit(7)",
	"typescript": "import fs from 'fs'\nenum E { Code = 7 }\nconst s: string = (fs.readFileSync(0, 'utf8') as string).trim()\nconsole.log('hi', process.argv[2]!, s); process.exit(E.Code)",
	"ts":         "const fs = require('fs')\nclass A { constructor(private s: string) {} hi(): void { console.log('hi', process.argv[2], this.s) } }\nnew A(fs.readFileSync(0, 'utf8').trim()).hi(); process.exit(7)",
	"js":         "const fs = require('fs')\nconsole.log('hi', process.argv[2], fs.readFileSync(0, 'utf8').trim()); process.exit(7)",
	"java": "package a.b;\nrecord P(int x) {}\npublic class Greeter { public static void main(String[] a) throws Exception {\n" +
		"System.out.println(\"hi \" + a[0] + \" \" + new java.util.Scanner(System.in).nextLine()); System.exit(7); } }",
	"cpp":  "#include <iostream>\n#include <string>\nint main(int, char**v) { std::string s; std::getline(std::cin, s); std::cout << \"hi \" << v[1] << ' ' << s << '\\n'; return 7; }",
	"c":    "#include <stdio.h>\nint main(int n, char **v) { char s[9]; scanf(\"%8s\", s); printf(\"hi %s %s\\n\", v[1], s); return 7; }",
	"go":   "//go:build ignore\n\npackage main\nimport (\"fmt\"; \"os\")\nfunc main() { var s string; fmt.Scan(&s); fmt.Println(\"hi\", os.Args[1], s); os.Exit(7) }",
	"r":    "a <- commandArgs(TRUE)\ncat('hi', a[1], readLines(file('stdin'), 1)); cat('\\n'); quit(status = 7)",
	"ruby": "puts \"hi #{ARGV[0]} #{STDIN.gets.chomp}\"; exit 7",
	"bash": "read -r s\r\necho hi \"$1\" \"$s\"\r\nexit 7\r\n",
}

func TestPlansRunArgumentsStdinAndExitCode(t *testing.T) {
	for lang, code := range greeters {
		t.Run(lang, func(t *testing.T) {
			got := execute(t, lang, "there\n", language.Source{Code: []byte("\xef\xbb\xbf" + code), Args: []string{"a b*"}})
			if got.stdout != "hi a b* there\n" || got.code != 7 {
				t.Errorf("got %+v, want stdout = \"hi a b* there\\n\", code = 7", got)
			}
		})
	}
}

func TestPlansReportErrors(t *testing.T) {
	for lang, want := range map[string]string{
		"python": "SyntaxError", "javascript": "SyntaxError", "typescript": "SyntaxError", "java": "error:", "c": "error:", "cpp": "error:",
		"go": "main.go:1", "ruby": "syntax error", "bash": "syntax error", "r": "Error",
	} {
		t.Run(lang, func(t *testing.T) {
			got := execute(t, lang, "", language.Source{Code: []byte("if ( } then\n")})
			if got.code == 0 || !strings.Contains(got.stderr, want) {
				t.Errorf("got %+v, want code != 0, stderr containing %q", got, want)
			}
		})
	}
}

func TestPlansOfProjects(t *testing.T) {
	for _, c := range []struct{ lang, name, code, other, data string }{
		{"python", "app.py", "import other\nprint(other.x)", "other.py", "x = 42"},
		{"javascript", "app.js", "import {x} from './other.js'\nconsole.log(x)", "other.js", "export const x = 42"},
		{"js", "app.js", "console.log(require('./other').x)", "other.js", "exports.x = 42"},
		{"typescript", "app.ts", "import {x, T} from './other'\nimport {y} from './lib/y.ts'\nconst z: T = x + y\nconsole.log(z)", "other.ts", "import './lib/y.js'\nexport const x: number = 40\nexport type T = number"},
		{"ts", "app.ts", "const { x } = require('./other') as { x: number }\nconsole.log(x)", "other.ts", "exports.x = 42 as number"},
		{"java", "x.java", "public class A { public static void main(String[] a) { System.out.println(B.x); } }", "B.java", "class B { static int x = 42; }"},
		{"cpp", "a.cc", "#include <cstdio>\nextern int x; int main() { printf(\"%d\\n\", x); }", "lib/b.cpp", "int x = 42;"},
		{"c", "a.c", "#include <stdio.h>\nint x(void); int main() { printf(\"%d\\n\", x()); }", "lib/b.c", "#include <math.h>\n#include <string.h>\nint x(void) { return sqrt(strlen(strdup(\"\"))) + 42; }"},
		{"go", "a.go", "package main\nfunc main() { print1(42) }", "b.go", "package main\nimport \"fmt\"\nfunc print1(n int) { fmt.Println(n) }"},
		{"ruby", "a.rb", "require_relative 'b'\nputs X", "b.rb", "X = 42"},
	} {
		t.Run(c.lang, func(t *testing.T) {
			got := execute(t, c.lang, "", language.Source{Name: c.name, Code: []byte(c.code),
				Files: []language.File{{Path: c.other, Data: []byte(c.data)}, {Path: "lib/y.ts", Data: []byte("export const y: number = 2")}}})
			if got.stdout != "42\n" || got.code != 0 {
				t.Errorf("got %+v, want stdout = \"42\\n\", code = 0", got)
			}
		})
	}
}

func TestPythonSnippets(t *testing.T) {
	for name, c := range map[string]struct{ code, want string }{
		"indented":   {"    x = 1\n    if x:\n        print('😀')\n", "😀\n"},
		"crlf":       {"x = 1\r\nprint(x)\r\n", "1\n"},
		"name":       {"print(__name__)", "__main__\n"},
		"neighbours": {"import neighbour\nprint(neighbour.x)", "5\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "neighbour.py"), []byte("x = 5"), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := execute(t, "py", "", language.Source{Code: []byte(c.code), Workdir: dir}); got.stdout != c.want {
				t.Errorf("got %+v, want stdout = %v", got, c.want)
			}
		})
	}
	// Some interpreters refuse a NUL, some read over it.
	if got := execute(t, "py", "", language.Source{Code: []byte("print(1)\x00")}); got.code == 0 && got.stdout != "1\n" || got.code != 0 && got.stderr == "" {
		t.Errorf("a NUL is neither refused nor read over: %+v, want code != 0 or stdout = \"1\\n\", code = 0 or stderr not empty", got)
	}
}
