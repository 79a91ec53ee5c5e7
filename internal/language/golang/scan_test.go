package golang

import (
	"strconv"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/lex/lextest"
)

var scans = []lextest.Case{
	{"package main\nimport \"os\"\nfunc main() { os.Exit(1) }", "import os; call os.Exit"},
	{"package main\nimport `os`\nfunc main() { os.Exit(1) }", "import os; call os.Exit"},
	{"package main\nimport \"\\x6fs/ex\\u0065c\"\n", "import os/exec"},
	{"import (\n\"fmt\"; x \"os/exec\" // words\n)\nfunc f() { x.Command(\"ls\").Run() }", "import fmt; import os/exec; call os/exec.Command"},
	{"import _ \"net\"\n", "import net"},
	{"import . \"os/exec\"\nfunc f() { Command(\"ls\") }", "import os/exec; call os/exec.Command"},
	{"import . \"os/exec\"\nfunc f() { c := Command; c(\"ls\") }", "import os/exec; use os/exec.Command"},
	{"import . \"a\"\nimport . \"b\"\nvar x = T{Key: 1}", "import a; import b; use a.T; use b.T"},
	{"package p\nimport . \"a\"\ntype T struct{}\nvar x = T{}", "import a; use a.T; use a.T"},
	{"import/*x*/\"os\"", "import os"},
	{"import(\"os\")", "import os"},
	{"package p;import \"os\";func f(){os/*a*/.\nExit(1)}", "import os; call os.Exit"},
	{"import \"os/exec\"\nfunc f() { run := exec.Command; run(\"ls\") }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"os/exec\"\nvar run = exec.Command\nfunc f() { run(\"ls\") }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"os/exec\"\ntype c = exec.Cmd\nvar x c", "import os/exec; use os/exec.Cmd"},
	{"package p\nimport \"os/exec\"\nfunc f() { run := exec.Command; run(\"ls\") }\nfunc g() { run := 1; _ = run }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"os/exec\"\nvar run func(string, ...string) *exec.Cmd = exec.Command", "import os/exec; use os/exec.Cmd; use os/exec.Command"},
	{"import \"os/exec\"\nvar run runner = exec.Command\nfunc f() { run(\"ls\") }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"os\"\nfunc f() { a, b := os.Args, os.Remove; a(1); b(2) }", "import os; use os.Args; use os.Remove"},
	{"import \"os\"\nvar x = map[any]any{os.Stdin: os.Remove}", "import os; use os.Stdin; use os.Remove"},
	{"import \"example.com/go-os\"\nimport \"os\"\nfunc f() { os.Exit(1) }", "import example.com/go-os; import os; call example.com/go-os.Exit; call os.Exit"},
	{"import \"os\"\nimport \"os\"\nos.Exit(1)", "import os; import os; call os.Exit"},
	{"import \"math/rand/v2\"\nvar x = rand.Int()", "import math/rand/v2; call math/rand/v2.Int"},
	{"import \"gopkg.in/yaml.v3\"\nvar x = yaml.Node{}", "import gopkg.in/yaml.v3; use gopkg.in/yaml.v3.Node"},
	{"import \"example.com/go-shell\"\nvar x = shell.Run()", "import example.com/go-shell; call example.com/go-shell.Run"},
	{"// #include <stdlib.h>\nimport \"C\"\nfunc f() { C.system(C.CString(\"x\")) }", "import C; call C.system; call C.CString"},
	{"package p\nimport _ \"unsafe\"\n//go:linkname run os/exec.run\nfunc run()", "import unsafe; use //go:linkname; use os/exec.run"},
	{"import \"unsafe\"\nvar p = unsafe.Pointer(nil)", "import unsafe; call unsafe.Pointer"},
	{"import \"plugin\"\nvar p, _ = plugin.Open(\"x.so\")", "import plugin; call plugin.Open"},
	{"import \"plugin\"\nfunc f(n string) { plugin.Open(n) }", "import plugin; call plugin.Open; computed import"},
	{"import \"reflect\"\nfunc f(n string) { reflect.ValueOf(1).MethodByName(n) }", "import reflect; call reflect.ValueOf; computed name"},
	{"import \"reflect\"\nconst n = \"Exec\"\nfunc f() { reflect.ValueOf(1).MethodByName(n + \"ute\") }", "import reflect; call reflect.ValueOf; computed name"},
	{"func f(v reflect.Value) { v.MethodByName(`Execute`); v.Type().FieldByName(\"A\") }", ""},
	{"func f(v reflect.Value) { m := v.MethodByName; m(\"Exec\") }", "computed name"},
	{"import \"plugin\"\nfunc f(n string) { open := plugin.Open; open(n) }", "import plugin; use plugin.Open; computed import; call plugin.Open; computed import"},
	{"import . \"plugin\"\nfunc f(n string) { Open(n) }", "import plugin; call plugin.Open; computed import"},
	{"import \"plugin\"\nconst n = \"x.so\"\nvar p, _ = plugin.Open(n)", "import plugin; call plugin.Open; computed import"},
	{"import \"plugin\"\nvar p, _ = plugin.Open(\"x\" + \".so\")", "import plugin; call plugin.Open; computed import"},
	{"func f(v reflect.Value) { n := \"a\"; n = g(); v.MethodByName(n) }", "computed name"},
	{"package p\nimport \"os\"\nfunc f() { os := os.Getenv(\"OS\"); _ = os.x }", "import os; call os.Getenv; use os.x"},
	{"package p\nimport \"os\"\nfunc f() { if os := 1; os > 0 { _ = os }; os.Exit(1) }", "import os; call os.Exit"},
	{"package p\nimport \"os\"\nfunc g() { os := 1; _ = os }\nfunc f() { os.Exit(1) }", "import os; call os.Exit"},
	{"package p\nimport \"os\"\nfunc f() { os := func() { os.Exit(1) }; _ = os }", "import os; call os.Exit"},
	{"package p\nimport \"os\"\nfunc f() { for _, os := range []int{os.Getpid()} { _ = os } }", "import os; call os.Getpid"},
	{"package p\nimport \"os/exec\"\nfunc f(exec runner) { exec.Command(1) }", "import os/exec; call os/exec.Command"},
	{"x := 1\nimport \"os\"\nos.Exit(x)", "import os; call os.Exit"},
	{"var f = func() { panic(1) }", "call panic"},
	{"\ufeffpackage p\r\nimport \"os\"\r\n", "import os"},
	{"package p\nimport \"os\"\nvar s = `a\r\nb`\nvar x = os.Args", "import os; use os.Args"},
	{"package p\nvar s = \"a\nimport \"os\"", "import os; problem"},
	{"package p\nvar s = `a", "problem"},
	{"package p\n/* a", "problem"},
	{"package p\nimport \"os\"\nfunc f() { os.Exit(1", "import os; call os.Exit"},
	{"package p\nimport \"os\"\n)}]\nos.Exit(1)", "import os; call os.Exit"},
	{"//go:linkname a b\r\n//go:\r\u00e9", "use //go:linkname; use b; use //go:"},
	{"package p\x00\nimport \"os\"", "import os; problem"},
	{"import \"héé\"\nvar x = héé.Run()", "import héé; call héé.Run"},
	// What only looks like it.
	{"package p\n// import \"os\"\n/* os.Exit(1) */", ""},
	{"package p\nvar s = \"import \\\"os\\\"\"\nvar r = `\nimport \"os\"\n`", ""},
	{"import \"ossaudio\"\nimport \"example.com/os\"", "import ossaudio; import example.com/os"},
	{"package p\ntype t struct{ os x }\nfunc (v t) f() { v.os.Exit(1) }", ""},
	{"package p\nfunc f(exec runner) { exec.Command(1) }", ""},
	{"package p\nimport \"os/exec\"\nfunc f(x T) { x.exec.Command(1) }", "import os/exec"},
	{"package p\nfunc panic(int) {}\nfunc f() { panic(1) }", "call panic"},
	{"package p\n// go:linkname a b\n//gox:linkname a b", ""},
	{"package p\nvar x = T{os: 1}\nimport \"os\"", "import os"},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanEnds(t *testing.T) {
	lextest.Hostile(t, scan, "(", "[]", "{", "!", "`", "\"", "import(", "import \"os\";", "os.", "a:=\"x\"+", "MethodByName(", "func f(os int){os.Exit(",
		"package p;import . \"a\"\n", "/*", "//go:linkname a b\n", "a/**/", "*", "chan ", "func(){", "else if a{}", "|a", "//line a:1\n", "import x\"a\";x.A;", "x:=a.b;")
}

// What go/parser cannot take: the walk of the tree of this type overflows the stack.
func TestScanOfADeepType(t *testing.T) {
	code := "package p; import \"os\"; type T interface{ a" + strings.Repeat("|a", 2_000_000) + "}"
	if got, want := lextest.Show(lextest.Scan(t, scan, []byte(code))), "import os"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Facts do not grow beyond the code, whatever is imported under a name and however often the
// name is used.
func TestScanIsBounded(t *testing.T) {
	many := ""
	for i := range maxPackages + 1 {
		many += "import . \"p" + strconv.Itoa(i) + "\"\n"
	}
	long := strings.Repeat("a", 100_000)
	for code, uses := range map[string]int{
		many + "var x = A": maxPackages,
		"import x \"" + long + "\"\n" + strings.Repeat("x.A;", 1000):    0,
		"import x \"a\"; f := x." + long + strings.Repeat(";f()", 1000): 0,
	} {
		f := lextest.Scan(t, scan, []byte(code))
		if len(f.Uses) != uses || f.Problem == "" {
			t.Errorf("%.30s: got %d uses and problem %q, want %d and some", code, len(f.Uses), f.Problem, uses)
		}
	}
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, "import \"os/exec\"\nfunc f(x int) error { c := exec.Command(\"ls\", fmt.Sprint(x)); return c.Run() } // text\n\n\tif x := os.Args; len(x) > 3 { return nil }")
}
