//go:build unix

package cpp

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestLeading(t *testing.T) {
	for code, want := range map[string]string{
		"":                    "",
		"#include <iostream>": "iostream",
		"#include <iostream>\r\n#include<vector>": "iostream vector",
		"\n// a\n/* b */\n/*\n#include <map>\n c */\n # include <set>\n#\tinclude\t<map> // d\nint main() {}\n#include <vector>": "set map",
		"# include <set>\n#include <map> // d\nint x;\n#include <vector>":                                                        "set map",
		"#define NDEBUG\n#include <iostream>":                                                                                    "",
		"#pragma GCC optimize(\"O3\")\n#include <iostream>":                                                                      "",
		"#include <vector>\n#ifdef X\n#include <iostream>\n#endif":                                                               "vector",
		"#include <vector>\n#include \"own.h\"\n#include <iostream>":                                                             "vector",
		"#include <vector>\n#include <unistd.h>\n#include <iostream>":                                                            "vector",
		"// a \\\n#include <iostream>":                                                                                           "",
		"// a ??/\n#include <iostream>":                                                                                          "",
		"// a \\ \n#include <iostream>":                                                                                          "",
		"/* a */ #define X\n#include <iostream>":                                                                                 "",
		"/* a */ /* b\n#include <iostream>\n*/":                                                                                  "",
		"/*/\n#include <iostream>\n*/":                                                                                           "",
		"#include <vector> /* a\n*/\n#include <iostream>":                                                                        "",
		"%:include <vector>":                                                                                                     "",
		"#include <vector>\nimport <iostream>;":                                                                                  "vector",
		"#if 0\n#include <iostream>\n#endif\n":                                                                                   "",
		"R\"(\n#include <iostream>\n)\"":                                                                                         "",
		"#include <vector> x\n#include <iostream>":                                                                               "",
		"#include <../bits/stdc++.h>":                                                                                            "",
		"//\n//\n#include <bits/stdc++.h>\nusing namespace std;\n#include <queue>":                                               "bits/stdc++.h",
	} {
		if got := strings.Join(leading([]byte(code)), " "); got != want {
			t.Errorf("leading(%q) = %q, want %q", code, got, want)
		}
	}
}

func FuzzLeading(f *testing.F) {
	f.Add([]byte("/* a */\n#include <iostream> // b\n#include <vector>\nint x;"))
	f.Fuzz(func(t *testing.T, code []byte) {
		names := leading(code)
		for _, name := range names {
			if !slices.Contains(standardHeaders, name) {
				t.Errorf("%q is no standard header", name)
			}
		}
		// What lies behind other code does not count.
		if behind := leading(append(bytes.Clone(code), "\nint x;\n#include <iostream>"...)); len(behind) > len(names)+1 {
			t.Errorf("leading = %q, and %q with more code", names, behind)
		}
	})
}

// A compiler compiles and runs a program, with precompiled headers or without, and returns all that is said.
type compiler func(t *testing.T, workdir, code string, prepared bool, env ...string) string

// prepare fills a directory with precompiled headers as a sandbox's is.
func prepare(t *testing.T) (dir string, compile compiler) {
	t.Helper()
	kerneltest.Need(t, &Language, "g++")
	dir = t.TempDir()
	fill := slices.Clone(Language.Caches[0].Fill[0].Argv)
	for i := range fill {
		if fill[i] == headersDir {
			fill[i] = dir
		}
	}
	if out, err := exec.Command(fill[0], fill[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("fill: %v\n%s", err, out)
	}
	return dir, func(t *testing.T, workdir, code string, prepared bool, env ...string) string {
		t.Helper()
		src := language.Source{Code: []byte(code), RunID: "t", Workdir: workdir, TempDir: t.TempDir(), Program: func(names ...string) string { return names[0] }}
		plan, err := Language.Plan(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range plan.Files {
			if err := os.WriteFile(f.Path, f.Data, os.FileMode(f.Mode)); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		for _, step := range plan.Steps {
			argv := slices.Clone(step.Argv)
			if i := slices.Index(argv, "-wrapper"); i >= 0 {
				argv[i+1] = strings.Replace(argv[i+1], filepath.Join(src.TempDir, headersBelow), dir, 1)
				if !prepared {
					argv = slices.Delete(argv, i, i+2)
				}
			}
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), "LC_ALL=C"), env...), workdir, &out, &out
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			out.WriteString(cmd.ProcessState.String() + "\n")
			if err != nil {
				break
			}
		}
		for _, p := range plan.Cleanup {
			if err := os.RemoveAll(p); err != nil {
				t.Error(err)
			}
		}
		return out.String()
	}
}

// TestPrecompiled compiles programs with and without precompiled headers. They say the same, also where they fail.
func TestPrecompiled(t *testing.T) {
	dir, compile := prepare(t)
	varies := regexp.MustCompile(`/cc\w{6}\.o|0x[0-9a-f]+`)
	for _, code := range samePrograms {
		t.Run("", func(t *testing.T) {
			work := t.TempDir()
			want := varies.ReplaceAllString(compile(t, work, code, false), "*")
			if got := varies.ReplaceAllString(compile(t, work, code, true), "*"); got != want {
				t.Errorf("%s\nwith precompiled headers:\n%s\nwithout:\n%s", code, got, want)
			}
		})
	}
	t.Run("when they are used", func(t *testing.T) { whenUsed(t, dir, compile) })
}

const all3 = "#include <iostream>\n#include <vector>\n#include <algorithm>\n"

// samePrograms are programs of which some lack an include, some get warnings, and some fail.
var samePrograms = []string{
	all3 + "int main() { std::vector<int> v{3, 1, 2}; std::sort(v.begin(), v.end()); for (int n : v) std::cout << n; }",
	"#include <algorithm>\n#include <vector>\n#include <string>\n#include <iostream>\n#include <map>\nint main() { std::map<std::string, int> m{{\"a\", 1}}; std::cout << m.at(\"a\"); m.at(\"b\"); }",
	"#include <bits/stdc++.h>\nusing namespace std;\nint main() { set<int> s{2, 1}; regex r(\"a+\"); cout << *s.begin() << regex_match(\"aa\", r) << abs(-1.5); }",
	"#include <iostream>\nint main() { std::map<int, int> m; }",                                                       // no <map>
	"#include <iostream>\nint main() { std::vector<int> v; }",                                                         // no <vector>
	"#include <iostream>\n#include <vector>\nint main() { std::vector<int> v{2, 1}; std::sort(v.begin(), v.end()); }", // no <algorithm>
	"#include <iostream>\nint main() { std::cout << std::sqrt(2.0) << sqrt(2.0) << M_PI; }",                           // no <cmath>
	"#include <iostream>\nint main() { std::cout << abs(-1.5) << ' ' << std::abs(-1.5); }",                            // overloads that depend on the headers
	"#include <iostream>\nint main() { std::string s = 1; int x = \"a\"; std::cout << s + x; }",
	"#include <iostream>\nint main() { std::cout << undeclared << also; }",
	"#include <iostream>\nstruct A {};\nint main() { std::cout << A(); }", // a long list of candidates
	all3 + "struct A {};\nint main() { std::vector<A> v(3); std::sort(v.begin(), v.end()); }",
	"#include <iostream>\nint main() { return f(); }\nint f();",
	"#include <iostream>\nint f();\nint main() { return f(); }",      // the linker's message
	"#include <iostream>\nint main() {}\nint main() {}",              // again
	"#include <iostream>\nint main() { int x; std::cout << 1 / 0; }", // warnings
	"#include <iostream>\n#warning careful\nint main() {}",
	"#include <iostream>\n#pragma message \"a note\"\nint main() {}",
	"#include <iostream>\n#error no\nint main() {}",
	"#include <iostream> extra\nint main() {}",
	"#include <iostream>\n#include <nothing.h>\nint main() {}",
	"#include <iostream>\n#include <string.h>\nchar *f() { return gets(0); }\nint main() { char a[1]; strcpy(a, \"too long\"); std::cout << tmpnam(a); }",
	"#pragma GCC optimize(\"O3\")\n" + all3 + "int main() { std::cout << 1; }",
	all3 + "#pragma GCC optimize(\"O3\")\n#pragma GCC target(\"sse4.2\")\nint main() { std::cout << 1; }",
	"#define NDEBUG\n#include <iostream>\n#include <cassert>\nint main() { assert(false); std::cout << 1; }",
	"#include <iostream>\n#define NDEBUG\n#include <cassert>\nint main() { assert(false); std::cout << 1; }",
	"#include <iostream>\n#include <cassert>\nint main() { assert(1 == 2); }",
	"#define _GLIBCXX_DEBUG\n#include <iostream>\n#include <vector>\nint main() { std::vector<int> v(1); return v[2]; }",
	"#define _GLIBCXX_ASSERTIONS\n#include <iostream>\n#include <vector>\nint main() { std::vector<int> v(1); return v[2]; }",
	"#include <iostream>\n#ifdef _GLIBCXX_VECTOR\n#error vector\n#endif\n#ifdef _GLIBCXX_ALGORITHM\n#error algorithm\n#endif\nint main() { std::cout << __LINE__ << __COUNTER__ << __INCLUDE_LEVEL__ << __FILE__[0]; }",
	"#include <iostream>\n#include <stdexcept>\nint main() { try { throw std::runtime_error(\"x\"); } catch (std::exception &e) { std::cout << e.what(); } throw 1; }",
	"#include <iostream>\nstruct S { S() { std::cout << 'a'; } ~S() { std::cout << 'b'; } } s;\n__attribute__((constructor)) void f() {}\nint main() { std::cout << 'm'; }",
	"#include <iostream>\n#include <thread>\nthread_local int n = 1;\nint main() { std::thread t([] { n++; std::cout << n; }); t.join(); std::cout << n; }",
	"#include <iostream>\nextern \"C\" int weak() __attribute__((weak));\nint main() { std::cout << (weak ? 1 : 0); }",
	"#include <iostream>\ntemplate <int N> struct F { static constexpr long v = F<N - 1>::v + N; };\ntemplate <> struct F<0> { static constexpr long v = 0; };\nint main() { std::cout << F<500>::v << F<2000>::v; }",
	"#include <iostream>\nint main() { std::cout << \"unterminated }",
	"#include <iostream>\nint cout = 1, vector = 2, sort = 3;\nusing namespace std;\nint main() { return ::cout + ::vector + ::sort; }",
	"#include <iostream>\n#include <vector>\nusing namespace std;\nint sort = 1, count = 2;\nint main() { return sort + count; }",
}

// whenUsed gives a precompiled header a name of its own, which tells the compilations that had it.
func whenUsed(t *testing.T, dir string, compile compiler) {
	i := slices.Index(cpp.precompiled, "iostream")
	header := filepath.Join(dir, string(rune('0'+i))+".h")
	const code = "#include <iostream>\nint main() { return marker; }"
	mark := func(name string) {
		t.Helper()
		if err := os.WriteFile(header, []byte("#include <iostream>\nconstexpr int "+name+" = 0;\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mark("marker")
	argv := append(slices.Clone(cpp.flags(cpp.standard)), "-x", "c++-header", header, "-o", header+".gch")
	if out, err := exec.Command("g++", argv...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mark("other") // what a compiler reads that does not take the precompiled one
	work := t.TempDir()
	if got := compile(t, work, code, true); got != "exit status 0\nexit status 0\n" {
		t.Fatalf("the precompiled header was not used: %s", got)
	}
	without := func(name, code string, env ...string) {
		t.Helper()
		if got := compile(t, work, code, true, env...); !strings.Contains(got, "marker' was not declared") {
			t.Errorf("%s: the precompiled header was used: %s", name, got)
		}
	}
	without("another standard header before it", "#include <unistd.h>\n"+code)
	without("a directory of headers", code, "CPATH="+t.TempDir())
	for _, name := range []string{"vector", "iostream", "bits", "stdlib.h"} {
		shadow := filepath.Join(work, name)
		if err := os.WriteFile(shadow, []byte("#include_next <"+name+">\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "vector" { // which <iostream> does not include
			if got := compile(t, work, code, true); got != "exit status 0\nexit status 0\n" {
				t.Errorf("a file that is not included: %s", got)
			}
		} else {
			without("a file "+name, code)
		}
		if err := os.Remove(shadow); err != nil {
			t.Fatal(err)
		}
	}
}
