//go:build unix

package java

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	kerneltest.Suite(t, &Language, kerneltest.Cells{
		State:     []string{"import java.time.Duration;\nint x = 21, y = 2;\nint f(int a) { return a * y; }\nrecord Box(int v) {}", "System.out.println(\"Result: \" + f(x)); new Box(f(x)).v()"},
		Out:       "Result: 42\n",
		Value:     "42",
		Fails:     "int a = 1;\n\nthrow new IllegalStateException(\"no \" + a);",
		Failure:   [3]string{"java.lang.IllegalStateException", "no 1", "cell[1]:3"},
		Syntax:    "int b = 1;\nint c = \"text\";",
		SyntaxAt:  "cell[1]:2",
		Sleep:     "System.out.println(\"go\"); Thread.sleep(1000000);",
		Loop:      "System.out.println(\"go\"); while (true) {}",
		Stderr:    "System.err.println(\"careful\");",
		Child:     "new ProcessBuilder(\"sh\", \"-c\", \"echo child; echo fault >&2; ls /proc/self/fd\").inheritIO().start().waitFor();",
		Input:     "var name = new Scanner(System.in).nextLine();\n\"hello \" + name",
		InputIs:   "\"hello Ann\"",
		Exit:      "System.out.println(\"bye\"); System.exit(3);",
		ExitOnly:  true,
		Crash:     "Runtime.getRuntime().halt(9);",
		Define:    "String longName = \"text\";",
		Complete:  "longN",
		Completes: "longName",
		Member:    "longName.toUpp",
		MemberIs:  "toUpperCase(",
		Inspect:   "longName",
		Inspects:  "String",
		Variable:  [2]string{"longName", "String"},
	})
}

func TestKernelCells(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language)
	if stderr := k.Show([][3]string{
		{"List.of(1, 2).stream().map(i -> i * 2).collect(Collectors.toList())", "[2, 4]", ""},
		{"1 +\n  2", "3", ""},
		{"\"caf\\u00e9 😀 \\\"q\\\"\"", "\"café 😀 \\\"q\\\"\"", ""},
		{"class A {\n  int f() { return g(); }\n}\nint g() { return 7; }\nnew A().f()", "7", ""},
		{"int z = 4;", "", ""},
		{"z = 5", "", ""},
		{"for (int i = 0; i < 2; i++) {\n  System.out.print(i);\n}", "", "01"},
		{"// only words", "", ""},
		{"System.out.print(\"y\".repeat(300000))", "", strings.Repeat("y", 300000)},
	}); stderr != "" {
		t.Errorf("they wrote %.300q to stderr, want empty", stderr)
	}
	if e := k.Run("\nint deep(int n) {\n  return n == 0 ? 1 / n : deep(n - 1);\n}\n\ndeep(1)"); e.Failure == nil ||
		strings.Count(e.Failure.Traceback, "cell[10]:3") != 2 || !strings.Contains(e.Failure.Traceback, "top level (cell[10]:6") {
		t.Errorf("%+v, want Failure not nil, strings.Count(e.Failure.Traceback, \"cell[10]:3\") = 2, Traceback containing \"top level (cell[10]:6\"", e.Failure)
	}
	if e := k.Run("int open = (1 +"); e.Status != "error" || e.Failure == nil {
		t.Errorf("%+v %+v, want Status = \"error\", Failure not nil", e, e.Failure)
	}
	t.Logf("round trip %v", kerneltest.RoundTrip(k, "1+1", 100))
}

// makeJar compiles a class into the only jar of a new library directory.
func makeJar(t *testing.T, class, code string) string {
	t.Helper()
	base := t.TempDir()
	source := filepath.Join(base, class+".java")
	if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("javac", "-d", base, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lib := filepath.Join(base, "lib")
	if err := os.MkdirAll(filepath.Join(lib, "jars"), 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(base, "org/made", class+".class"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(lib, "jars", class+".jar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	archive := zip.NewWriter(f)
	w, err := archive.Create("org/made/" + class + ".class")
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func TestKernelLibraries(t *testing.T) {
	kerneltest.Need(t, &Language)
	libs := []string{
		makeJar(t, "One", "package org.made; public class One { public static int one() { return 1; } }"),
		makeJar(t, "Two", "package org.made; public class Two { public static int two() { return 2; } }"),
	}
	k := kerneltest.StartWith(t, &Language, libs)
	for range 2 {
		if got := k.MustRun("import org.made.*;\nOne.one() + Two.two()"); got.Value["text/plain"] != "3" {
			t.Errorf("%+v, want got.Value[\"text/plain\"] = \"3\"", got)
		}
		k.Ask("reset", "", 0)
	}
}
