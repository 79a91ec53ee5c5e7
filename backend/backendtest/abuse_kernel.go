package backendtest

import (
	"strings"
	"testing"
)

// abuse84KernelForgery: a cell's code holds the driver's pipes. It can end its own kernel,
// and say what it likes about itself; what it did to others, or how its process ended,
// is not its to say.
func (s *suite) abuse84KernelForgery(t *testing.T) {
	sb := s.shared(t)
	other := openKernel(t, sb, "", plainPython)
	wantValue(t, other, "x = 1", "")
	for _, code := range []string{
		`os.write(4, b"garbage\n"); time.sleep(100)`,
		`os.write(4, b"x" * (9 << 20)); time.sleep(100)`,
		`os.write(4, b'{"event":"done","id":999,"status":"ok"}\n'); time.sleep(100)`,
		`os.write(4, b'{"event":"ready"}\n'); time.sleep(100)`,
		`os.write(4, b'{"event":"input","id":1,"prompt":"","password":false}\n' * 200000); time.sleep(100)`,
		`os.close(3); os.close(4); os._exit(7)`,
	} {
		k := openKernel(t, sb, "", plainPython)
		c := cell(t, k, "import os, time\n"+code, nil)
		if c.OK() || !c.StateLost || c.Reason == "" {
			t.Errorf("%s: %+v, want c.OK() = false, StateLost true, Reason not empty", code, c)
		}
		wantValue(t, k, "1 + 1", "2")
	}
	k := openKernel(t, sb, "", plainPython)
	if c := cell(t, k, `print("\0" + "0" * 32); import os; os.write(1, b"\0" * 100)`, nil); !c.OK() || len(c.Stdout) != 134 {
		t.Errorf("forged marks: %+v, want OK, len(c.Stdout) = 134", c)
	}
	if c := cell(t, k, "_ = __import__('subprocess').run('ls /proc/self/fd', shell=True)", nil); strings.Contains(c.Stdout, "4") {
		t.Errorf("a child holds %q, want it not to contain \"4\"", c.Stdout)
	}
	wantValue(t, other, "x", "1")
}
