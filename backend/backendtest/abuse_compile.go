package backendtest

import (
	"maps"
	"slices"
	"strconv"
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
		deepTypes += strings.ReplaceAll(strings.ReplaceAll("type tN struct{ a, b tM }\n", "N", strconv.Itoa(i)), "M", strconv.Itoa(i-1))
	}
	deepTypes += "func main() { var v, w t59; println(\"compiled\", v == w) }\n"
	bombs := map[string]struct{ language, program, code string }{
		"26 go generics":  {"go", "go", "package main\n\ntype T[P any] struct{ f *T[T[P]] }\n\nfunc f[P any](n int) { if n > 0 { f[T[P]](n - 1) } }\n\nfunc main() { f[int](9); println(\"compiled\") }\n"},
		"26 go types":     {"go", "go", deepTypes},
		"26 go embed":     {"go", "go", "package main\n\nimport _ \"embed\"\n\n//go:embed /etc/passwd\nvar s string\n\nfunc main() { println(\"compiled\", s) }\n"},
		"26 go cgo":       {"go", "go", "package main\n\n// #include \"/etc/shadow\"\nimport \"C\"\n\nfunc main() { println(\"compiled\") }\n"},
		"26 java nesting": {"java", "javac", "class A { public static void main(String[] a) { int x = " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "; System.out.println(\"compiled\"); } }"},
		"26 java inference": {"java", "javac", "import java.util.function.*;\nclass A {\n static <T> T m(Supplier<T> s) { return s.get(); }\n static <T> T m(Function<T, T> s) { return null; }\n" +
			" public static void main(String[] a) { Object o = " + strings.Repeat("m(() -> ", 40) + "1" + strings.Repeat(")", 40) + "; System.out.println(\"done\"); } }"},
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
			start := time.Now()
			res := run(t, sb, c.code, &llmsandbox.RunOptions{Timeout: 10 * time.Second})
			if d := time.Since(start); d > 15*time.Second {
				t.Errorf("took %v", d)
			}
			if strings.Contains(res.Stdout+res.Stderr, "root:") || strings.Contains(res.Stdout, "compiled") {
				t.Errorf("status %s\nstdout: %s\nstderr: %s", res.Status, clip(res.Stdout), clip(res.Stderr))
			}
			answers(t, sb)
		})
	}
}
