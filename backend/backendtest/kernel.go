package backendtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// openKernel opens a kernel that is closed with the test.
func openKernel(t *testing.T, sb *llmsandbox.Sandbox, lang string, o *llmsandbox.KernelOptions) *llmsandbox.Kernel {
	t.Helper()
	k, err := sb.Kernel(testContext(t), lang, o)
	if err != nil {
		t.Fatalf("open a kernel: %v", err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Errorf("close the kernel: %v", err)
		}
	})
	return k
}

func cell(t *testing.T, k *llmsandbox.Kernel, code string, o *llmsandbox.CellOptions) *llmsandbox.Cell {
	t.Helper()
	c, err := k.Run(testContext(t), code, o)
	if err != nil {
		t.Fatalf("cell %q: %v\n%+v", code, err, c)
	}
	return c
}

// wantValue runs a cell whose value, as text, must be want; "" for none.
func wantValue(t *testing.T, k *llmsandbox.Kernel, code, want string) *llmsandbox.Cell {
	t.Helper()
	c := cell(t, k, code, nil)
	if !c.OK() || c.Value["text/plain"] != want {
		t.Errorf("cell %q: status %s, value %q, error %+v, reason %q; want value %q", code, c.Status, c.Value, c.Error, c.Reason, want)
	}
	return c
}

// wantNoKernelFiles looks at the working directory: what a kernel needs itself lies elsewhere.
func wantNoKernelFiles(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	entries, err := sb.ListDir(testContext(t), ".")
	if err != nil {
		t.Errorf("list the working directory: %v", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name, ".kernel") {
			t.Errorf("the working directory has %s, want no file of the kernel", e.Name)
		}
	}
}

// plainPython is the shell that is there in every image.
var plainPython = &llmsandbox.KernelOptions{Plain: true}

func (s *suite) acceptance61to65Cells(t *testing.T) {
	sb := s.shared(t)
	for name, o := range map[string]*llmsandbox.KernelOptions{"plain": plainPython, "richest": nil} {
		t.Run(name, func(t *testing.T) {
			k := openKernel(t, sb, "", o)
			wantValue(t, k, "x = 21; y = 2", "")
			wantNoKernelFiles(t, sb)
			if c := cell(t, k, `print("Result:", x*y)`, nil); c.Stdout != "Result: 42\n" || c.Stderr != "" || c.Count != 2 {
				t.Errorf("61: %+v, want Stdout = \"Result: 42\\n\", Stderr empty, Count = 2", c)
			}
			wantValue(t, k, "import math\ndef f(n): return n + 1\nclass C: v = 3", "")
			wantValue(t, k, "math.floor(2.5) + f(C.v)", "6")
			c := cell(t, k, "z = 1\n1/0", nil)
			if c.Status != llmsandbox.StatusError || c.Error == nil || c.Error.Name != "ZeroDivisionError" || !strings.Contains(c.Error.Traceback, "line 2") && !strings.Contains(c.Error.Traceback, "2 1/0") || c.StateLost {
				t.Errorf("63: %+v %+v, want Status = StatusError, Error not nil, Name = \"ZeroDivisionError\", Traceback containing \"line 2\" or Traceback containing \"2 1/0\", StateLost false", c, c.Error)
			}
			wantValue(t, k, "z + x", "22")
			if c := wantValue(t, k, "1 + 1", "2"); c.Count != 7 {
				t.Errorf("64: count %d, want 7", c.Count)
			}
			for code, want := range map[string]string{"%who": "x", "!echo child": "child\n", "%timeit 1": "loop", "%%time\nprint(x)": "21\n"} {
				if c := cell(t, k, code, nil); !c.OK() || !strings.Contains(c.Stdout, want) {
					t.Errorf("65: %s: %+v, want OK, Stdout containing %q", code, c, want)
				}
			}
			wantValue(t, k, "%pwd", "'"+sb.Workdir()+"'")
			cell(t, k, "%reset -f", nil)
			if c := cell(t, k, "x", nil); c.Error == nil || c.Error.Name != "NameError" {
				t.Errorf("65: after a reset: %+v, want Error not nil, Name = \"NameError\"", c)
			}
		})
	}
}

func (s *suite) acceptance68KernelsOfNoLanguage(t *testing.T) {
	sb := s.shared(t)
	if _, err := sb.Kernel(testContext(t), "cobol", nil); !errors.Is(err, llmsandbox.ErrUnknownLanguage) {
		t.Errorf("an unknown language: %v, want llmsandbox.ErrUnknownLanguage", err)
	}
	if _, err := sb.Kernel(testContext(t), "", &llmsandbox.KernelOptions{Artifacts: &llmsandbox.ArtifactOptions{MaxCount: -1}}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("options that make no sense: %v, want llmsandbox.ErrInvalid", err)
	}
	k := openKernel(t, sb, "", plainPython)
	if c, err := k.Run(testContext(t), "1", &llmsandbox.CellOptions{Timeout: -5}); !errors.Is(err, llmsandbox.ErrInvalid) || c == nil {
		t.Errorf("a timeout that makes no sense: %+v, %v, want llmsandbox.ErrInvalid, c not nil", c, err)
	}
	if c, err := k.Run(testContext(t), strings.Repeat("#", 9<<20), nil); !errors.Is(err, llmsandbox.ErrInvalid) || c.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("too much code: %s, %v, want llmsandbox.ErrInvalid, Status = StatusSetupFailed", c.Status, err)
	}
	wantValue(t, k, "1", "1")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(testContext(t), "1", nil); !errors.Is(err, llmsandbox.ErrKernelClosed) {
		t.Errorf("a closed kernel: %v, want llmsandbox.ErrKernelClosed", err)
	}
}
