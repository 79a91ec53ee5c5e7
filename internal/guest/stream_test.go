//go:build linux

package guest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

func TestFlood(t *testing.T) {
	a := startAgent(t, modes()[0])
	p, err := a.client.Start(t.Context(), sh("seq 1000000; seq 1000000 >&2"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := collect(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"stdout": r.out, "stderr": r.err} {
		if strings.Count(out, "\n") != 1_000_000 || !strings.HasSuffix(out, "\n999999\n1000000\n") {
			t.Errorf("%s: %d lines, want strings.Count(out, \"\\n\") = 1_000_000, out ending in \"\\n999999\\n1000000\\n\"", name, strings.Count(out, "\n"))
		}
	}
	if r.exit.OutTotal != uint64(len(r.out)) || r.exit.ErrTotal != uint64(len(r.err)) {
		t.Errorf("%+v, want OutTotal = %v, ErrTotal = %v", r.exit, uint64(len(r.out)), uint64(len(r.err)))
	}
}

func TestSlowReaderHoldsTheWriter(t *testing.T) {
	a := startAgent(t, modes()[0])
	p, err := a.client.Start(t.Context(), sh("head -c 20000000 /dev/zero; echo done >&2"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	list, err := a.client.Processes(t.Context())
	if err != nil || len(list) != 1 || !list[0].Running || list[0].OutEnd > 4<<20 {
		t.Fatalf("%+v, %v, want no error, len(list) = 1, Running true, OutEnd <= 4 MiB", list, err)
	}
	if list[0].RSS == 0 || !list[0].Attached || list[0].Argv[0] != "sh" {
		t.Errorf("%+v, want RSS != 0, Attached true, list[0].Argv[0] = \"sh\"", list[0])
	}
	// Others are not held up.
	if r := a.run(sh("echo quick")); r.out != "quick\n" {
		t.Errorf("%+v, want out = \"quick\\n\"", r)
	}
	r, err := collect(t.Context(), p)
	if err != nil || len(r.out) != 20_000_000 || r.err != "done\n" {
		t.Errorf("%d %q %v, want no error, len(r.out) = 20_000_000, err = \"done\\n\"", len(r.out), r.err, err)
	}
}

func TestStdin(t *testing.T) {
	a := startAgent(t, modes()[0])
	data := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	req := sh("cat")
	req.Stdin = true
	p, err := a.client.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Stdin().Write(data)
		p.Stdin().Close()
	}()
	if r, err := collect(t.Context(), p); err != nil || r.out != string(data) {
		t.Errorf("%d, %v, want no error, out = %q", len(r.out), err, string(data))
	}
	// A program that does not read its input ends nevertheless.
	req = sh("exec <&-; echo bye")
	req.Stdin = true
	if p, err = a.client.Start(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	go p.Stdin().Write(data)
	if r, err := collect(t.Context(), p); err != nil || r.out != "bye\n" || !r.exit.Known || r.exit.Code != 0 {
		t.Errorf("%+v, %v, want no error, out = \"bye\\n\", Known true, Code = 0", r, err)
	}
}

func TestMerge(t *testing.T) {
	a := startAgent(t, modes()[0])
	req := sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done")
	req.Merge = true
	if r := a.run(req); r.out != "o1\ne1\no2\ne2\no3\ne3\n" || r.err != "" {
		t.Errorf("%+v, want out = \"o1\\ne1\\no2\\ne2\\no3\\ne3\\n\", err empty", r)
	}
}

func TestPTY(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		req := sh("tty >/dev/null && echo terminal; stty size; read x; stty size; echo got $x; cat")
		req.PTY = &agentproto.WinSize{Rows: 30, Cols: 90}
		p, err := a.client.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 4096)
		var seen string
		for !strings.Contains(seen, "30 90") {
			n, err := p.Stdout().Read(buf)
			if err != nil {
				t.Fatalf("%q: %v", seen, err)
			}
			seen += string(buf[:n])
		}
		if err := p.Resize(t.Context(), agentproto.WinSize{Rows: 40, Cols: 100}); err != nil {
			t.Fatal(err)
		}
		p.Stdin().Write([]byte("hi\n"))
		p.Stdin().Close()
		r, err := collect(t.Context(), p)
		seen += r.out
		for _, want := range []string{"terminal", "40 100", "got hi"} {
			if !strings.Contains(seen, want) {
				t.Errorf("no %q in %q", want, seen)
			}
		}
		if err != nil || r.exit.Code != 0 || r.exit.Signal != 0 {
			t.Errorf("%+v, %v, want no error, Code = 0, Signal = 0", r.exit, err)
		}
	})
}

// A program that has closed its terminal goes on, and may open it again.
func TestPTYClosed(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		for script, want := range map[string]string{
			"echo before; exec <&- >&- 2>&-; sleep 0.2; exec >/dev/tty; echo after; exit 7":    "before\r\nafter\r\n",
			"echo before; exec <&- >&- 2>&-; sleep 0.2; exit 7":                                "before\r\n",
			"echo before; exec sh -c 'exec <&- >&- 2>&-; sleep 0.2; echo x >/dev/tty; exit 7'": "before\r\nx\r\n",
		} {
			req := sh(script)
			req.PTY = &agentproto.WinSize{Rows: 30, Cols: 90}
			if r := a.run(req); r.out != want || r.exit.Code != 7 || r.exit.Signal != 0 {
				t.Errorf("%s: %q, %+v, want %q, Code = 7", script, r.out, r.exit, want)
			}
		}
	})
}

func TestOutputLimit(t *testing.T) {
	a := startAgent(t, modes()[0])
	for _, c := range []struct {
		script string
		reason agentproto.KillReason
		total  int
	}{
		{"head -c 99999 /dev/zero", agentproto.NotKilled, 99999},
		{"head -c 100000 /dev/zero", agentproto.NotKilled, 100000},
		{"head -c 100001 /dev/zero", agentproto.KilledOutputLimit, 100000},
		{"yes", agentproto.KilledOutputLimit, 100000},
		{"yes & yes >&2", agentproto.KilledOutputLimit, 100000},
	} {
		req := sh(c.script)
		req.OutputLimit = 100000
		r := a.run(req)
		if n := len(r.out) + len(r.err); n != c.total || r.exit.Reason != c.reason || r.exit.OutTotal+r.exit.ErrTotal != uint64(c.total) ||
			(r.exit.OutCut || r.exit.ErrCut) != (c.reason == agentproto.KilledOutputLimit) {
			t.Errorf("%s: %d bytes, %+v, want n = %d, Reason = %v, ErrTotal = %v, r.exit.OutCut || r.exit.ErrCut = %v", c.script, n, r.exit, c.total, c.reason, uint64(c.total), c.reason == agentproto.KilledOutputLimit)
		}
	}
}

// TestResume cuts the stream in the middle of the output again and again: no byte
// may be lost or come twice.
func TestResume(t *testing.T) {
	a := startAgent(t, modes()[0])
	client := a.dial()
	p, err := client.Start(t.Context(), sh("seq 300000; exit 9"))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for cut := 0; ; cut++ {
		n, err := io.CopyN(&all, p.Stdout(), int64(100_000+cut*7919))
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(n, err)
		}
		id := p.ID()
		out, errOff := p.Offsets()
		if out != uint64(all.Len()) {
			t.Fatalf("offset %d after %d bytes, want out = uint64(all.Len())", out, all.Len())
		}
		if cut%2 == 0 {
			client.Close()
		} else {
			p.Detach()
		}
		client = a.dial()
		if p, err = client.Attach(t.Context(), agentproto.AttachRequest{ID: id, OutOffset: out, ErrOffset: errOff}); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	for i := 1; i <= 300_000; i++ {
		fmt.Fprintln(&want, i)
	}
	if !bytes.Equal(all.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes, want %d", all.Len(), want.Len())
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 9 {
		t.Errorf("%+v, %v, want no error, Code = 9", exit, err)
	}
}

// TestCollectLater: what ends while no client is attached can be collected later, once.
func TestCollectLater(t *testing.T) {
	a := startAgent(t, modes()[0])
	first := a.dial()
	p, err := first.Start(t.Context(), sh("sleep 0.1; echo late; exit 6"))
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	time.Sleep(400 * time.Millisecond)
	list, err := a.client.Processes(t.Context())
	if err != nil || len(list) != 1 || list[0].Running || list[0].Attached {
		t.Fatalf("%+v %v, want no error, len(list) = 1, Running false, Attached false", list, err)
	}
	again, err := a.client.Attach(t.Context(), agentproto.AttachRequest{ID: p.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := collect(t.Context(), again); err != nil || r.out != "late\n" || r.exit.Code != 6 {
		t.Errorf("%+v %v, want no error, out = \"late\\n\", Code = 6", r, err)
	}
	time.Sleep(50 * time.Millisecond)
	if list, err := a.client.Processes(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v %v, want no error, no list", list, err)
	}
}

func TestDetachedTimeout(t *testing.T) {
	a := startAgent(t, modes()[0])
	mark := fmt.Sprintf("5%d", time.Now().UnixNano()%1e9)
	client := a.dial()
	req := sh("setsid sleep " + mark + " & sleep " + mark)
	req.TimeoutMillis = 300
	if _, err := client.Start(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	client.Close()
	time.Sleep(600 * time.Millisecond)
	if left := alive(mark); len(left) > 0 {
		t.Errorf("left: %q, want none", left)
	}
}

func TestParallelStarts(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				r, err := runOn(context.Background(), a.client, sh(fmt.Sprintf("echo %d; exit %d", i, i)))
				if err != nil || r.out != fmt.Sprintf("%d\n", i) || r.exit.Code != uint32(i) {
					t.Errorf("%d: %+v, %v, want no error, r.out = %q, Code = %v", i, r, err, fmt.Sprintf("%d\n", i), uint32(i))
				}
			})
		}
		all.Wait()
	})
}
