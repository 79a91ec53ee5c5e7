package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance01to04Python(t *testing.T) {
	sb := s.shared(t)
	t.Run("01 hello", func(t *testing.T) {
		res := run(t, sb, `print("hi")`, nil)
		wantExit(t, res, 0)
		wantStdout(t, res, "hi\n")
		if res.Stderr != "" {
			t.Errorf("stderr %q, want none", res.Stderr)
		}
	})
	t.Run("02 exit code", func(t *testing.T) {
		wantExit(t, run(t, sb, "import sys; sys.exit(7)", nil), 7)
	})
	t.Run("03 exception", func(t *testing.T) {
		res := run(t, sb, `raise ValueError("x")`, nil)
		wantExit(t, res, 1)
		if !strings.Contains(res.Stderr, "ValueError: x") || !strings.Contains(res.Stderr, "line 1") {
			t.Errorf("stderr %q, want ValueError: x at line 1", res.Stderr)
		}
	})
	t.Run("04 streams apart", func(t *testing.T) {
		res := run(t, sb, "import sys\nfor i in range(500):\n  print('o', i)\n  print('e', i, file=sys.stderr)", nil)
		wantExit(t, res, 0)
		var out, errs strings.Builder
		for i := range 500 {
			fmt.Fprintf(&out, "o %d\n", i)
			fmt.Fprintf(&errs, "e %d\n", i)
		}
		if res.Stdout != out.String() || res.Stderr != errs.String() {
			t.Errorf("stdout %d bytes, stderr %d bytes, want %d and %d, each whole", len(res.Stdout), len(res.Stderr), out.Len(), errs.Len())
		}
	})
}

func (s *suite) acceptance08ExitCodeWithLiveOutput(t *testing.T) {
	sb := s.shared(t)
	var seen strings.Builder
	res := run(t, sb, "print('x'); import sys; sys.exit(7)", &llmsandbox.RunOptions{Stdout: &seen})
	wantExit(t, res, 7)
	if seen.String() != "x\n" {
		t.Errorf("live output %q, want \"x\\n\"", seen.String())
	}
}

func (s *suite) acceptance10Closed(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sb.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	res, err := sb.Run(ctx, "print(1)", nil)
	if !errors.Is(err, llmsandbox.ErrClosed) || res.Status != llmsandbox.StatusSetupFailed || res.ExitCode != -1 {
		t.Errorf("Run after Close: %v, %+v, want ErrClosed", err, res)
	}
	if _, err := sb.ReadFile(ctx, "x"); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("ReadFile after Close: %v, want ErrClosed", err)
	}
}

func (s *suite) acceptance11FilesPersistStateDoesNot(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	wantExit(t, run(t, sb, "x = 1; open('f.txt', 'w').write('kept')", nil), 0)
	res := run(t, sb, "print(open('f.txt').read()); print('x' in globals())", nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "kept\nFalse\n")
}

func (s *suite) acceptance15NoStdin(t *testing.T) {
	sb := s.shared(t)
	start := time.Now()
	res := run(t, sb, "import sys; print(repr(sys.stdin.read()))", nil)
	wantStdout(t, res, "''\n")
	if d := time.Since(start); d > hang {
		t.Errorf("took %v, as if it had waited for input, want at most %v", d, hang)
	}
	res = run(t, sb, "print(input() + input())", &llmsandbox.RunOptions{Stdin: strings.NewReader("a\nb\n")})
	wantStdout(t, res, "ab\n")
}

func (s *suite) acceptance16to17Text(t *testing.T) {
	sb := s.shared(t)
	for name, c := range map[string]struct{ code, out string }{
		"16 indented": {"    for i in range(2):\n        print(i)\n\n    print('end')\n", "0\n1\nend\n"},
		"17 BOM":      {"\ufeffprint('bom')", "bom\n"},
		"17 CRLF":     {"if True:\r\n    print('crlf')\r\n", "crlf\n"},
		"17 emoji":    {"print('🎉 ünïcode')", "🎉 ünïcode\n"},
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, sb, c.code, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, c.out)
		})
	}
	t.Run("17 NUL", func(t *testing.T) {
		// Some interpreters refuse it, some read over it.
		res := run(t, sb, "print(1)\x00", nil)
		refused := res.Status == llmsandbox.StatusError && strings.Contains(res.Stderr, "null byte")
		if !refused && (res.Status != llmsandbox.StatusOK || res.Stdout != "1\n") {
			t.Errorf("status %s, stdout %q, stderr %q, want Status = StatusOK, Stdout = \"1\\n\"", res.Status, res.Stdout, res.Stderr)
		}
	})
}
