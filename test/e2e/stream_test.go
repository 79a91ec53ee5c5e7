package e2e

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func TestAcceptance14LargeOutput(t *testing.T) {
	t.Run("40 MB", func(t *testing.T) {
		sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Output: 64 << 20}})
		res := run(t, sb, "import sys\nfor i in range(40): sys.stdout.write('x' * (1 << 20))", nil)
		wantExit(t, res, 0)
		if len(res.Stdout) != 40<<20 || res.StdoutTruncated {
			t.Errorf("%d bytes, truncated %v", len(res.Stdout), res.StdoutTruncated)
		}
	})
	t.Run("200 MB", func(t *testing.T) {
		sb := open(t, llmsandbox.Options{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := run(t, sb, "import sys\nfor i in range(200): sys.stdout.write('x' * (1 << 20))", nil)
		runtime.ReadMemStats(&after)
		wantStatus(t, res, llmsandbox.StatusOutputLimit)
		if len(res.Stdout) != 10<<20 || !res.StdoutTruncated {
			t.Errorf("%d bytes, truncated %v, want 10 MiB and true", len(res.Stdout), res.StdoutTruncated)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 100<<20 {
			t.Errorf("the caller's heap grew by %d MiB", grown>>20)
		}
	})
	t.Run("unlimited", func(t *testing.T) {
		sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Output: llmsandbox.Unlimited}})
		n := new(counter)
		res := run(t, sb, "import sys\nfor i in range(200): sys.stdout.write('x' * (1 << 20))", &llmsandbox.RunOptions{Stdout: n})
		wantExit(t, res, 0)
		if *n != 200<<20 || len(res.Stdout) > 64<<20 || !res.StdoutTruncated {
			t.Errorf("writer got %d bytes, result keeps %d, truncated %v", *n, len(res.Stdout), res.StdoutTruncated)
		}
	})
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

type timed struct {
	chunks []string
	at     []time.Time
}

func (w *timed) Write(p []byte) (int, error) {
	w.chunks = append(w.chunks, string(p))
	w.at = append(w.at, time.Now())
	return len(p), nil
}

func TestAcceptance45to46Live(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	var w timed
	res := run(t, sb, "import time\nfor i in range(3): print(i, flush=True); time.sleep(0.2)", &llmsandbox.RunOptions{Stdout: &w})
	wantExit(t, res, 0)
	if len(w.chunks) < 3 || strings.Join(w.chunks, "") != res.Stdout {
		t.Fatalf("chunks %q, stdout %q", w.chunks, res.Stdout)
	}
	if gap := w.at[len(w.at)-1].Sub(w.at[0]); gap < 300*time.Millisecond {
		t.Errorf("first and last chunk are %v apart, want about 0.4 s", gap)
	}
	var errs strings.Builder
	res = run(t, sb, "import sys; print('out'); print('err', file=sys.stderr)", &llmsandbox.RunOptions{Stderr: &errs})
	if errs.String() != "err\n" || res.Stdout != "out\n" || res.Stderr != "err\n" {
		t.Errorf("live stderr %q, stdout %q, stderr %q", errs.String(), res.Stdout, res.Stderr)
	}
}

func TestAcceptance47MultiByte(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	var w strings.Builder
	res := run(t, sb, "print('€' * 100000, end='')", &llmsandbox.RunOptions{Stdout: &w})
	want := strings.Repeat("€", 100000)
	if res.Stdout != want || w.String() != want {
		t.Errorf("stdout %d bytes, live %d bytes, want %d each", len(res.Stdout), w.Len(), len(want))
	}
}

type broken struct{ panics bool }

func (b broken) Write([]byte) (int, error) {
	if b.panics {
		panic("callback broke")
	}
	return 0, errors.New("callback failed")
}

func TestAcceptance48CallbackFails(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	for _, w := range []broken{{false}, {true}} {
		res, err := sb.Run(testContext(t), "for i in range(3): print(i, flush=True)", &llmsandbox.RunOptions{Stdout: w})
		if !errors.Is(err, llmsandbox.ErrOutput) {
			t.Errorf("error %v, want ErrOutput", err)
		}
		wantExit(t, res, 0)
		wantStdout(t, res, "0\n1\n2\n")
	}
}

func TestAcceptance49TextErrors(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	res := run(t, sb, `import sys; sys.stdout.buffer.write(b"hello\xff")`, nil)
	wantStdout(t, res, "hello\xff")
	for mode, want := range map[llmsandbox.TextErrors]string{
		llmsandbox.TextReplace: "hello\ufffd", llmsandbox.TextIgnore: "hello", llmsandbox.TextBackslash: `hello\xff`,
	} {
		if got, err := llmsandbox.DecodeText(res.Stdout, mode); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", mode, got, err, want)
		}
	}
	escaped, err := llmsandbox.DecodeText(res.Stdout, llmsandbox.TextSurrogateEscape)
	if err != nil || llmsandbox.EncodeText(escaped) != res.Stdout {
		t.Errorf("surrogateescape: %q, %v does not round-trip", escaped, err)
	}
	if _, err := llmsandbox.DecodeText(res.Stdout, llmsandbox.TextStrict); !errors.Is(err, llmsandbox.ErrDecode) {
		t.Errorf("strict: %v, want ErrDecode", err)
	}
}

// TestSlowReaderIsNotLost reads nothing until long after the run's timeout: the agent
// still answers, so the outcome is known and the output complete.
func TestSlowReaderIsNotLost(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	res := run(t, sb, "import sys; sys.stdout.write('x' * (4 << 20))", &llmsandbox.RunOptions{Timeout: time.Second, Stdout: new(slow)})
	if res.Status != llmsandbox.StatusOK && res.Status != llmsandbox.StatusTimeout {
		t.Errorf("status %s, error %q", res.Status, res.Error)
	}
	if res.Status == llmsandbox.StatusOK && len(res.Stdout) != 4<<20 {
		t.Errorf("%d bytes", len(res.Stdout))
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

func TestStreamYieldsEventsInOrder(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	var out strings.Builder
	var last *llmsandbox.Result
	for e, err := range sb.Stream(testContext(t), "print('a'); print('b'); import sys; sys.exit(3)", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			t.Fatal("an event after the last")
		}
		switch e.Kind {
		case llmsandbox.EventStdout:
			out.Write(e.Data)
		case llmsandbox.EventDone:
			last = e.Result
		}
	}
	if last == nil {
		t.Fatal("no EventDone")
	}
	wantExit(t, last, 3)
	if out.String() != "a\nb\n" {
		t.Errorf("output %q", out.String())
	}
}

func TestStreamLeftEarlyKillsTheRun(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	start := time.Now()
	for range sb.Stream(testContext(t), "import time\nwhile True: print('x', flush=True); time.sleep(0.01)", nil) {
		break
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	left, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/comm", nil)
	if err != nil || strings.Contains(left.Stdout, "python") {
		t.Errorf("after the loop: %v, processes %q", err, left.Stdout)
	}
}

func TestCancelledContextKillsTheRun(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	ctx, cancel := contextWithCancel(t)
	// One write: an unbuffered print makes two, and the cancel may come between them.
	res, err := sb.Run(ctx, "import os, time; os.write(1, b'up\\n'); time.sleep(300)", &llmsandbox.RunOptions{Stdout: cancelOnWrite(cancel)})
	if err == nil || res.Status != llmsandbox.StatusKilled || res.Stdout != "up\n" {
		t.Errorf("%v, status %s, stdout %q: want an error, killed, and what was printed", err, res.Status, res.Stdout)
	}
	left, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/comm", nil)
	if err != nil || strings.Contains(left.Stdout, "python") {
		t.Errorf("after the cancel: %v, processes %q", err, left.Stdout)
	}
}

type cancelOnWrite func()

func (f cancelOnWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
