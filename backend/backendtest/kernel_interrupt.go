package backendtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance66Interrupt(t *testing.T) {
	k := openKernel(t, s.shared(t), "", plainPython)
	wantValue(t, k, "x = 5", "")
	c := cell(t, k, "print('on', flush=True)\nwhile True: pass", &llmsandbox.CellOptions{Timeout: time.Second})
	if c.Status != llmsandbox.StatusTimeout || !c.Interrupted || c.StateLost || c.Stdout != "on\n" {
		t.Errorf("a timeout: %+v, want Status = StatusTimeout, Interrupted true, StateLost false, Stdout = \"on\\n\"", c)
	}
	wantValue(t, k, "x", "5")
	// What no interrupt ends is killed, and the loss is reported.
	c = cell(t, k, "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", &llmsandbox.CellOptions{Timeout: time.Second})
	if c.Status != llmsandbox.StatusTimeout || !c.StateLost {
		t.Errorf("a stubborn cell: %+v, want Status = StatusTimeout, StateLost true", c)
	}
	wantValue(t, k, "'x' in globals()", "False")

	t.Run("by the caller", func(t *testing.T) {
		wantValue(t, k, "y = 6", "")
		begun := make(chan struct{})
		var once sync.Once
		go func() {
			<-begun
			if err := k.Interrupt(context.Background()); err != nil {
				t.Errorf("interrupt: %v", err)
			}
		}()
		c := cell(t, k, "import time\nprint('on', flush=True)\ntime.sleep(100)", &llmsandbox.CellOptions{Stdout: writerFunc(func() { once.Do(func() { close(begun) }) })})
		if c.Status != llmsandbox.StatusKilled || !c.Interrupted || c.StateLost {
			t.Errorf("interrupted: %+v, want Status = StatusKilled, Interrupted true, StateLost false", c)
		}
		wantValue(t, k, "y", "6")
	})
	t.Run("by the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(testContext(t))
		c, err := k.Run(ctx, "print('on', flush=True)\ntime.sleep(100)", &llmsandbox.CellOptions{Stdout: writerFunc(cancel)})
		if !errors.Is(err, context.Canceled) || !c.Interrupted || c.StateLost {
			t.Errorf("cancelled: %+v, %v, want context.Canceled, Interrupted true, StateLost false", c, err)
		}
		wantValue(t, k, "y", "6")
	})
	t.Run("too much output", func(t *testing.T) {
		c := cell(t, k, "while True: print('x' * 10000)", nil)
		if c.Status != llmsandbox.StatusOutputLimit || !c.StdoutTruncated || c.StateLost {
			t.Errorf("%s %v %q, want Status = StatusOutputLimit, StdoutTruncated true, StateLost false", c.Status, c.StdoutTruncated, c.Reason)
		}
		wantValue(t, k, "y", "6")
	})
}
