package backendtest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// acceptance45to46Live: output arrives while its program runs. Each line is answered, and the
// program waits for that.
func (s *suite) acceptance45to46Live(t *testing.T) {
	sb := s.shared(t)
	in, input := io.Pipe()
	defer input.Close()
	out := newReply()
	defer out.close()
	go func() {
		for range 3 {
			select {
			case line := <-out.lines:
				_, _ = io.WriteString(input, line+"\n") // it fails when the program has ended
			case <-testContext(t).Done():
			}
		}
	}()
	res := run(t, sb, "for i in range(3): print(i, flush=True); assert input() == str(i)", &llmsandbox.RunOptions{Stdin: in, Stdout: out})
	wantExit(t, res, 0)
	wantStdout(t, res, "0\n1\n2\n")
	var errs strings.Builder
	res = run(t, sb, "import sys; print('out'); print('err', file=sys.stderr)", &llmsandbox.RunOptions{Stderr: &errs})
	if errs.String() != "err\n" || res.Stdout != "out\n" || res.Stderr != "err\n" {
		t.Errorf("live stderr %q, stdout %q, stderr %q, want errs = \"err\\n\", Stdout = \"out\\n\", Stderr = \"err\\n\"", errs.String(), res.Stdout, res.Stderr)
	}
}

type broken struct{ panics bool }

func (b broken) Write([]byte) (int, error) {
	if b.panics {
		panic("callback broke")
	}
	return 0, errors.New("callback failed")
}

func (s *suite) acceptance48CallbackFails(t *testing.T) {
	sb := s.shared(t)
	for _, w := range []broken{{false}, {true}} {
		res, err := sb.Run(testContext(t), "for i in range(3): print(i, flush=True)", &llmsandbox.RunOptions{Stdout: w})
		if !errors.Is(err, llmsandbox.ErrOutput) {
			t.Errorf("error %v, want ErrOutput", err)
		}
		wantExit(t, res, 0)
		wantStdout(t, res, "0\n1\n2\n")
	}
}

func (s *suite) streamYieldsEventsInOrder(t *testing.T) {
	sb := s.shared(t)
	var out strings.Builder
	var last *llmsandbox.Result
	for e, err := range sb.Stream(testContext(t), "print('a'); print('b'); import sys; sys.exit(3)", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			t.Fatalf("an event after the last: last = %v, want nil", last)
		}
		switch e.Kind {
		case llmsandbox.EventStdout:
			out.Write(e.Data)
		case llmsandbox.EventDone:
			last = e.Result
		}
	}
	if last == nil {
		t.Fatalf("no EventDone: last = %v, want not nil", last)
	}
	wantExit(t, last, 3)
	if out.String() != "a\nb\n" {
		t.Errorf("output %q, want \"a\\nb\\n\"", out.String())
	}
}

func (s *suite) streamLeftEarlyKillsTheRun(t *testing.T) {
	s.has(t, FreshInterpreters)
	sb := s.shared(t)
	start := time.Now()
	for range sb.Stream(testContext(t), "import time\nwhile True: print('x', flush=True); time.sleep(0.01)", nil) {
		break
	}
	if d := time.Since(start); d > hang {
		t.Errorf("took %v, want at most %v", d, hang)
	}
	left, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/comm", nil)
	if err != nil || strings.Contains(left.Stdout, "python") {
		t.Errorf("after the loop: %v, processes %q, want no error, Stdout without \"python\"", err, left.Stdout)
	}
}

func (s *suite) cancelledContextKillsTheRun(t *testing.T) {
	s.has(t, FreshInterpreters)
	sb := s.shared(t)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	// One write: an unbuffered print makes two, and the cancel may come between them.
	res, err := sb.Run(ctx, "import os, time; os.write(1, b'up\\n'); time.sleep(300)", &llmsandbox.RunOptions{Stdout: writerFunc(cancel)})
	if err == nil || res.Status != llmsandbox.StatusKilled || res.Stdout != "up\n" {
		t.Errorf("%v, status %s, stdout %q: want an error, killed, and what was printed", err, res.Status, res.Stdout)
	}
	left, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/comm", nil)
	if err != nil || strings.Contains(left.Stdout, "python") {
		t.Errorf("after the cancel: %v, processes %q, want no error, Stdout without \"python\"", err, left.Stdout)
	}
}
