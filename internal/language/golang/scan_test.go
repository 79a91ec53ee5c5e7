package golang

import (
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
	{"package p\nimport . \"a\"\ntype T struct{}\nvar x = T{}", "import a"},
	{"import/*x*/\"os\"", "import os"},
	{"import(\"os\")", "import os"},
	{"package p;import \"os\";func f(){os/*a*/.\nExit(1)}", "import os; call os.Exit"},
	{"import \"os/exec\"\nfunc f() { run := exec.Command; run(\"ls\") }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"os/exec\"\nvar run = exec.Command\nfunc f() { run(\"ls\") }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"os/exec\"\ntype c = exec.Cmd\nvar x c", "import os/exec; use os/exec.Cmd"},
	{"package p\nimport \"os/exec\"\nfunc f() { run := exec.Command; run(\"ls\") }\nfunc g() { run := 1; _ = run }", "import os/exec; use os/exec.Command; call os/exec.Command"},
	{"import \"math/rand/v2\"\nvar x = rand.Int()", "import math/rand/v2; call math/rand/v2.Int"},
	{"import \"gopkg.in/yaml.v3\"\nvar x = yaml.Node{}", "import gopkg.in/yaml.v3; use gopkg.in/yaml.v3.Node"},
	{"import \"example.com/go-shell\"\nvar x = shell.Run()", "import example.com/go-shell; call example.com/go-shell.Run"},
	{"// #include <stdlib.h>\nimport \"C\"\nfunc f() { C.system(C.CString(\"x\")) }", "import C; call C.system; call C.CString"},
	{"package p\nimport _ \"unsafe\"\n//go:linkname run os/exec.run\nfunc run()", "import unsafe; use //go:linkname; use os/exec.run"},
	{"import \"unsafe\"\nvar p = unsafe.Pointer(nil)", "import unsafe; call unsafe.Pointer"},
	{"import \"plugin\"\nvar p, _ = plugin.Open(\"x.so\")", "import plugin; call plugin.Open"},
	{"import \"plugin\"\nfunc f(n string) { plugin.Open(n) }", "import plugin; call plugin.Open; computed import"},
	{"import \"reflect\"\nfunc f(n string) { reflect.ValueOf(1).MethodByName(n) }", "import reflect; call reflect.ValueOf; computed name"},
	{"import \"reflect\"\nconst n = \"Exec\"\nfunc f() { reflect.ValueOf(1).MethodByName(n + \"ute\") }", "import reflect; call reflect.ValueOf"},
	{"func f(v reflect.Value) { n := \"a\"; n = g(); v.MethodByName(n) }", "computed name"},
	{"package p\nimport \"os\"\nfunc f() { os := os.Getenv(\"OS\"); _ = os.x }", "import os; call os.Getenv"},
	{"package p\nimport \"os\"\nfunc f() { if os := 1; os > 0 { _ = os }; os.Exit(1) }", "import os; call os.Exit"},
	{"package p\nimport \"os\"\nfunc g() { os := 1; _ = os }\nfunc f() { os.Exit(1) }", "import os; call os.Exit"},
	{"package p\nimport \"os\"\nfunc f() { os := func() { os.Exit(1) }; _ = os }", "import os; call os.Exit"},
	{"package p\nimport \"os\"\nfunc f() { for _, os := range []int{os.Getpid()} { _ = os } }", "import os; call os.Getpid"},
	{"x := 1\nimport \"os\"\nos.Exit(x)", "import os; call os.Exit"},
	{"var f = func() { panic(1) }", "call panic"},
	{"\ufeffpackage p\r\nimport \"os\"\r\n", "import os"},
	{"package p\nimport \"os\"\nvar s = `a\r\nb`\nvar x = os.Args", "import os; use os.Args"},
	{"package p\nvar s = \"a\nimport \"os\"", "import os; problem"},
	{"package p\nvar s = `a", "problem"},
	{"package p\n/* a", "problem"},
	{"package p\x00\nimport \"os\"", "import os; problem"},
	{"import \"héé\"\nvar x = héé.Run()", "import héé; call héé.Run"},
	// What only looks like it.
	{"package p\n// import \"os\"\n/* os.Exit(1) */", ""},
	{"package p\nvar s = \"import \\\"os\\\"\"\nvar r = `\nimport \"os\"\n`", ""},
	{"import \"ossaudio\"\nimport \"example.com/os\"", "import ossaudio; import example.com/os"},
	{"package p\ntype t struct{ os x }\nfunc (v t) f() { v.os.Exit(1) }", ""},
	{"package p\nfunc f(exec runner) { exec.Command(1) }", ""},
	{"package p\nimport \"os/exec\"\nfunc f(exec runner) { exec.Command(1) }", "import os/exec"},
	{"package p\nimport \"os/exec\"\nfunc f(x T) { x.exec.Command(1) }", "import os/exec"},
	{"package p\nfunc panic(int) {}\nfunc f() { panic(1) }", "call panic"},
	{"package p\n// go:linkname a b\n//gox:linkname a b", ""},
	{"package p\nvar x = T{os: 1}\nimport \"os\"", "import os"},
}

func TestScan(t *testing.T) { lextest.Run(t, scan, scans) }

func TestScanEnds(t *testing.T) {
	lextest.Hostile(t, scan, "(", "[]", "{", "!", "`", "\"", "import(", "import \"os\";", "os.", "a:=\"x\"+", "MethodByName(", "func f(os int){os.Exit(", "package p;import . \"a\"\n", "/*", "//go:linkname a b\n")
}

func FuzzScan(f *testing.F) { lextest.Fuzz(f, scan, scans) }

func BenchmarkScan(b *testing.B) {
	lextest.Benchmark(b, scan, "import \"os/exec\"\nfunc f(x int) error { c := exec.Command(\"ls\", fmt.Sprint(x)); return c.Run() } // text\n\n\tif x := os.Args; len(x) > 3 { return nil }")
}

func TestLibraryName(t *testing.T) {
	for in, want := range map[string]string{"golang.org/x/text@v0.1.0": "golang.org/x/text", "golang.org/x/text": "golang.org/x/text"} {
		if got := libraryName(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
