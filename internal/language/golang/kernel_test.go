//go:build unix

package golang

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	kerneltest.Suite(t, &Language, kerneltest.Cells{
		State:     []string{"import \"fmt\"\nx, y := 21, 2\nfunc f(a int) int { return a * y }\ntype box struct{ v int }\nfunc (b box) get() int { return b.v }", "fmt.Println(\"Result:\", f(x)); box{f(x)}.get()"},
		Out:       "Result: 42\n",
		Value:     "42",
		Fails:     "a := 1\n\npanic(fmt.Sprintf(\"no %d\", a))",
		Prepare:   "import (\"fmt\"; \"os\"; \"time\"; \"os/exec\"; \"syscall\")",
		Failure:   [3]string{"panic", "no 1", "cell[1]:3"},
		Syntax:    "b := 1\nvar c int = \"text\"",
		SyntaxAt:  "cell[1]:2",
		Sleep:     "fmt.Println(\"go\"); time.Sleep(time.Hour)",
		Loop:      "fmt.Println(\"go\"); for {}",
		Stderr:    "fmt.Fprintln(os.Stderr, \"careful\")",
		Child:     "cmd := exec.Command(\"sh\", \"-c\", \"echo child; echo fault >&2; ls /proc/self/fd\"); cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr; if err := cmd.Run(); err != nil { panic(err) }; cmd = nil",
		Exit:      "fmt.Println(\"bye\"); os.Exit(3)",
		Crash:     "syscall.Kill(syscall.Getppid(), syscall.SIGKILL); select {}",
		Define:    "longName := \"text\"",
		Complete:  "longN",
		Completes: "longName",
		Inspect:   "longName",
		Inspects:  "string",
		Variable:  [2]string{"longName", "string"},
	}, warm(t))
}

// warm spares the tests the compilation of the standard library.
func warm(t *testing.T) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return "GOCACHE=" + filepath.Join(cache, "go-build")
}

func TestKernelCells(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language, warm(t))
	if stderr := k.Show([][3]string{
		{"import (\n  \"errors\"\n  \"fmt\"\n  \"strings\"\n)\ntype node struct { next *node; name string; tags map[string][]any }\nfunc (n *node) String() string { return n.name }", "", ""},
		{"a := &node{name: \"a\", tags: map[string][]any{\"k\": {1, \"two\", 3.5, nil}}}\na.next = a\nvar err error = errors.New(\"kept\")\nvar count, total int", "", ""},
		{"a.next == a && a.next.next.name == \"a\"", "true", ""},
		{"a.tags[\"k\"]", "[1 two 3.5 <nil>]", ""},
		{"err", "kept", ""},
		{"for i := 0; i < 3; i++ {\n  count++\n}\nfmt.Print(strings.Repeat(\"y\", count))", "", "yyy"},
		{"count", "3", ""},
		{"// only words", "", ""},
		{"n, err := fmt.Sscan(\"7\", &total)", "", ""},
		{"total + n", "8", ""},
		{"count := \"other\"; count", "\"other\"", ""},
	}); stderr != "" {
		t.Errorf("they wrote %.300q to stderr, want empty", stderr)
	}
	if e := k.MustRun("done := make(chan int)"); !strings.Contains(e.Stderr, "done: chan int lives only in the program") {
		t.Errorf("%q, want it to contain \"done: chan int lives only in the program\"", e.Stderr)
	}
	if e := k.Run("total = 9\nvar m map[string]int\nm[\"x\"] = 1"); e.Failure == nil || !strings.Contains(e.Failure.Traceback, "cell[13]:3") {
		t.Errorf("%+v, want Failure not nil, Traceback containing \"cell[13]:3\"", e.Failure)
	}
	if e := k.MustRun("total"); e.Value["text/plain"] != "9" {
		t.Errorf("after a panic: %q, want e.Value[\"text/plain\"] = \"9\"", e.Value)
	}
	t.Logf("round trip %v", kerneltest.RoundTrip(k, "1+1", 10))
}

// installed is a library directory with a module of one package.
func installed(t *testing.T, module, code string) string {
	t.Helper()
	base := t.TempDir()
	proxy, dir := filepath.Join(base, "proxy"), filepath.Join(base, filepath.Base(module))
	mod := "module " + module + "\n\ngo 1.22\n"
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for name, text := range map[string]string{"go.mod": mod, "made.go": code} {
		w, err := archive.Create(module + "@v1.0.0/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(proxy, module, "@v")
	write(filepath.Join(at, "list"), []byte("v1.0.0\n"))
	write(filepath.Join(at, "v1.0.0.info"), []byte(`{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}`))
	write(filepath.Join(at, "v1.0.0.mod"), []byte(mod))
	write(filepath.Join(at, "v1.0.0.zip"), b.Bytes())
	plan, err := install(language.InstallSource{Libraries: []string{module}, Dir: dir, TempDir: base, Local: proxy, Program: func(a ...string) string { return a[0] }})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		write(f.Path, f.Data)
	}
	step := plan.Steps[0]
	cmd := exec.Command(step.Argv[0], step.Argv[1:]...)
	cmd.Dir, cmd.Env = step.Dir, append(os.Environ(), step.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", step.Argv, err, out)
	}
	return dir
}

func TestKernelLibraries(t *testing.T) {
	kerneltest.Need(t, &Language)
	libs := []string{
		installed(t, "example.org/pair", "package pair\n\ntype Pair[T any] struct{ A, B T }\n\nfunc Of[T any](a, b T) *Pair[T] { return &Pair[T]{a, b} }\n"),
		installed(t, "example.org/more", "package more\n\nfunc Add(a, b int) int { return a + b }\n"),
	}
	for n := range libs {
		k := kerneltest.StartWith(t, &Language, libs[:n+1], warm(t))
		k.MustRun("import \"example.org/pair\"\np := pair.Of(20, 22)")
		code, want := "p.A + p.B", "42"
		if n > 0 {
			code, want = "import \"example.org/more\"\nmore.Add(p.A, p.B) + 1", "43"
		}
		if got := k.MustRun(code); got.Value["text/plain"] != want {
			t.Errorf("%+v, want got.Value[\"text/plain\"] = %v", got, want)
		}
	}
}
