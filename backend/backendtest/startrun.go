package backendtest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func startRun(t testing.TB, sb *llmsandbox.Sandbox, code string, o *llmsandbox.RunOptions) *llmsandbox.Process {
	t.Helper()
	p, err := sb.StartRun(testContext(t), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startedRuns are runs whose caller can reach the program meanwhile.
func (s *suite) startedRuns(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	t.Run("interrupt", func(t *testing.T) {
		out := newReply()
		defer out.close()
		// A signal that comes just before a sleep is seen after it.
		p := startRun(t, sb, "import time\ntry:\n  print('begun', flush=True)\n  while True: time.sleep(0.1)\nexcept KeyboardInterrupt:\n  raise SystemExit(5)",
			&llmsandbox.RunOptions{Stdout: out})
		out.want(t, "begun")
		if err := p.Interrupt(ctx); err != nil {
			t.Fatal(err)
		}
		wantExit(t, wait(t, p), 5)
		if err := p.Interrupt(ctx); err != nil {
			t.Errorf("interrupt a process that has ended: %v, want no error", err)
		}
	})
	t.Run("interrupt reaches children", func(t *testing.T) {
		out := newReply()
		defer out.close()
		// The trap of the outer shell lets it wait for the inner one, whenever the signal comes.
		p := startRun(t, sb, "trap : INT; sh -c 'trap \"echo child; exit\" INT; echo begun; while :; do sleep 600 & wait $!; done'; exit 6",
			&llmsandbox.RunOptions{Language: "bash", Stdout: out})
		out.want(t, "begun")
		if err := p.Interrupt(ctx); err != nil {
			t.Fatal(err)
		}
		out.want(t, "child")
		wait(t, p)
	})
	t.Run("terminal", func(t *testing.T) {
		in, input := io.Pipe()
		defer input.Close()
		out := newReply()
		defer out.close()
		p := startRun(t, sb, "stty -echo -onlcr; stty size; read -r line; stty size; exit 3",
			&llmsandbox.RunOptions{Language: "bash", Stdin: in, Stdout: out, Terminal: &llmsandbox.WinSize{Rows: 24, Cols: 80}})
		out.want(t, "24 80")
		if err := p.Resize(ctx, llmsandbox.WinSize{Rows: 50, Cols: 132}); err != nil {
			t.Fatal(err)
		}
		send(t, input, "\n")
		out.want(t, "50 132")
		wantExit(t, wait(t, p), 3)
	})
	t.Run("context", func(t *testing.T) {
		started, cancel := context.WithCancel(ctx)
		p, err := sb.StartRun(started, "import sys; sys.exit(4)", nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // which was for the start only
		wantExit(t, wait(t, p), 4)
		if p, err := sb.StartRun(started, "", nil); p != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v, %v; want context.Canceled", p, err)
		}
	})
	t.Run("not started", func(t *testing.T) {
		for _, c := range []struct {
			o    llmsandbox.RunOptions
			want error
		}{
			{llmsandbox.RunOptions{Language: "cobol"}, llmsandbox.ErrUnknownLanguage},
			{llmsandbox.RunOptions{Dir: "nope"}, llmsandbox.ErrWorkdir},
			{llmsandbox.RunOptions{Timeout: -5}, llmsandbox.ErrInvalid},
		} {
			if p, err := sb.StartRun(ctx, "", &c.o); p != nil || !errors.Is(err, c.want) {
				t.Errorf("%+v: %v, %v; want %v", c.o, p, err, c.want)
			}
		}
	})
	t.Run("policy", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{Policy: llmsandbox.Policy{Checker: noCurl(t)}})
		wantStatus(t, wait(t, startRun(t, sb, "eval('1')", nil)), llmsandbox.StatusRefused)
		sb = s.open(t, llmsandbox.Options{Policy: llmsandbox.Policy{Checker: noCurl(t), WarnOnly: true}})
		if res := wait(t, startRun(t, sb, "eval('1')", nil)); res.Status != llmsandbox.StatusOK || len(res.Findings) == 0 {
			t.Errorf("%s with findings %+v, want %s with some", res.Status, res.Findings, llmsandbox.StatusOK)
		}
	})
}

// startedCompiles are started runs of a compiled language: the program is what has started.
func (s *suite) startedCompiles(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "cpp"}, "g++")
	out := newReply()
	defer out.close()
	p := startRun(t, sb, "#include <iostream>\nint main() { std::cout << \"begun\" << std::endl; std::cin.get(); }", &llmsandbox.RunOptions{Stdin: blocked(t), Stdout: out})
	out.want(t, "begun")
	if err := p.Interrupt(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, p); res.Signal != "SIGINT" {
		t.Errorf("signal %q, want SIGINT", res.Signal)
	}
	res := wait(t, startRun(t, sb, "int main() { return undeclared; }", nil))
	if res.Status != llmsandbox.StatusError || !strings.Contains(res.Stderr, "undeclared") {
		t.Errorf("%s, stderr %q; want %s of the compiler", res.Status, res.Stderr, llmsandbox.StatusError)
	}
}

// blocked is an input that has nothing until the test ends.
func blocked(t testing.TB) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}
