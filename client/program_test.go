package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/security"
)

// TestProcess: a program that goes on is what the library's is, with its input, output, signals and end.
func TestProcess(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	ctx := testContext(t)
	in, feed := io.Pipe()
	defer feed.Close()
	out, echo := io.Pipe()
	defer out.Close()
	var stderr bytes.Buffer
	p, err := sb.StartRun(ctx, "echo up >&2; while read -r line; do echo \"got $line\"; done; exit 3", &llmsandbox.RunOptions{Stdin: in, Stdout: echo, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"a", "é"} {
		fmt.Fprintln(feed, line)
		got := make([]byte, len("got \n")+len(line))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != "got "+line+"\n" {
			t.Fatalf("read %q, %v, want what was typed", got, err)
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	if res, err := p.Wait(ended); res != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v, want the end of the context", res, err)
	}
	feed.Close()
	res, err := p.Wait(ctx)
	if err != nil || res.Status != llmsandbox.StatusError || res.ExitCode != 3 || res.Stdout != "got a\ngot é\n" || stderr.String() != "up\n" || res.Language != "bash" {
		t.Errorf("got %+v, %v, and %q, want exit code 3", res, err, &stderr)
	}
	var late bytes.Buffer
	again, err := sb.AttachProcess(ctx, p.ID(), &llmsandbox.AttachOutput{Stdout: &late, StdoutOffset: 6})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := again.Wait(ctx); err != nil || res.ExitCode != 3 || late.String() != "got é\n" || again.ID() != p.ID() {
		t.Errorf("got %+v, %v, and %q, want what was written behind the offset", res, err, &late)
	}
	if err := errors.Join(p.Signal(ctx, "TERM"), p.Kill(ctx)); err != nil {
		t.Errorf("got %v, want no error after the end", err)
	}
	if _, err := sb.AttachProcess(ctx, p.ID()+100, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
	if _, err := sb.AttachProcess(ctx, p.ID(), &llmsandbox.AttachOutput{Stdin: in}); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

// TestProcessGoesOn: a program goes on without who has started it, until it is ended.
func TestProcessGoesOn(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	ctx := testContext(t)
	p, err := sb.Start(ctx, []string{"sleep", "1000"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Detach()
	if res, err := p.Wait(ctx); !errors.Is(err, llmsandbox.ErrDetached) || res.Status != llmsandbox.StatusLost {
		t.Errorf("got %+v, %v, want ErrDetached", res, err)
	}
	again, err := sb.AttachProcess(ctx, p.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Signal(ctx, "NONE"); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	if err := again.Signal(ctx, "SIGTERM"); err != nil {
		t.Error(err)
	}
	if res, err := again.Wait(ctx); err != nil || res.Signal != "SIGTERM" {
		t.Errorf("got %+v, %v, want SIGTERM", res, err)
	}
	if p, err = sb.Start(ctx, []string{"sleep", "1000"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(ctx); err != nil {
		t.Error(err)
	}
	if res, err := p.Wait(ctx); err != nil || res.Signal != "SIGKILL" {
		t.Errorf("got %+v, %v, want SIGKILL", res, err)
	}
	for what, start := range map[string]func() error{
		"no argv":    func() error { _, err := sb.Start(ctx, nil, nil); return err },
		"no code":    func() error { _, err := sb.StartRun(ctx, "", nil); return err },
		"no program": func() error { _, err := sb.Start(ctx, []string{"none-such"}, nil); return err },
		"an option": func() error {
			_, err := sb.Start(ctx, []string{"true"}, &llmsandbox.ExecOptions{User: "root"})
			return err
		},
		"a directory": func() error { _, err := sb.StartRun(ctx, "true", &llmsandbox.RunOptions{Dir: "none"}); return err },
	} {
		if err := start(); err == nil {
			t.Errorf("%s: no error, want one", what)
		}
	}
	if p, err = sb.Start(ctx, []string{"sleep", "1000"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := sb.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(ctx); err == nil || res.Status != llmsandbox.StatusLost {
		t.Errorf("got %+v, %v, want a program that was lost with its sandbox", res, err)
	}
}

// TestProcessRefused: code that a policy refuses has ended at once.
func TestProcessRefused(t *testing.T) {
	preset, err := security.Preset("minimal")
	if err != nil {
		t.Fatal(err)
	}
	checker, err := security.Compile(preset)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, serve(t, httpapi.Config{Sandbox: llmsandbox.Options{Policy: llmsandbox.Policy{Checker: checker}}}), key, client.Options{})
	sb := open(t, c, llmsandbox.Options{Language: "python"})
	p, err := sb.StartRun(testContext(t), "import os; os.system('x')", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(testContext(t)); err != nil || res.Status != llmsandbox.StatusRefused || len(res.Findings) == 0 || p.ID() != 0 {
		t.Errorf("got %+v, %v, want code that was refused", res, err)
	}
	p.Detach()
	if err := p.Kill(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestProcessComesBack: a stream that breaks is taken up behind the last event that came, and what is missing is told.
func TestProcessComesBack(t *testing.T) {
	var asked atomic.Int32
	streams := []string{
		"id: 1-0\nevent: stdout\ndata: \"a\"\n\nid: 2-0\nevent: stdout\ndata: \"b\"\n\nid: 3-0\nevent: stdout\ndata: \"c",
		"",
		"id: 7-0\nevent: gap\ndata: {\"stream\": \"stdout\", \"bytes\": 5}\n\nid: 8-0\nevent: stdout\ndata: \"d\"\n\nevent: result\ndata: " + success + "\n\n",
	}
	want := []string{"0-0", "2-0", "2-0"}
	_, sb := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id": 1, "state": "running"}`)
		case strings.HasSuffix(r.URL.Path, "/processes/1/output"):
			n := asked.Add(1) - 1
			if got := r.Header.Get("Last-Event-ID"); got != want[n] {
				t.Errorf("%d: asked for %q, want %q", n, got, want[n])
			}
			answers("text/event-stream", streams[n], n > 0)(w, r)
		}
	})
	var out bytes.Buffer
	p, err := sb.Start(testContext(t), []string{"x"}, &llmsandbox.ExecOptions{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(testContext(t)); !errors.Is(err, llmsandbox.ErrOutput) || !res.OK() || out.String() != "abd" || asked.Load() != 3 {
		t.Errorf("got %+v, %v, and %q, want ok, and 5 bytes less than all", res, err, &out)
	}
}

// TestHostileServerOfProcesses: no server that does not tell what became of a program makes it a success, and none is asked for ever.
func TestHostileServerOfProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		started string
		stream  http.HandlerFunc
	}{
		"nothing":       {`{}`, nil},
		"not JSON":      {`{`, nil},
		"page":          {`{"id": 1}`, answers("text/html", "<h1>Log in</h1>", true)},
		"numbers":       {`{"id": 1}`, answers("text/event-stream", "event: stdout\ndata: 1\n\n", true)},
		"a wrong gap":   {`{"id": 1}`, answers("text/event-stream", "event: gap\ndata: 1\n\n", true)},
		"contradiction": {`{"id": 1}`, answers("text/event-stream", "event: result\ndata: {\"status\": \"ok\"}\n\n", true)},
		"too long":      {`{"id": 1}`, answers("text/event-stream", "event: stdout\ndata: "+strings.Repeat("x", smallResult)+"\n\n", true)},
		"gone": {`{"id": 1}`, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"status": 404, "code": "not_found"}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, sb := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusCreated)
					fmt.Fprint(w, test.started)
					return
				}
				test.stream(w, r)
			})
			p, err := sb.Start(testContext(t), []string{"x"}, &llmsandbox.ExecOptions{Stdout: io.Discard})
			if test.stream == nil {
				if !errors.Is(err, llmsandbox.ErrLost) {
					t.Errorf("got %v, want ErrLost", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if res, err := p.Wait(testContext(t)); err == nil || res.OK() || res.Status != llmsandbox.StatusLost {
				t.Errorf("got %+v, %v, want lost", res, err)
			}
		})
	}
}

// TestProcessDetachesAtOnce: one who waits for a server that is gone can stop to.
func TestProcessDetachesAtOnce(t *testing.T) {
	asked := make(chan struct{}, 1)
	_, sb := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id": 1}`)
			return
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusBadGateway)
	})
	p, err := sb.Start(testContext(t), []string{"x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	begun := time.Now()
	p.Detach()
	if _, err := p.Wait(testContext(t)); !errors.Is(err, llmsandbox.ErrDetached) || time.Since(begun) > 30*time.Second {
		t.Errorf("got %v after %v, want ErrDetached at once", err, time.Since(begun))
	}
}
