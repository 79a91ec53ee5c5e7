package backendtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// logged is what a call of Logs yielded.
type logged struct {
	stdout, stderr string
	lost           int64
	err            error
}

// readLog reads a log to its end. each, if not nil, is called with all that there is so far.
func readLog(ctx context.Context, sb *llmsandbox.Sandbox, id uint64, o *llmsandbox.LogsOptions, each func(logged)) (l logged) {
	for chunk, err := range sb.Logs(ctx, id, o) {
		l.lost += chunk.Lost
		l.err = err
		if chunk.Stderr {
			l.stderr += string(chunk.Data)
		} else {
			l.stdout += string(chunk.Data)
		}
		if each != nil {
			each(l)
		}
	}
	return l
}

// logs reads output while another handle follows the process, which still gets all of it.
func (s *suite) logs(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	other := s.attach(t, sb)
	follow := func(id uint64, each func(logged)) <-chan logged {
		read := make(chan logged, 1)
		go func() { read <- readLog(ctx, other, id, &llmsandbox.LogsOptions{Follow: true}, each) }()
		return read
	}
	t.Run("both get all", func(t *testing.T) {
		in, input := io.Pipe()
		defer input.Close()
		p := start(t, sb, "echo begun; echo oops >&2; read x; seq 5000; echo bye >&2; exit 3", &llmsandbox.ExecOptions{Stdin: in})
		begun := make(chan struct{})
		open := begun
		read := follow(p.ID(), func(l logged) {
			if open != nil && (l.err != nil || l.stdout == "begun\n" && l.stderr == "oops\n") {
				close(open)
				open = nil
			}
		})
		<-begun
		for _, c := range []struct {
			id   uint64
			o    *llmsandbox.LogsOptions
			want logged
		}{
			{p.ID(), nil, logged{stdout: "begun\n", stderr: "oops\n"}},
			{p.ID(), &llmsandbox.LogsOptions{StdoutOffset: 4, StderrOffset: 5}, logged{stdout: "n\n"}},
			{p.ID(), &llmsandbox.LogsOptions{StdoutOffset: 6, StderrOffset: 6}, logged{err: llmsandbox.ErrInvalid}},
			{p.ID(), &llmsandbox.LogsOptions{StdoutOffset: 7, Follow: true}, logged{err: llmsandbox.ErrInvalid}},
			{p.ID(), &llmsandbox.LogsOptions{StderrOffset: -1}, logged{err: llmsandbox.ErrInvalid}},
			{p.ID() + 1000, nil, logged{err: fs.ErrNotExist}},
		} {
			got := readLog(ctx, other, c.id, c.o, nil)
			if !errors.Is(got.err, c.want.err) {
				t.Errorf("process %d, %+v: %v, want %v", c.id, c.o, got.err, c.want.err)
			}
			if got.err = c.want.err; got != c.want {
				t.Errorf("process %d, %+v: %+v, want %+v", c.id, c.o, got, c.want)
			}
		}
		left, leave := context.WithCancel(ctx)
		defer leave()
		for chunk, err := range other.Logs(left, p.ID(), &llmsandbox.LogsOptions{Follow: true}) {
			if err != nil || chunk.Offset != 0 || chunk.Lost != 0 {
				t.Errorf("first chunk %+v, %v, want one from offset 0, nothing lost, no error", chunk, err)
			}
			leave()
			break // and ends the reading
		}
		send(t, input, "go\n")
		res := wait(t, p)
		wantExit(t, res, 3)
		want := logged{stdout: res.Stdout, stderr: "oops\nbye\n"}
		if !strings.HasSuffix(res.Stdout, "\n5000\n") || res.Stderr != want.stderr {
			t.Errorf("%s, want all of its output", describe(res))
		}
		if got := <-read; got != want {
			t.Errorf("the log has %d bytes, %q, %d lost, %v; want %d, %q, no error", len(got.stdout), got.stderr, got.lost, got.err, len(want.stdout), want.stderr)
		}
		forgotten(t, sb, p.ID())
		if got := readLog(ctx, other, p.ID(), nil, nil); !errors.Is(got.err, fs.ErrNotExist) {
			t.Errorf("the log of a process whose end was delivered: %v, want fs.ErrNotExist", got.err)
		}
	})
	t.Run("slow reader", func(t *testing.T) {
		in, input := io.Pipe()
		defer input.Close()
		p := start(t, sb, "echo begun; read x; head -c 6000000 /dev/zero; seq 5000", &llmsandbox.ExecOptions{Stdin: in})
		reading, goOn := make(chan struct{}), make(chan struct{})
		open := reading
		read := follow(p.ID(), func(logged) {
			if open != nil {
				close(open)
				open = nil
				<-goOn
			}
		})
		<-reading
		send(t, input, "go\n")
		wantExit(t, wait(t, p), 0) // which the one that does not read does not hold up
		close(goOn)
		got := <-read
		total := int64(len("begun\n") + 6_000_000 + 23893)
		if got.err != nil || got.lost == 0 || got.lost+int64(len(got.stdout)) != total || !strings.HasSuffix(got.stdout, "\n5000\n") {
			t.Errorf("%d bytes, %d lost, %v, end %.20q; want %d, some of them lost, and the end", len(got.stdout), got.lost, got.err, got.stdout[max(0, len(got.stdout)-20):], total)
		}
	})
	t.Run("detached", func(t *testing.T) {
		p := start(t, sb, "while :; do echo line; sleep 0.01; done", nil)
		p.Detach()
		cancelled, cancel := context.WithCancel(ctx)
		got := readLog(cancelled, other, p.ID(), &llmsandbox.LogsOptions{Follow: true}, func(l logged) {
			if strings.Count(l.stdout, "line\n") > 2 {
				cancel()
			}
		})
		if !errors.Is(got.err, context.Canceled) || got.lost != 0 {
			t.Errorf("%d lost, %v, want nothing lost, context.Canceled", got.lost, got.err)
		}
		read := follow(p.ID(), nil)
		if err := p.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		all := <-read
		if all.err != nil || !strings.HasPrefix(all.stdout, got.stdout) {
			t.Errorf("after its end: %q, %v, want %q and more", all.stdout, all.err, got.stdout)
		}
		again, err := other.AttachProcess(ctx, p.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res := wait(t, again); !strings.HasSuffix(all.stdout, res.Stdout) {
			t.Errorf("attached: %q, want an end of %q", res.Stdout, all.stdout)
		}
	})
	t.Run("closed", func(t *testing.T) {
		p := start(t, sb, "echo begun; sleep 600", nil)
		begun := make(chan struct{})
		open := begun
		read := follow(p.ID(), func(logged) {
			if open != nil {
				close(open)
				open = nil
			}
		})
		<-begun
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
		// As quick as the agent was to say that the process has ended.
		if got := <-read; got.stdout != "begun\n" || got.err != nil && !errors.Is(got.err, llmsandbox.ErrLost) {
			t.Errorf("%+v, want its output, and its end or ErrLost", got)
		}
		select {
		case <-other.Done(): // an agent that is ending still answers
		case <-ctx.Done():
			t.Fatal("another handle does not notice the end, want its Done closed")
		}
		if got := readLog(ctx, other, p.ID(), nil, nil); got.err == nil {
			t.Error("the log of a closed sandbox: no error, want one")
		}
	})
}
