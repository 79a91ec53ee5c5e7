package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// echo repeats its input line by line until that ends; SIGINT ends it with 5.
const echo = `trap 'exit 5' INT
echo begun
while read -r line; do echo "$line"; echo "$line" >&2; done
exit 3`

// A reply is a writer whose reader waits for what it wants to read.
type reply struct {
	io.Writer
	lines chan string
}

func newReply() *reply {
	r, w := io.Pipe()
	rep := &reply{Writer: w, lines: make(chan string, 100)}
	go func() {
		var rest string
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			rest += string(buf[:n])
			for {
				line, after, ok := strings.Cut(rest, "\n")
				if !ok {
					break
				}
				rep.lines <- line
				rest = after
			}
			if err != nil {
				return
			}
		}
	}()
	return rep
}

func (r *reply) close() { _ = r.Writer.(*io.PipeWriter).Close() }

func (r *reply) want(t testing.TB, want string) {
	t.Helper()
	select {
	case got := <-r.lines:
		if got != want {
			t.Fatalf("the process wrote %q, want %q", got, want)
		}
	case <-testContext(t).Done():
		t.Fatalf("the process wrote nothing, want %q", want)
	}
}

func send(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func start(t testing.TB, sb *llmsandbox.Sandbox, script string, o *llmsandbox.ExecOptions) *llmsandbox.Process {
	t.Helper()
	p, err := sb.Start(testContext(t), []string{"sh", "-c", script}, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t testing.TB, p *llmsandbox.Process) *llmsandbox.Result {
	t.Helper()
	res, err := p.Wait(testContext(t))
	if err != nil {
		t.Fatalf("wait for process %d: %v", p.ID(), err)
	}
	return res
}

// listed is the entry of a process in the sandbox's list; nil if it has none.
func listed(t testing.TB, sb *llmsandbox.Sandbox, id uint64) *llmsandbox.ProcessInfo {
	t.Helper()
	infos, err := sb.Processes(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(infos, func(i llmsandbox.ProcessInfo) bool { return i.ID == id }); i >= 0 {
		return &infos[i]
	}
	return nil
}

// forgotten waits until the agent knows that a process's end has been delivered.
func forgotten(t testing.TB, sb *llmsandbox.Sandbox, id uint64) {
	t.Helper()
	settles(t, func() error {
		if info := listed(t, sb, id); info != nil {
			return fmt.Errorf("it is listed after its end: %+v", info)
		}
		return nil
	})
}

// processHandles: processes are started, talked to, signalled, waited for and killed.
func (s *suite) processHandles(t *testing.T) {
	sb := s.shared(t)
	ctx := testContext(t)
	t.Run("input and output", func(t *testing.T) {
		in, input := io.Pipe()
		out := newReply()
		defer out.close()
		p := start(t, sb, echo, &llmsandbox.ExecOptions{Stdin: in, Stdout: out})
		out.want(t, "begun")
		send(t, input, "one\n")
		out.want(t, "one")
		settles(t, func() error { // two pipes are read in no order
			info := listed(t, sb, p.ID())
			if info == nil || info.PID != p.PID() || !slices.Equal(info.Argv, []string{"sh", "-c", echo}) || !info.Running || info.StdoutEnd != 10 || info.StderrEnd != 4 || info.Memory == 0 {
				return fmt.Errorf("listed as %+v: want pid %d, its argv, running, 10 and 4 bytes of output, memory", info, p.PID())
			}
			return nil
		})
		short, cancel := context.WithCancel(ctx)
		cancel()
		if res, err := p.Wait(short); res != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("wait with a context that has ended: %v, %v; want no result and context.Canceled", res, err)
		}
		if err := input.Close(); err != nil {
			t.Fatal(err)
		}
		res := wait(t, p)
		wantExit(t, res, 3)
		wantStdout(t, res, "begun\none\n")
		if res.Stderr != "one\n" || res.StdoutTruncated {
			t.Errorf("stderr %q, truncated %v, want Stderr = \"one\\n\", StdoutTruncated false", res.Stderr, res.StdoutTruncated)
		}
		forgotten(t, sb, p.ID())
		// A process that has ended accepts any call.
		if err := errors.Join(p.Signal(ctx, "TERM"), p.Kill(ctx)); err != nil {
			t.Error(err)
		}
	})
	t.Run("signal", func(t *testing.T) {
		in, input := io.Pipe()
		defer input.Close()
		out := newReply()
		defer out.close()
		p := start(t, sb, echo, &llmsandbox.ExecOptions{Stdin: in, Stdout: out})
		out.want(t, "begun")
		if err := p.Signal(ctx, "SIGNOT"); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("no signal: %v, want ErrInvalid", err)
		}
		if err := p.Signal(ctx, "INT"); err != nil {
			t.Fatal(err)
		}
		wantExit(t, wait(t, p), 5)
	})
	t.Run("kill", func(t *testing.T) {
		p := start(t, sb, "sleep 600 & sleep 600", nil)
		if err := p.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		res := wait(t, p)
		wantStatus(t, res, llmsandbox.StatusKilled)
		if res.Signal != "SIGKILL" {
			t.Errorf("signal %q, want SIGKILL", res.Signal)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		p := start(t, sb, "sleep 600", &llmsandbox.ExecOptions{Timeout: 200 * time.Millisecond})
		<-p.Done()
		wantStatus(t, wait(t, p), llmsandbox.StatusTimeout)
	})
	t.Run("no program", func(t *testing.T) {
		for _, c := range []struct {
			argv []string
			want error
		}{
			{nil, llmsandbox.ErrEmptyCommand},
			{[]string{"no-such-program"}, fs.ErrNotExist},
			{[]string{"/etc/passwd"}, fs.ErrPermission},
			{[]string{"sh", "a\x00b"}, llmsandbox.ErrInvalid},
		} {
			if p, err := sb.Start(ctx, c.argv, nil); p != nil || !errors.Is(err, c.want) {
				t.Errorf("start %q: %v, %v; want %v", c.argv, p, err, c.want)
			}
		}
	})
	t.Run("context", func(t *testing.T) {
		started, cancel := context.WithCancel(ctx)
		p, err := sb.Start(started, []string{"sh", "-c", "sleep 0.2; exit 4"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // which was for the start only
		wantExit(t, wait(t, p), 4)
		if p, err := sb.Start(started, []string{"sleep", "600"}, nil); p != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("start with a context that has ended: %v, %v; want context.Canceled", p, err)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		in, input := io.Pipe()
		defer input.Close()
		out := newReply()
		defer out.close()
		p := start(t, sb, "stty -echo -onlcr; stty size; while read -r line; do stty size; done", &llmsandbox.ExecOptions{Stdin: in, Stdout: out, Terminal: &llmsandbox.WinSize{Rows: 24, Cols: 80}})
		out.want(t, "24 80")
		if err := p.Resize(ctx, llmsandbox.WinSize{Rows: 50, Cols: 132}); err != nil {
			t.Fatal(err)
		}
		send(t, input, "\n")
		out.want(t, "50 132")
		if err := p.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, wait(t, p), llmsandbox.StatusKilled)
	})
}

// processesAttached are taken over from one handle by another, and lose no byte.
func (s *suite) processesAttached(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	other := s.attach(t, sb)
	begin := func(t *testing.T) (p *llmsandbox.Process, input io.WriteCloser) {
		in, input := io.Pipe()
		out := newReply()
		t.Cleanup(func() { _ = input.Close(); out.close() })
		p = start(t, sb, echo, &llmsandbox.ExecOptions{Stdin: in, Stdout: out})
		out.want(t, "begun")
		send(t, input, "first\n")
		out.want(t, "first")
		return p, input
	}
	detached := func(t *testing.T, p *llmsandbox.Process) {
		t.Helper()
		res, err := p.Wait(ctx)
		if !errors.Is(err, llmsandbox.ErrDetached) || res.Status != llmsandbox.StatusLost || res.Stdout != "begun\nfirst\n" {
			t.Errorf("%s: %v; want lost and ErrDetached", describe(res), err)
		}
	}
	attach := func(t *testing.T, id uint64, o *llmsandbox.AttachOutput) *llmsandbox.Process {
		t.Helper()
		p, err := other.AttachProcess(ctx, id, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, name := range []string{"detached", "taken"} {
		t.Run(name, func(t *testing.T) {
			p, _ := begin(t)
			if name == "detached" {
				p.Detach()
			}
			in, input := io.Pipe()
			out := newReply()
			defer out.close()
			again := attach(t, p.ID(), &llmsandbox.AttachOutput{Stdin: in, Stdout: out})
			detached(t, p)
			if again.ID() != p.ID() || again.PID() != p.PID() {
				t.Errorf("attached to %d, pid %d; want %d, pid %d", again.ID(), again.PID(), p.ID(), p.PID())
			}
			send(t, input, "second\n")
			for line := range out.lines { // what was read before may be kept still
				if line == "second" {
					break
				}
			}
			_ = input.Close()
			res := wait(t, again)
			wantExit(t, res, 3)
			if want := "begun\nfirst\nsecond\n"; !strings.HasSuffix(want, res.Stdout) || res.StdoutTruncated != (res.Stdout != want) || res.Duration <= 0 {
				t.Errorf("stdout %q, truncated %v, duration %v; want an end of %q, truncated unless it is all", res.Stdout, res.StdoutTruncated, res.Duration, want)
			}
		})
	}
	t.Run("after its end", func(t *testing.T) {
		p, _ := begin(t)
		p.Detach()
		again := attach(t, p.ID(), &llmsandbox.AttachOutput{Stdin: strings.NewReader("x\n")})
		wantExit(t, wait(t, again), 3)
		short := start(t, sb, "sleep 0.3; echo end; exit 6", nil)
		short.Detach()
		settles(t, func() error {
			if info := listed(t, sb, short.ID()); info == nil || info.Running {
				return errors.New("it still runs")
			}
			return nil
		})
		res := wait(t, attach(t, short.ID(), nil))
		wantExit(t, res, 6)
		wantStdout(t, res, "end\n")
		forgotten(t, sb, short.ID())
		if _, err := other.AttachProcess(ctx, short.ID(), nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("attach to what has been seen to its end: %v, want fs.ErrNotExist", err)
		}
	})
	t.Run("offset", func(t *testing.T) {
		p := start(t, sb, "echo 0123456789; sleep 600", nil)
		settles(t, func() error {
			if info := listed(t, sb, p.ID()); info == nil || info.StdoutEnd != 11 {
				return errors.New("it has written nothing yet")
			}
			return nil
		})
		for offset, want := range map[int64]error{-1: llmsandbox.ErrInvalid, 12: llmsandbox.ErrLost, 1 << 40: llmsandbox.ErrLost} {
			if _, err := other.AttachProcess(ctx, p.ID(), &llmsandbox.AttachOutput{StdoutOffset: offset}); !errors.Is(err, want) {
				t.Errorf("attach from byte %d: %v, want %v", offset, err, want)
			}
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := other.AttachProcess(ended, p.ID(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("attach with a context that has ended: %v, want context.Canceled", err)
		}
		select {
		case <-p.Done():
			res, err := p.Wait(ctx)
			t.Fatalf("after an attachment that failed the process ended: %s: %v, want it running", describe(res), err)
		default:
		}
		p.Detach()
		again := attach(t, p.ID(), &llmsandbox.AttachOutput{StdoutOffset: 11})
		if err := again.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		if res := wait(t, again); res.Status != llmsandbox.StatusKilled || res.Stdout != "" || !res.StdoutTruncated {
			t.Errorf("%s\ntruncated %v; want killed, nothing more on stdout, truncated", describe(res), res.StdoutTruncated)
		}
	})
	t.Run("flowing", func(t *testing.T) {
		p := start(t, sb, "yes | head -c 8000000; sleep 600", nil)
		for range 5 { // its output is read and dropped in the sandbox meanwhile
			again := attach(t, p.ID(), nil)
			again.Detach()
		}
		again := attach(t, p.ID(), nil)
		if err := again.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		_, _ = again.Wait(ctx) // how far it came is of no interest
		if _, err := p.Wait(ctx); !errors.Is(err, llmsandbox.ErrDetached) {
			t.Errorf("the first handle: %v, want ErrDetached", err)
		}
	})
	t.Run("run", func(t *testing.T) {
		type outcome struct {
			res *llmsandbox.Result
			err error
		}
		ran := make(chan outcome, 1)
		out := newReply()
		defer out.close()
		go func() {
			res, err := sb.Run(ctx, "print('begun'); import time; time.sleep(0.5); raise SystemExit(7)", &llmsandbox.RunOptions{Stdout: out})
			ran <- outcome{res, err}
		}()
		out.want(t, "begun")
		infos, err := other.Processes(ctx)
		// The agent may not have heard yet that the end of the one before is known.
		infos = slices.DeleteFunc(infos, func(i llmsandbox.ProcessInfo) bool { return !i.Running })
		if err != nil || len(infos) != 1 {
			t.Fatalf("processes %+v, %v; want the run's", infos, err)
		}
		wantExit(t, wait(t, attach(t, infos[0].ID, nil)), 7)
		if o := <-ran; !errors.Is(o.err, llmsandbox.ErrDetached) || o.res.Status != llmsandbox.StatusLost {
			t.Errorf("%s: %v; want lost and ErrDetached", describe(o.res), o.err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		p := start(t, sb, "sleep 600", nil)
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
		res, err := p.Wait(ctx)
		wantLostOrKilled(t, res, err) // as the agent was quick to say
		if _, err := sb.Start(ctx, []string{"true"}, nil); !errors.Is(err, llmsandbox.ErrClosed) {
			t.Errorf("start in a closed sandbox: %v, want ErrClosed", err)
		}
	})
}

// watch reports what happens to files.
func (s *suite) watch(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	if _, err := sb.Watch(ctx, "missing", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("watch what is not there: %v, want fs.ErrNotExist", err)
	}
	wantExit(t, run(t, sb, "mkdir -p seen/deep", &llmsandbox.RunOptions{Language: "bash"}), 0)
	events, err := sb.Watch(ctx, "seen", true)
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, run(t, sb, "cd seen; echo 1 >deep/a; mv deep/a b; chmod 600 b; rm b; mkdir last", &llmsandbox.RunOptions{Language: "bash"}), 0)
	dir := sb.Workdir() + "/seen"
	want := []llmsandbox.FileEvent{
		{Op: llmsandbox.FileCreated, Path: dir + "/deep/a"}, {Op: llmsandbox.FileWritten, Path: dir + "/deep/a"},
		{Op: llmsandbox.FileRenamed, Path: dir + "/deep/a"}, {Op: llmsandbox.FileCreated, Path: dir + "/b"},
		{Op: llmsandbox.FileChmod, Path: dir + "/b"}, {Op: llmsandbox.FileRemoved, Path: dir + "/b"},
		{Op: llmsandbox.FileCreated, Path: dir + "/last", Dir: true},
	}
	var got []llmsandbox.FileEvent
	var end error
	for e, err := range events {
		if err != nil {
			end = err
			break
		}
		if len(got) == 0 || got[len(got)-1] != e { // two writes are as good as one
			got = append(got, e)
		}
		if e == want[len(want)-1] {
			cancel()
		}
	}
	if !slices.Equal(got, want) || !errors.Is(end, context.Canceled) {
		t.Errorf("events %+v, then %v; want %+v, then context.Canceled", got, end, want)
	}
}
