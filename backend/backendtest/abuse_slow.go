package backendtest

import (
	"runtime"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse23SlowReader floods a reader that does not read: the program waits, and
// no process's memory grows.
func (s *suite) abuse23SlowReader(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Output: llmsandbox.Unlimited}})
	ctx := testContext(t)
	release := make(chan struct{})
	slow := &stuck{release: release}
	done := make(chan *llmsandbox.Result, 1)
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		res, err := sb.Run(ctx, `
import os
n = 0
while n < 64 << 20:
    n += os.write(1, b"x" * 65536)
    with open("written", "w") as f: f.write(str(n))`, &llmsandbox.RunOptions{Stdout: slow, Timeout: 30 * time.Second})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	var last string
	for range 20 { // until it no longer moves
		time.Sleep(200 * time.Millisecond)
		b, err := sb.ReadFile(ctx, "written")
		if err != nil {
			continue // it has not begun
		}
		if string(b) == last && last != "" {
			break
		}
		last = string(b)
	}
	runtime.ReadMemStats(&during)
	if len(last) == 0 || len(last) > len("9999999") {
		t.Errorf("the program wrote %s bytes to a reader that reads nothing, want last not empty, len(last) <= %v", last, len("9999999"))
	}
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the caller's heap grew by %d MiB, want grown <= 32 MiB", grown>>20)
	}
	close(release)
	res := <-done
	wantExit(t, res, 0)
	if slow.n != 64<<20 {
		t.Errorf("%d bytes arrived of 64 MiB, want 64 MiB", slow.n)
	}
}

// stuck is a writer that takes nothing until it is released.
type stuck struct {
	release chan struct{}
	n       int64
}

func (w *stuck) Write(p []byte) (int, error) {
	<-w.release
	w.n += int64(len(p))
	return len(p), nil
}
