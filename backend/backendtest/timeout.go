package backendtest

import (
	"context"
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

// openShort opens a sandbox with a short time that set puts into its options, and has begin return before that is over. It counts
// from before the sandbox is open, which on a busy machine may take longer than any try before it: then it is tried with twice that.
func (s *suite) openShort(t *testing.T, set func(*llmsandbox.Options, time.Duration), begin func(context.Context, *llmsandbox.Sandbox) error) (*llmsandbox.Sandbox, time.Duration) {
	t.Helper()
	for d := 6 * time.Second; ; d *= 2 {
		var o llmsandbox.Options
		set(&o, d)
		sb, err := s.begin(o).wait()
		if err == nil {
			err = begin(testContext(t), sb)
		}
		if err == nil || d > hang {
			closeWith(t, sb, err)
			return sb, d
		}
		t.Logf("with %v: %v", d, err)
		if sb != nil {
			if err := sb.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
}

func begun(ctx context.Context, sb *llmsandbox.Sandbox) error {
	_, err := sb.Exec(ctx, []string{"true"}, nil)
	return err
}

func (s *suite) acceptance24Lifetime(t *testing.T) {
	ctx := testContext(t)
	sb, lifetime := s.openShort(t, func(o *llmsandbox.Options, d time.Duration) { o.Lifetime = d }, begun)
	select {
	case <-sb.Done():
	case <-time.After(lifetime + hang):
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
