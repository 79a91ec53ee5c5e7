package backendtest

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance14LargeOutput(t *testing.T) {
	t.Run("40 MB", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Output: 64 << 20}})
		res := run(t, sb, "import sys\nfor i in range(40): sys.stdout.write('x' * (1 << 20))", nil)
		wantExit(t, res, 0)
		if len(res.Stdout) != 40<<20 || res.StdoutTruncated {
			t.Errorf("%d bytes, truncated %v, want len(res.Stdout) = 40 MiB, StdoutTruncated false", len(res.Stdout), res.StdoutTruncated)
		}
	})
	t.Run("200 MB", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := run(t, sb, "import sys\nfor i in range(200): sys.stdout.write('x' * (1 << 20))", nil)
		runtime.ReadMemStats(&after)
		wantStatus(t, res, llmsandbox.StatusOutputLimit)
		if len(res.Stdout) != 10<<20 || !res.StdoutTruncated {
			t.Errorf("%d bytes, truncated %v, want 10 MiB and true", len(res.Stdout), res.StdoutTruncated)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 100<<20 {
			t.Errorf("the caller's heap grew by %d MiB, want grown <= 100 MiB", grown>>20)
		}
	})
	t.Run("unlimited", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Output: llmsandbox.Unlimited}})
		n := new(counter)
		res := run(t, sb, "import sys\nfor i in range(200): sys.stdout.write('x' * (1 << 20))", &llmsandbox.RunOptions{Stdout: n})
		wantExit(t, res, 0)
		if *n != 200<<20 || len(res.Stdout) > 64<<20 || !res.StdoutTruncated {
			t.Errorf("writer got %d bytes, result keeps %d, truncated %v, want n = 200 MiB, len(res.Stdout) <= 64 MiB, StdoutTruncated true", *n, len(res.Stdout), res.StdoutTruncated)
		}
	})
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (s *suite) acceptance47MultiByte(t *testing.T) {
	sb := s.shared(t)
	var w strings.Builder
	res := run(t, sb, "print('€' * 100000, end='')", &llmsandbox.RunOptions{Stdout: &w})
	want := strings.Repeat("€", 100000)
	if res.Stdout != want || w.String() != want {
		t.Errorf("stdout %d bytes, live %d bytes, want %d each", len(res.Stdout), w.Len(), len(want))
	}
}

func (s *suite) acceptance49TextErrors(t *testing.T) {
	sb := s.shared(t)
	res := run(t, sb, `import sys; sys.stdout.buffer.write(b"hello\xff")`, nil)
	wantStdout(t, res, "hello\xff")
}

// slowReaderIsNotLost reads nothing until long after the run's timeout: the agent
// still answers, so the outcome is known and the output complete.
func (s *suite) slowReaderIsNotLost(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	res := run(t, sb, "import sys; sys.stdout.write('x' * (4 << 20))", &llmsandbox.RunOptions{Timeout: time.Second, Stdout: new(slow)})
	if res.Status != llmsandbox.StatusOK && res.Status != llmsandbox.StatusTimeout {
		t.Errorf("status %s, error %q, want Status = StatusOK or Status = StatusTimeout", res.Status, res.Reason)
	}
	if res.Status == llmsandbox.StatusOK && len(res.Stdout) != 4<<20 {
		t.Errorf("%d bytes, want Status != StatusOK or len(res.Stdout) = 4 MiB", len(res.Stdout))
	}
}

type slow struct{ slept bool }

func (w *slow) Write(p []byte) (int, error) {
	if !w.slept {
		w.slept = true
		time.Sleep(17 * time.Second)
	}
	return len(p), nil
}
