package agentclient

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// hello prints on both streams and exits with 3.
func hello(p *fakeProcess) {
	p.started(0, 0)
	p.Write(agentproto.ChanOut, []byte("out"))
	p.CloseWrite(agentproto.ChanOut)
	p.Write(agentproto.ChanErr, []byte("error"))
	p.End(&agentproto.Exit{Known: true, Code: 3})
}

// cat copies its input to its output.
func cat(p *fakeProcess) {
	p.started(0, 0)
	buf := make([]byte, 10_000)
	for {
		n, err := p.Read(agentproto.ChanIn, buf)
		if n > 0 {
			p.Write(agentproto.ChanOut, buf[:n])
		}
		if err != nil {
			break
		}
	}
	p.End(&agentproto.Exit{Known: true})
}

// hang prints a word and then waits for its client to go.
func hang(p *fakeProcess) {
	p.started(0, 0)
	p.Write(agentproto.ChanOut, []byte("word"))
	<-p.Done()
}

func agent() *fakeAgent {
	return &fakeAgent{programs: map[string]func(*fakeProcess){"hello": hello, "cat": cat, "hang": hang}}
}

func TestProcess(t *testing.T) {
	c, _ := connect(t, agent())
	p := start(t, c, argv("hello"))
	if p.ID() != 7 || p.PID() != 42 {
		t.Errorf("id %d, pid %d, want ID = 7, PID = 42", p.ID(), p.PID())
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 2 {
				if exit, err := p.Wait(soon(t)); err != nil || !exit.Known || exit.Code != 3 {
					t.Errorf("exit = %v, err = %v, want no error, Known true, Code = 3", exit, err)
				}
			}
		})
	}
	wg.Wait()
	<-p.Done()
	for _, s := range []struct {
		r    io.Reader
		want string
	}{{p.Stdout(), "out"}, {p.Stderr(), "error"}} {
		if b, err := io.ReadAll(s.r); string(b) != s.want || err != nil {
			t.Errorf("%q %v, want b = %v, no error", b, err, s.want)
		}
	}
	if out, err := p.Offsets(); out != 3 || err != 5 {
		t.Errorf("out = %v, err = %v, want out = 3, err = 5", out, err)
	}
}

func TestProcessThatDoesNotStart(t *testing.T) {
	c, _ := connect(t, agent())
	_, err := c.Start(soon(t), argv("nope"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "nope") {
		t.Error(err)
	}
	if failure := (*agentproto.Error)(nil); !errors.As(err, &failure) || failure.Code != agentproto.CodeNotFound {
		t.Error(err)
	}
}

func TestStdin(t *testing.T) {
	c, _ := connect(t, agent())
	p := start(t, c, agentproto.StartRequest{Argv: []string{"cat"}, Stdin: true})
	want := strings.Repeat("0123456789", 200_000)
	go func() {
		io.WriteString(p.Stdin(), want)
		p.Stdin().Close()
	}()
	if b, err := io.ReadAll(p.Stdout()); string(b) != want || err != nil {
		t.Errorf("len(b) = %v, err = %v, want b = %v, no error", len(b), err, want)
	}
	if _, err := p.Wait(soon(t)); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(p.Stdin(), "x"); err != io.ErrClosedPipe {
		t.Error(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Error(err)
	}
}

func TestNoStdin(t *testing.T) {
	c, _ := connect(t, agent())
	p := start(t, c, argv("hello"))
	if _, err := io.WriteString(p.Stdin(), "x"); err != io.ErrClosedPipe {
		t.Error(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Error(err)
	}
}

// A process whose output is not read is the only one that stops.
func TestStalledProcess(t *testing.T) {
	a := agent()
	a.programs["flood"] = func(p *fakeProcess) {
		p.started(0, 0)
		p.Write(agentproto.ChanOut, make([]byte, 3*agentproto.Window))
		p.End(&agentproto.Exit{Known: true})
	}
	c, _ := connect(t, a)
	stalled := start(t, c, argv("flood"))
	for range 20 {
		p := start(t, c, argv("hello"))
		if b, err := io.ReadAll(p.Stdout()); string(b) != "out" || err != nil {
			t.Fatalf("%q %v, want b = \"out\", no error", b, err)
		}
	}
	select {
	case <-stalled.Done():
		t.Error("the process whose output is not read has ended, want it waiting")
	default:
	}
	if n, err := io.Copy(io.Discard, stalled.Stdout()); n != 3*agentproto.Window || err != nil {
		t.Errorf("n = %v, err = %v, want n = %v, no error", n, err, 3*agentproto.Window)
	}
	if _, err := stalled.Wait(soon(t)); err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	c, _ := connect(t, agent())
	p := start(t, c, argv("hang"))
	ctx, cancel := context.WithCancel(t.Context())
	both := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := p.Wait(ctx)
			both <- err
		}()
	}
	cancel()
	for range 2 {
		if err := <-both; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	p.Detach()
	if _, err := p.Wait(soon(t)); err != ErrDetached {
		t.Error(err)
	}
}

func TestLostStream(t *testing.T) {
	c, far := connect(t, agent())
	p := start(t, c, agentproto.StartRequest{Argv: []string{"hang"}, Stdin: true})
	word := make([]byte, 4)
	if _, err := io.ReadFull(p.Stdout(), word); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := p.Wait(context.Background())
		waited <- err
	}()
	far.Close()
	errs := []error{<-waited}
	_, err := p.Wait(soon(t))
	errs = append(errs, err)
	_, err = p.Stdout().Read(word)
	errs = append(errs, err)
	_, err = p.Stdin().Write(word)
	errs = append(errs, err, p.Kill(soon(t)))
	for i, err := range errs {
		if !errors.Is(err, agentproto.ErrStreamLost) {
			t.Errorf("%d: %v, want agentproto.ErrStreamLost", i, err)
		}
	}
	if out, _ := p.Offsets(); out != 4 {
		t.Errorf("out = %v, want out = 4", out)
	}
}

func TestDetachAndAttach(t *testing.T) {
	a := agent()
	collected := make(chan bool, 1)
	a.programs["attached"] = func(p *fakeProcess) {
		if p.attach.OutOffset == 0 {
			p.Fail(agentproto.Errorf(agentproto.CodeLost, "the output before byte 4 is gone"))
			return
		}
		p.started(p.attach.OutOffset, p.attach.ErrOffset)
		p.Write(agentproto.ChanOut, []byte(" and more"))
		p.End(&agentproto.Exit{Known: true, Signal: 9, Reason: agentproto.KilledTimeout})
		<-p.Done()
		collected <- p.Collected()
	}
	c, _ := connect(t, a)
	p := start(t, c, argv("hang"))
	word := make([]byte, 4)
	if _, err := io.ReadFull(p.Stdout(), word); err != nil {
		t.Fatal(err)
	}
	p.Detach()
	if _, err := p.Stdout().Read(word); err != ErrDetached {
		t.Error(err)
	}
	out, _ := p.Offsets()
	again, err := c.Attach(soon(t), agentproto.AttachRequest{ID: p.ID(), OutOffset: out})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(again.Stdout()); string(b) != " and more" || err != nil {
		t.Errorf("%q %v, want b = \" and more\", no error", b, err)
	}
	exit, err := again.Wait(soon(t))
	if err != nil || exit.Signal != 9 || exit.Reason != agentproto.KilledTimeout {
		t.Errorf("exit = %v, err = %v, want no error, Signal = 9, Reason = KilledTimeout", exit, err)
	}
	if out, _ := again.Offsets(); out != 13 {
		t.Errorf("out = %v, want out = 13", out)
	}
	if !<-collected {
		t.Error("not collected: <-collected = false, want true")
	}
	_, err = c.Attach(soon(t), agentproto.AttachRequest{ID: p.ID()})
	if failure := (*agentproto.Error)(nil); !errors.As(err, &failure) || failure.Code != agentproto.CodeLost {
		t.Error(err)
	}
}

// A start whose context ends is killed as soon as there is something to kill.
func TestStartCancelled(t *testing.T) {
	a := agent()
	called, proceed := make(chan struct{}), make(chan struct{})
	a.programs["slow"] = func(p *fakeProcess) {
		close(called)
		<-proceed
		p.started(0, 0)
		<-p.Done()
	}
	c, _ := connect(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	if _, err := c.Start(ctx, argv("slow")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(proceed)
	if id := <-a.killed; id != 7 {
		t.Errorf("killed %d, want 7", id)
	}
}

// An agent that sends nonsense instead of an exit is not believed.
func TestNoExit(t *testing.T) {
	a := agent()
	a.programs["liar"] = func(p *fakeProcess) {
		p.started(0, 0)
		p.Send(&agentproto.Exit{Known: true})
		<-p.Done()
	}
	c, _ := connect(t, a)
	exit, err := start(t, c, argv("liar")).Wait(soon(t))
	if broken := (*agentproto.ProtocolError)(nil); !errors.As(err, &broken) || exit.Known {
		t.Errorf("exit = %v, err = %v, want an error of type %T, Known false", exit, err, broken)
	}
}
