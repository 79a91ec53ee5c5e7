//go:build linux

package guest_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A deaf stream stops reading when it is asked to: its owner lives, and does not read.
type deaf struct {
	net.Conn
	stopped, over chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	select {
	case <-d.stopped:
		<-d.over
		return 0, net.ErrClosed
	default:
		return d.Conn.Read(p)
	}
}

// TestDeafClient: a client that does not read its stream keeps neither others from the
// agent nor a client from the process it was attached to.
func TestDeafClient(t *testing.T) {
	a := startAgent(t, modes()[0])
	conn, err := net.Dial("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream := &deaf{Conn: conn, stopped: make(chan struct{}), over: make(chan struct{})}
	first, err := agentclient.Connect(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	defer close(stream.over)
	p, err := first.Start(t.Context(), sh("sleep 0.2; yes"))
	if err != nil {
		t.Fatal(err)
	}
	close(stream.stopped)
	// The agent's buffer is full: more than the stream holds is on the way.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for enough := false; !enough && ctx.Err() == nil; {
		list, err := a.client.Processes(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v, want no error, len(list) = 1", list, err)
		}
		enough = list[0].OutEnd-list[0].OutStart >= agentproto.Window+512<<10
		time.Sleep(5 * time.Millisecond)
	}
	if r := a.run(sh("echo quick")); r.out != "quick\n" {
		t.Errorf("%+v, want out = \"quick\\n\"", r)
	}
	again, err := a.client.Attach(ctx, agentproto.AttachRequest{ID: p.ID()})
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(again.Stdout(), head); err != nil || string(head) != "y\ny\n" {
		t.Errorf("%q, %v, want no error, head = \"y\\ny\\n\"", head, err)
	}
	if err := a.client.Kill(ctx, p.ID()); err != nil {
		t.Error(err)
	}
}

// TestStdoutGone: an agent whose stdin lives on when no client reads its stdout any more
// goes on serving others.
func TestStdoutGone(t *testing.T) {
	a := startAgent(t, modes()[0])
	other := a.dial()
	p, err := a.client.Start(t.Context(), sh("sleep 0.2; yes"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Shutdown(a.stdio, unix.SHUT_RD); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again, err := other.Attach(ctx, agentproto.AttachRequest{ID: p.ID()})
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(again.Stdout(), head); err != nil || string(head) != "y\ny\n" {
		t.Errorf("%q, %v, want no error, head = \"y\\ny\\n\"", head, err)
	}
	if err := other.Kill(ctx, p.ID()); err != nil {
		t.Error(err)
	}
}

// TestScoreOfCode: the kernel is set to kill code rather than the agent, whatever the
// agent may do.
func TestScoreOfCode(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		// A program is scored before its start is reported, but where the agent has
		// no rights, not before it runs.
		req := sh("read line; cat /proc/self/oom_score_adj")
		req.Stdin = true
		p, err := a.client.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
			t.Fatal(err)
		}
		if r, err := collect(t.Context(), p); err != nil || r.out != "500\n" {
			t.Errorf("%+v, %v, want no error, out = \"500\\n\"", r, err)
		}
	})
}
