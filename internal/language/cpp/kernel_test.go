//go:build unix

package cpp

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language, programs...)
	k := kerneltest.Start(t, &Language)
	if stderr := k.Show([][3]string{
		{"#include <iostream>\n#include <vector>\nint x = 21;\nint f(int a) {\n  return a * 2;\n}\nstruct Box { int v; int get() const { return v; } };", "", ""},
		{"std::cout << \"Result: \" << f(x) << std::endl; Box{f(x)}.get()", "42", "Result: 42\n"},
		{"std::vector<int> v{1, 2}; v.push_back(3); v", "{ 1, 2, 3 }", ""},
		{"for (int i = 0; i < 2; i++) {\n  printf(\"%d\", i);\n}", "", "01"},
		{"std::string(\"caf\\u00e9 \\\"q\\\"\")", "\"café \"q\"\"", ""},
		{"x += 1;", "", ""},
		{"x == 22 // a comment", "true", ""},
		{"", "", ""},
		{"int caught = 0; try { throw 5; } catch (int n) { caught = n; }", "", ""},
		{"caught", "5", ""},
	}); stderr != "" {
		t.Errorf("they wrote %.300q to stderr, want empty", stderr)
	}
	if e := k.Run("int good = 1;\nint bad = \"text\";"); e.Status != "error" || e.Failure == nil || e.Failure.Name != "CompileError" || !strings.Contains(e.Failure.Traceback, "cell[11]:2:") || !strings.Contains(e.Failure.Message, "cannot initialize") || e.Stderr != "" {
		t.Errorf("%+v %+v, want Status = \"error\", Failure not nil, Name = \"CompileError\", Traceback containing \"cell[11]:2:\", Message containing \"cannot initialize\", Stderr empty", e, e.Failure)
	}
	if e := k.MustRun("std::cerr << \"careful\"; system(\"echo child; echo fault >&2; ls /proc/self/fd\");"); !strings.HasPrefix(e.Stdout, "child\n0\n1\n") || strings.Contains(e.Stdout, "\n4\n") || e.Stderr != "carefulfault\n" {
		t.Errorf("%+v, want Stdout beginning with \"child\\n0\\n1\\n\", Stdout without \"\\n4\\n\", Stderr = \"carefulfault\\n\"", e)
	}
	k.Input = []string{"Ann", "Bob"}
	if e := k.MustRun("std::string a; std::getline(std::cin, a); char b[9]; scanf(\"%8s\", b); a + b"); e.Value["text/plain"] != `"AnnBob"` {
		t.Errorf("%+v, want e.Value[\"text/plain\"] = \"\\\"AnnBob\\\"\"", e)
	}
	t.Logf("round trip %v", kerneltest.RoundTrip(k, "x", 10))
	if e := k.Run("puts(\"bye\"); exit(3);"); e.Status != "exit" || e.ExitCode == nil || *e.ExitCode != 3 || e.Stdout != "bye\n" {
		t.Errorf("%+v, want Status = \"exit\", ExitCode = 3, Stdout = \"bye\\n\"", e)
	}
	k = kerneltest.Start(t, &Language)
	if e := k.Run("#include <stdexcept>\nthrow std::runtime_error(\"nobody\");"); e.Status != "error" || !e.Lost || e.Failure == nil || e.Failure.Message != "nobody" || e.Failure.Name != "std::runtime_error" {
		t.Errorf("%+v %+v, want Status = \"error\", Lost true, Failure not nil, Message = \"nobody\", Name = \"std::runtime_error\"", e, e.Failure)
	}
	k.Exit()
}
