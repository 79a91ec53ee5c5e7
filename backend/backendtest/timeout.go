package backendtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance19to21Timeout(t *testing.T) {
	s.has(t, FreshInterpreters)
	ctx := testContext(t)
	sb := s.shared(t)
	start := time.Now()
	res := run(t, sb, "while True: pass", &llmsandbox.RunOptions{Timeout: 2 * time.Second})
	took := time.Since(start)
	wantStatus(t, res, llmsandbox.StatusTimeout)
	if took > hang || took < 2*time.Second {
		t.Errorf("took %v, want at least the timeout of 2 s", took)
	}
	if res.ExitCode != -1 {
		t.Errorf("exit code %d, though the program never exited, want ExitCode = -1", res.ExitCode)
	}
	if !strings.Contains(res.Reason, "2s") {
		t.Errorf("error %q does not name the timeout, want it to contain \"2s\"", res.Reason)
	}
	left, err := sb.Shell(ctx, "cat /proc/[0-9]*/comm", nil) // 20: already gone
	if err != nil || strings.Contains(left.Stdout, "python") {
		t.Errorf("after the timeout: %v, processes %q, want no error, Stdout without \"python\"", err, left.Stdout)
	}
	res = run(t, sb, "print(1)", nil) // 21
	wantStdout(t, res, "1\n")
}

func (s *suite) acceptance22PerRunTimeoutWins(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: time.Second}})
	wantStatus(t, run(t, sb, "import time; time.sleep(30)", nil), llmsandbox.StatusTimeout)
	wantExit(t, run(t, sb, "import time; time.sleep(1.5)", &llmsandbox.RunOptions{Timeout: 20 * time.Second}), 0)
	wantStatus(t, run(t, sb, "import time; time.sleep(30)", &llmsandbox.RunOptions{Timeout: 100 * time.Millisecond}), llmsandbox.StatusTimeout)
}

func (s *suite) acceptance23FractionalTimeout(t *testing.T) {
	sb := s.shared(t)
	start := time.Now()
	res := run(t, sb, "import time; time.sleep(300)", &llmsandbox.RunOptions{Timeout: 500 * time.Millisecond})
	wantStatus(t, res, llmsandbox.StatusTimeout)
	if d := time.Since(start); d < 500*time.Millisecond || d > hang || !strings.Contains(res.Reason, "500ms") {
		t.Errorf("took %v for a timeout of 0.5 s, reason %q, want d >= 500ms, d <= %v, Reason containing \"500ms\"", d, res.Reason, hang)
	}
}

// lifetime is short, and long enough for a sandbox to be opened, which it counts from.
func (s *suite) lifetime(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	if err := s.openNow(t, llmsandbox.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	return 3*time.Second + 2*time.Since(start)
}

func (s *suite) acceptance24Lifetime(t *testing.T) {
	ctx := testContext(t)
	lifetime := s.lifetime(t)
	sb := s.open(t, llmsandbox.Options{Lifetime: lifetime})
	select {
	case <-sb.Done():
	case <-time.After(lifetime + 17*time.Second):
		t.Fatalf("the sandbox has not ended, want it ended after %v", lifetime)
	}
	if _, err := sb.Run(ctx, "print(1)", nil); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("run after the lifetime: %v, want ErrClosed", err)
	}
	s.wantGone(t, sb.ID())
}

func (s *suite) acceptance26PartialOutput(t *testing.T) {
	sb := s.shared(t)
	var live strings.Builder
	res := run(t, sb, "import time; print('before', flush=True); time.sleep(300)",
		&llmsandbox.RunOptions{Timeout: time.Second, Stdout: &live})
	wantStatus(t, res, llmsandbox.StatusTimeout)
	if res.Stdout != "before\n" || live.String() != "before\n" {
		t.Errorf("stdout %q, live %q, want what was printed before the timeout", res.Stdout, live.String())
	}
}
