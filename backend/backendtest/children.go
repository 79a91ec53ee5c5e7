package backendtest

import (
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance18BackgroundChild(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	start := time.Now()
	res := run(t, sb, "import subprocess; subprocess.Popen(['sleep', '300']); print('main')", nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "main\n")
	if d := time.Since(start); d > hang {
		t.Errorf("took %v: the run waited for its background child, want at most %v", d, hang)
	}
	left, err := sb.Shell(ctx, "cat /proc/[0-9]*/comm", nil)
	if err != nil || strings.Contains(left.Stdout, "sleep") {
		t.Errorf("after the run: %v, processes %q, want no error, Stdout without \"sleep\"", err, left.Stdout)
	}
	start = time.Now()
	res = run(t, sb, "import subprocess; subprocess.Popen(['sleep', '300']); print('main')", &llmsandbox.RunOptions{KeepChildren: true})
	wantExit(t, res, 0)
	if d := time.Since(start); d > hang {
		t.Errorf("took %v: the run waited for the child it keeps, want at most %v", d, hang)
	}
	left, err = sb.Shell(ctx, "cat /proc/[0-9]*/comm", nil)
	if err != nil || !strings.Contains(left.Stdout, "sleep") {
		t.Errorf("after a run that keeps its children: %v, processes %q, want no error, Stdout containing \"sleep\"", err, left.Stdout)
	}
}
