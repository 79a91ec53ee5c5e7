//go:build linux

package guest_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// zygoteBegin is the beginning of zygotes in Python, fork what one does that means well.
const (
	zygoteBegin = `
import os, socket, sys, time
s = socket.socket(fileno=3)
os.write(4, b"ready\n")
def receive():
    message, fds, flags, address = socket.recv_fds(s, 1, 16)
    return fds
def fork(fds, program):
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        pid = os.fork()
        if pid == 0:
            s.close()
            for i, fd in enumerate(fds): os.dup2(fd, i)
            for fd in fds + [r, w]: os.close(fd)
            program()
            os._exit(0)
        os.write(w, b"%d" % pid)
        os._exit(0)
    os.close(w)
    os.waitpid(child, 0)
    pid = os.read(r, 16)
    for fd in fds + [r]: os.close(fd)
    return pid
`
	zygoteServes = zygoteBegin + `
def program():
    line = os.read(3, 100).decode()
    exec(line)
while True:
    s.send(fork(receive(), program))
`
)

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Fatalf("%v: the test needs Python", err)
	}
	return path
}

// startZygote starts one and waits until it is ready.
func startZygote(t *testing.T, a *testAgent, code string) *agentclient.Process {
	t.Helper()
	p, err := a.client.Start(t.Context(), agentproto.StartRequest{Argv: []string{python(t), "-c", code}, Control: true, Forks: true})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(p.Control()).ReadString('\n'); line != "ready\n" {
		t.Fatalf("zygote: %q, %v, want \"ready\\n\"", line, err)
	}
	return p
}

func forked(a *testAgent, ctx context.Context, zygote *agentclient.Process, o agentproto.StartRequest) (*agentclient.Process, error) {
	o.From, o.Control = zygote.ID(), true
	return a.client.Start(ctx, o)
}

// TestZygote: what is forked is a process as any other, and the next one comes when nothing of it is left.
func TestZygote(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		z := startZygote(t, a, zygoteServes)
		for _, c := range []struct {
			name, code string
			opts       agentproto.StartRequest
			out        string
			want       func(agentproto.Exit) bool
		}{
			{"output and exit code", "print('out', flush=True); os.write(4, b'control'); os._exit(7)", agentproto.StartRequest{}, "out\n",
				func(e agentproto.Exit) bool { return e.Code == 7 }},
			{"a signal", "os.kill(os.getpid(), 9)", agentproto.StartRequest{}, "", func(e agentproto.Exit) bool { return e.Signal == uint32(unix.SIGKILL) }},
			{"a child that it leaves", "os.fork() or time.sleep(1000)", agentproto.StartRequest{}, "", func(e agentproto.Exit) bool { return e.Code == 0 && e.Signal == 0 }},
			{"a daemon that it leaves", "os.fork() or (os.setsid(), os.fork() or time.sleep(1000)); time.sleep(.1)", agentproto.StartRequest{}, "",
				func(e agentproto.Exit) bool { return e.Code == 0 && e.Signal == 0 }},
			{"a timeout", "time.sleep(1000)", agentproto.StartRequest{TimeoutMillis: 100}, "", func(e agentproto.Exit) bool { return e.Reason == agentproto.KilledTimeout }},
			{"too much output", "while True: os.write(1, b'x' * 1000)", agentproto.StartRequest{OutputLimit: 10}, "xxxxxxxxxx",
				func(e agentproto.Exit) bool { return e.Reason == agentproto.KilledOutputLimit }},
			{"CPU time", "while time.process_time() < .2: pass", agentproto.StartRequest{}, "", func(e agentproto.Exit) bool { return e.CPUMicros >= 200_000 }},
			{"as before", "print(time.process_time() < .1, flush=True)", agentproto.StartRequest{}, "True\n", func(e agentproto.Exit) bool { return e.CPUMicros < 200_000 && e.Code == 0 }},
		} {
			p, err := forked(a, t.Context(), z, c.opts)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if c.opts.TimeoutMillis == 0 {
				if _, err := forked(a, t.Context(), z, c.opts); agentlink.Code(err) != agentproto.CodeBusy {
					t.Errorf("%s: another one: %v, want CodeBusy", c.name, err)
				}
			}
			if _, err := io.WriteString(p.Requests(), c.code); err != nil && c.opts.TimeoutMillis == 0 {
				t.Fatal(err)
			}
			r, err := collect(t.Context(), p)
			if err != nil || !r.exit.Known || !c.want(r.exit) || r.out != c.out {
				t.Errorf("%s: %+v, %v, want output %q", c.name, r, err, c.out)
			}
		}
		p, err := forked(a, t.Context(), z, agentproto.StartRequest{Stdin: true, Feed: []byte("print(sys.stdin.read(), os.read(3, 1), flush=True)")})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			io.WriteString(p.Stdin(), "its input")
			p.Stdin().Close()
		}()
		if r, err := collect(t.Context(), p); err != nil || r.out != "its input b''\n" {
			t.Errorf("one with input: %+v, %v, want the input, and the end of descriptor 3", r, err)
		}
		list, err := a.client.Processes(t.Context())
		for _, p := range list {
			if p.Running != (p.ID == z.ID()) {
				t.Errorf("%+v, %v, want the zygote alone to run", list, err)
			}
			if p.ID == z.ID() && p.CPUMicros+p.RSS != 0 {
				t.Errorf("%+v: what the zygote uses is looked at, which takes time", p)
			}
		}
	})
}

// TestZygoteEnds: what it has forked goes on, and nothing is forked any more.
func TestZygoteEnds(t *testing.T) {
	a := startAgent(t, modes()[0])
	z := startZygote(t, a, zygoteServes)
	p, err := forked(a, t.Context(), z, agentproto.StartRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(int(z.PID()), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for { // until its end is known
		list, err := a.client.Processes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 && list[0].ID == z.ID() && list[0].Running {
			time.Sleep(time.Millisecond)
			continue
		}
		break
	}
	if _, err := forked(a, t.Context(), z, agentproto.StartRequest{}); agentlink.Code(err) != agentproto.CodeNotFound {
		t.Errorf("a fork of one that has ended: %v, want CodeNotFound", err)
	}
	if _, err := io.WriteString(p.Requests(), "os.fork() or time.sleep(1000); os._exit(3)"); err != nil {
		t.Fatal(err)
	}
	if r, err := collect(t.Context(), p); err != nil || r.exit.Code != 3 {
		t.Errorf("%+v, %v, want Code = 3", r, err)
	}
	// Its subreaper is gone with the last of them.
	if exit, err := z.Wait(t.Context()); err != nil || exit.Signal != uint32(unix.SIGKILL) {
		t.Errorf("%+v, %v, want Signal = SIGKILL", exit, err)
	}
}

// TestZygoteIsKilled: with it goes what it has forked, by request.
func TestZygoteIsKilled(t *testing.T) {
	a := startAgent(t, modes()[0])
	z := startZygote(t, a, zygoteServes)
	p, err := forked(a, t.Context(), z, agentproto.StartRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := collect(t.Context(), p); err != nil || r.exit.Signal != uint32(unix.SIGKILL) {
		t.Errorf("%+v, %v, want Signal = SIGKILL", r, err)
	}
}

// TestHostileZygote: one that code has got into its hands forks nothing, and is ended.
func TestHostileZygote(t *testing.T) {
	for name, code := range map[string]string{
		"says nothing":        "receive(); time.sleep(1000)",
		"ends":                "receive()",
		"says text":           "receive(); s.send(b'no number'); time.sleep(1000)",
		"says too much":       "receive(); s.send(b'1' * 100); time.sleep(1000)",
		"names the first":     "receive(); s.send(b'1'); time.sleep(1000)",
		"names itself":        "receive(); s.send(b'%d' % os.getpid()); time.sleep(1000)",
		"names its parent":    "receive(); s.send(b'%d' % os.getppid()); time.sleep(1000)",
		"names nobody":        "receive(); s.send(b'4000000'); time.sleep(1000)",
		"names its own child": "receive(); s.send(b'%d' % (os.fork() or time.sleep(1000))); time.sleep(1000)",
		"sends descriptors":   "receive(); socket.send_fds(s, [b'1'], [0, 1, 2]); time.sleep(1000)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, modes()[0])
			z := startZygote(t, a, zygoteBegin+code)
			if p, err := forked(a, t.Context(), z, agentproto.StartRequest{}); agentlink.Code(err) != agentproto.CodeNotFound {
				t.Errorf("forked %v, %v, want CodeNotFound", p, err)
			}
			if _, err := z.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	a := startAgent(t, modes()[0])
	for name, code := range map[string]string{"cannot": "while True: receive(); s.send(b'0')", "does not, and is asked again": "while receive(): s.send(b'0')"} {
		z := startZygote(t, a, zygoteBegin+code)
		for range 3 {
			if _, err := forked(a, t.Context(), z, agentproto.StartRequest{}); agentlink.Code(err) != agentproto.CodeBusy {
				t.Errorf("one that %s: %v, want CodeBusy", name, err)
			}
		}
	}
}

// TestForkRequests: what cannot be forked is said.
func TestForkRequests(t *testing.T) {
	a := startAgent(t, modes()[0])
	z := startZygote(t, a, zygoteServes)
	other, err := a.client.Start(t.Context(), sh("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		req  agentproto.StartRequest
		code agentproto.ErrorCode
	}{
		{agentproto.StartRequest{From: 1 << 40, Control: true}, agentproto.CodeNotFound},
		{agentproto.StartRequest{From: other.ID(), Control: true}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID()}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, Argv: []string{"x"}}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, Env: []string{"A=1"}}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, User: "0"}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, KeepChildren: true}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, PTY: &agentproto.WinSize{}}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, Stdin: true}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{Argv: []string{"true"}, Feed: []byte("x")}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{From: z.ID(), Control: true, Forks: true}, agentproto.CodeBadRequest},
		{agentproto.StartRequest{Argv: []string{"true"}, Forks: true}, agentproto.CodeBadRequest},
	} {
		if _, err := a.client.Start(t.Context(), c.req); agentlink.Code(err) != c.code {
			t.Errorf("%+v: %v, want %v", c.req, err, c.code)
		}
	}
	if _, err := forked(a, t.Context(), z, agentproto.StartRequest{}); err != nil && !strings.Contains(err.Error(), "forked") {
		t.Errorf("a fork after those: %v, want no error", err)
	}
}
