package backendtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

var hellos = map[string]struct{ program, code string }{
	"python":     {"python3", `print("hello")`},
	"javascript": {"node", `console.log("hello")`},
	"java":       {"javac", `public class Greeter { public static void main(String[] a) { System.out.println("hello"); } }`},
	"cpp":        {"g++", "#include <iostream>\nint main() { std::cout << \"hello\\n\"; }"},
	"c":          {"gcc", "#include <stdio.h>\nint main(void) { puts(\"hello\"); }"},
	"go":         {"go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }"},
	"ruby":       {"ruby", `puts "hello"`},
	"typescript": {"node", `const s: string = "hello"; console.log(s)`},
	"r":          {"Rscript", `cat("hello\n")`},
	"bash":       {"bash", `echo hello`},
}

// ofLanguages are the options of a sandbox for each language.
func ofLanguages(languages []string) []llmsandbox.Options {
	all := make([]llmsandbox.Options, len(languages))
	for i, l := range languages {
		all[i].Language = l
	}
	return all
}

func (s *suite) acceptance05HelloInEveryLanguage(t *testing.T) {
	languages := slices.Sorted(maps.Keys(hellos))
	sandboxes := s.openings(t, ofLanguages(languages))
	for i, lang := range languages {
		t.Run(lang, func(t *testing.T) {
			h := hellos[lang]
			sb := sandboxes.use(t, i, h.program)
			res := run(t, sb, h.code, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, "hello\n")
		})
	}
}

func (s *suite) acceptance06to07CompileError(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "cpp"}, "g++")
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
			if res.ExitCode == 0 || !strings.Contains(res.Stderr, "error") || res.Stdout != "" || seen.Len() > 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q: want the compiler's error and nothing run", res.ExitCode, res.Stdout, clip(res.Stderr))
			}
		})
	}
}

// failures are programs that say where they fail.
var failures = map[string]struct{ program, code, name, where string }{
	"python":     {"python3", "def f():\n    raise ValueError('x')\nf()", "broken.py", `File "/sandbox/broken.py", line 2, in f`},
	"javascript": {"node", "\nthrow new Error('x')", "broken.js", "/sandbox/broken.js:2"},
	"java":       {"javac", "public class Greeter { public static void main(String[] a) {\nint i = \"x\"; } }", "Greeter.java", "/sandbox/Greeter.java:2: error"},
	"cpp":        {"g++", "#include <cassert>\nint main() { assert(1 > 2); }", "broken.cpp", "broken: /sandbox/broken.cpp:2: int main()"},
	"c":          {"gcc", "#include <assert.h>\nint main(void) { assert(1 > 2); }", "broken.c", "broken: /sandbox/broken.c:2: main"},
	"go":         {"go", "package main\nfunc main() {\n\tpanic(1)\n}", "broken_windows.go", "/sandbox/broken_windows.go:3"},
	"typescript": {"node", "enum E { A }\nfunction f(e: E): void {\n  throw new Error('x' as string)\n}\nf(E.A)", "broken.ts", "at f (/sandbox/broken.ts:3:"},
	"ruby":       {"ruby", "\nraise 'x'", "broken.rb", "/sandbox/broken.rb:2:in"},
	"r":          {"Rscript", "message(grep('--file', commandArgs(), value = TRUE))\nstop('x')", "broken.R", "--file=/sandbox/broken.R"},
	"bash":       {"bash", "\nno-such-command", "broken.sh", "/sandbox/broken.sh: line 2:"},
}

// namesInStderr shows that what a program says of its own file names the file that the caller
// knows, the same in every run.
func (s *suite) namesInStderr(t *testing.T) {
	languages := slices.Sorted(maps.Keys(failures))
	sandboxes := s.openings(t, ofLanguages(languages))
	for i, lang := range languages {
		t.Run(lang, func(t *testing.T) {
			f := failures[lang]
			sb := sandboxes.use(t, i, f.program)
			where := strings.ReplaceAll(f.where, "/sandbox/", sb.Workdir()+"/")
			for range 2 {
				res := run(t, sb, f.code, &llmsandbox.RunOptions{Name: f.name})
				if !strings.Contains(res.Stderr, where) || strings.Contains(res.Stderr, ".run-") {
					t.Errorf("%s\nwant in stderr: %s", describe(res), where)
				}
			}
			if lang == "java" {
				return // the compiler wants the name of the class
			}
			res := run(t, sb, f.code, nil)
			if unnamed := strings.ReplaceAll(strings.ReplaceAll(where, "broken_windows", "broken"), "broken", "main"); !strings.Contains(res.Stderr, unnamed) {
				t.Errorf("%s\nwant in stderr: %s", describe(res), unnamed)
			}
		})
	}
}
