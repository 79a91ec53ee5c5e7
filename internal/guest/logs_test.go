//go:build linux

package guest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// logs is what a call of Logs got.
type logs struct {
	out, err string
	lost     uint64
	failed   error
}

// readLogs reads logs to their end. each, if not nil, is called with all that there is so far.
func readLogs(ctx context.Context, c *agentclient.Client, req agentproto.LogsRequest, each func(logs)) (l logs) {
	ends := map[bool]uint64{false: req.OutOffset, true: req.ErrOffset}
	l.failed = c.Logs(ctx, req, func(part agentproto.Output) error {
		l.lost += part.Offset - ends[part.Err]
		ends[part.Err] = part.Offset + uint64(len(part.Data))
		if part.Err {
			l.err += string(part.Data)
		} else {
			l.out += string(part.Data)
		}
		if each != nil {
			each(l)
		}
		return nil
	})
	return l
}

// TestLogs reads a process's output beside the client that it belongs to.
func TestLogs(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		other := a.client // not every mode has a further stream
		req := sh("echo begun; echo oops >&2; read x; seq 5000; echo bye >&2; exit 3")
		req.Stdin = true
		p, err := a.client.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		begun, followed := make(chan struct{}), make(chan logs, 1)
		go func() {
			open := begun
			followed <- readLogs(t.Context(), other, agentproto.LogsRequest{ID: p.ID(), Follow: true}, func(l logs) {
				if open != nil && l.out == "begun\n" && l.err == "oops\n" {
					close(open)
					open = nil
				}
			})
		}()
		<-begun
		for _, c := range []struct {
			req  agentproto.LogsRequest
			want logs
			code agentproto.ErrorCode
		}{
			{req: agentproto.LogsRequest{}, want: logs{out: "begun\n", err: "oops\n"}},
			{req: agentproto.LogsRequest{OutOffset: 2, ErrOffset: 5}, want: logs{out: "gun\n"}},
			{req: agentproto.LogsRequest{OutOffset: 6, ErrOffset: 5}},
			{req: agentproto.LogsRequest{OutOffset: 7}, code: agentproto.CodeBadRequest},
			{req: agentproto.LogsRequest{ErrOffset: agentproto.FirstKept, Follow: true}, code: agentproto.CodeBadRequest},
			{req: agentproto.LogsRequest{ID: 1 << 40}, code: agentproto.CodeNotFound},
		} {
			if c.req.ID == 0 {
				c.req.ID = p.ID()
			}
			got := readLogs(t.Context(), other, c.req, nil)
			var refused *agentproto.Error
			if errors.As(got.failed, &refused) != (c.code != 0) || refused != nil && refused.Code != c.code {
				t.Errorf("%+v: %v, want code %v", c.req, got.failed, c.code)
			}
			if got.failed = nil; got != c.want {
				t.Errorf("%+v: %+v, want %+v", c.req, got, c.want)
			}
		}
		if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
			t.Fatal(err)
		}
		r, err := collect(t.Context(), p)
		if err != nil || r.exit.Code != 3 || len(r.out) != 23899 || r.err != "oops\nbye\n" {
			t.Errorf("%d bytes, %q, %+v, %v, want 23899, \"oops\\nbye\\n\", code 3, no error", len(r.out), r.err, r.exit, err)
		}
		if got := <-followed; got != (logs{out: r.out, err: r.err}) {
			t.Errorf("followed: %d bytes, %q, %d lost, %v, want all and no error", len(got.out), got.err, got.lost, got.failed)
		}
	})
}

// TestLogsOfOneStream: a process may have no stderr of its own.
func TestLogsOfOneStream(t *testing.T) {
	a := startAgent(t, modes()[0])
	for name, req := range map[string]agentproto.StartRequest{
		"merged":   {Merge: true},
		"terminal": {PTY: &agentproto.WinSize{Rows: 10, Cols: 10}},
	} {
		script := sh("echo out; echo err >&2")
		req.Argv, req.Env = script.Argv, script.Env
		first := a.dial()
		p, err := first.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		got := readLogs(t.Context(), a.client, agentproto.LogsRequest{ID: p.ID(), Follow: true}, nil)
		got.out = strings.ReplaceAll(got.out, "\r", "")
		if got != (logs{out: "out\nerr\n"}) {
			t.Errorf("%s: %+v, want out = \"out\\nerr\\n\"", name, got)
		}
		first.Close()
	}
}

// TestLogsThatNobodyReads hold up neither the process nor the agent's memory, and go on with
// what is kept.
func TestLogsThatNobodyReads(t *testing.T) {
	a := startAgent(t, modes()[0])
	const size = 20_000_000
	req := sh("read x; head -c 20000000 /dev/zero; seq 9000")
	req.Stdin = true
	p, err := a.client.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	other := a.dial()
	reading, goOn, followed := make(chan struct{}), make(chan struct{}), make(chan logs, 1)
	go func() {
		open := reading
		followed <- readLogs(t.Context(), other, agentproto.LogsRequest{ID: p.ID(), Follow: true}, func(logs) {
			if open != nil {
				close(open)
				open = nil
				<-goOn
			}
		})
	}()
	if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
		t.Fatal(err)
	}
	r, err := collect(t.Context(), p) // which ends although the other one does not read
	if err != nil || len(r.out) <= size {
		t.Fatalf("%d bytes, %v, want more than %d, no error", len(r.out), err, size)
	}
	<-reading
	close(goOn)
	got := <-followed
	most := agentproto.Window + 2*agentproto.MaxLogs + agentproto.MaxKept
	if len(got.out) > most || len(got.out) < agentproto.KeptLogs || got.lost+uint64(len(got.out)) != uint64(len(r.out)) || got.failed != nil {
		t.Errorf("%d bytes and %d lost of %d, %v, want at most %d, at least %d, all accounted for, no error",
			len(got.out), got.lost, len(r.out), got.failed, most, agentproto.KeptLogs)
	}
	if last := r.out[len(r.out)-agentproto.KeptLogs+1:]; !strings.HasSuffix(got.out, last) {
		t.Errorf("the last bytes differ: %.300q, want %.300q", got.out[max(0, len(got.out)-len(last)):], last)
	}
}

// TestLogsOfAFlood end, although the process writes all the time, and so do those whose
// context ends.
func TestLogsOfAFlood(t *testing.T) {
	a := startAgent(t, modes()[0])
	p, err := a.client.Start(t.Context(), sh("yes"))
	if err != nil {
		t.Fatal(err)
	}
	flowing := make(chan struct{})
	go func() {
		_, _ = io.CopyN(io.Discard, p.Stdout(), 2*agentproto.MaxKept)
		close(flowing)
		_, _ = io.Copy(io.Discard, p.Stdout())
	}()
	<-flowing
	got := readLogs(t.Context(), a.client, agentproto.LogsRequest{ID: p.ID()}, nil)
	if got.failed != nil || len(got.out) < agentproto.KeptLogs || got.lost == 0 || strings.Trim(got.out, "y\n") != "" {
		t.Errorf("%d bytes, %d lost, %v, want %d or more, some lost, no error", len(got.out), got.lost, got.failed, agentproto.KeptLogs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got = readLogs(ctx, a.client, agentproto.LogsRequest{ID: p.ID(), Follow: true}, func(logs) { cancel() })
	if !errors.Is(got.failed, context.Canceled) {
		t.Errorf("after its context has ended: %v, want context.Canceled", got.failed)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLogsOfADetachedProcess has what its client never got, and what that client left.
func TestLogsOfADetachedProcess(t *testing.T) {
	a := startAgent(t, modes()[0])
	first := a.dial()
	p, err := first.Start(t.Context(), sh("seq 100; exit 4"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, p.Stdout(), 10); err != nil {
		t.Fatal(err)
	}
	p.Acknowledge()
	first.Close()
	want := readLogs(t.Context(), a.client, agentproto.LogsRequest{ID: p.ID(), Follow: true}, nil)
	if want.failed != nil || want.lost != 0 || !bytes.HasSuffix([]byte(want.out), []byte("\n99\n100\n")) || len(want.out) != 292 {
		t.Errorf("%+v, want 292 bytes, none lost, no error", want)
	}
	again, err := a.client.Attach(t.Context(), agentproto.AttachRequest{ID: p.ID(), OutOffset: 10})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := collect(t.Context(), again); err != nil || r.out != want.out[10:] || r.exit.Code != 4 {
		t.Errorf("attached: %q, %+v, %v, want %q, code 4", r.out, r.exit, err, want.out[10:])
	}
}
