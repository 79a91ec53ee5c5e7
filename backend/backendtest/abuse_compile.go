package backendtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse26CompileBombs compiles what is made to exhaust a compiler. The C++ ones are
// in the catalogue.
func (s *suite) abuse26CompileBombs(t *testing.T) {
	deepTypes := "package main\n\ntype t0 struct{ a, b int }\n"
	for i := 1; i < 60; i++ {
		deepTypes += fmt.Sprintf("type t%d struct{ a, b t%d }\n", i, i-1)
	}
	deepTypes += "func main() { var v, w t59; println(\"compiled\", v == w) }\n"
	longString := "class A {\n static final String s0 = \"0123456789abcdef\";\n"
	for i := 1; i < 40; i++ {
		longString += fmt.Sprintf(" static final String s%d = s%d + s%d;\n", i, i-1, i-1)
	}
	longString += " public static void main(String[] a) { System.out.println(\"compiled\" + s39.length()); }\n}\n"
	bombs := map[string]struct {
		language, program, code string
		// ends are what may become of it, by status, and what the compiler says then: a regular expression.
		ends map[llmsandbox.Status]string
	}{
		"26 go generics": {"go", "go", "package main\n\ntype T[P any] struct{ f *T[T[P]] }\n\nfunc f[P any](n int) { if n > 0 { f[T[P]](n - 1) } }\n\nfunc main() { f[int](9); println(\"compiled\") }\n",
			map[llmsandbox.Status]string{llmsandbox.StatusError: `instantiation cycle`}},
		// The compiler would need 2^60 steps, or as much memory.
		"26 go types": {"go", "go", deepTypes, map[llmsandbox.Status]string{llmsandbox.StatusTimeout: ``, llmsandbox.StatusOutOfMemory: ``}},
		"26 go embed": {"go", "go", "package main\n\nimport _ \"embed\"\n\n//go:embed /etc/passwd\nvar s string\n\nfunc main() { println(\"compiled\", s) }\n",
			map[llmsandbox.Status]string{llmsandbox.StatusError: `pattern /etc/passwd: invalid pattern syntax`}},
		"26 go cgo": {"go", "go", "package main\n\n// #include \"/etc/shadow\"\nimport \"C\"\n\nfunc main() { println(\"compiled\") }\n",
			map[llmsandbox.Status]string{llmsandbox.StatusError: `no Go source files`}},
		"26 java nesting": {"java", "javac", "class A { public static void main(String[] a) { int x = " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "; System.out.println(\"compiled\"); } }",
			map[llmsandbox.Status]string{llmsandbox.StatusError: `StackOverflowError`}},
		"26 java constants": {"java", "javac", longString,
			map[llmsandbox.Status]string{llmsandbox.StatusError: `OutOfMemoryError`, llmsandbox.StatusOutOfMemory: ``}},
	}
	names := slices.Sorted(maps.Keys(bombs))
	options := make([]llmsandbox.Options, len(names))
	for i, name := range names {
		options[i] = llmsandbox.Options{Language: bombs[name].language, Limits: llmsandbox.Limits{Memory: 512 << 20, PIDs: 128}}
	}
	sandboxes := s.openings(t, options)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			c := bombs[name]
			sb := sandboxes.use(t, i, c.program)
			timeout := time.Minute // the compiler ends by itself
			if _, bounded := c.ends[llmsandbox.StatusTimeout]; bounded {
				timeout = 10 * time.Second
			}
			start := time.Now()
			res := run(t, sb, c.code, &llmsandbox.RunOptions{Timeout: timeout})
			if d := time.Since(start); d > timeout+hang {
				t.Errorf("took %v, want at most %v", d, timeout+hang)
			}
			says, ok := c.ends[res.Status]
			if !ok || !regexp.MustCompile(says).MatchString(res.Stderr) || strings.Contains(res.Stdout+res.Stderr, "root:") || strings.Contains(res.Stdout, "compiled") {
				t.Errorf("status %s, want one of %q\nstdout: %s\nstderr: %s", res.Status, c.ends, clip(res.Stdout), clip(res.Stderr))
			}
			answers(t, sb)
		})
	}
}
