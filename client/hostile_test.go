package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

// smallResult bounds the results of hostile servers' clients.
const smallResult = 64 << 10

// A hostileServer answers each request with answer, but for those that open a sandbox.
func hostileServer(t *testing.T, answer http.HandlerFunc) (*client.Client, *client.Sandbox) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/sandboxes" {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id": "sb-1", "language": "bash"}`)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	c := connect(t, server.URL, key, client.Options{MaxResult: smallResult})
	sb, err := c.Open(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, sb
}

// runs are the ways to run something.
func runs(ctx context.Context, c *client.Client, sb *client.Sandbox) map[string]func() (*llmsandbox.Result, error) {
	return map[string]func() (*llmsandbox.Result, error){
		"once":   func() (*llmsandbox.Result, error) { return c.Run(ctx, "", nil) },
		"run":    func() (*llmsandbox.Result, error) { return sb.Run(ctx, "", nil) },
		"exec":   func() (*llmsandbox.Result, error) { return sb.Exec(ctx, []string{"true"}, nil) },
		"writer": func() (*llmsandbox.Result, error) { return sb.Run(ctx, "", &llmsandbox.RunOptions{Stdout: io.Discard}) },
		"stream": func() (res *llmsandbox.Result, err error) {
			for e, failure := range sb.Stream(ctx, "", nil) {
				res, err = e.Result, failure
			}
			return res, err
		},
	}
}

// cutOff ends a connection after what was written.
func cutOff(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// answers writes an answer of a type, which for a client that wants events is an event, and cuts it off if its end is not to come.
func answers(kind, text string, whole bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, text)
		if !whole {
			cutOff(w)
		}
	}
}

// TestHostileServerOfCells: no server that does not tell what became of a cell makes it a success.
func TestHostileServerOfCells(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		lost   bool // it is ErrLost
		status llmsandbox.Status
	}{
		"cut off":       {asWanted(success, false), false, llmsandbox.StatusOK},
		"half":          {asWanted(success[:20], true), true, llmsandbox.StatusLost},
		"empty":         {asWanted(`{}`, true), true, llmsandbox.StatusLost},
		"null":          {asWanted(`null`, true), true, llmsandbox.StatusLost},
		"contradiction": {asWanted(`{"status": "ok", "exit_code": 1}`, true), true, llmsandbox.StatusLost},
		"lost":          {asWanted(`{"status": "lost", "reason": "gone"}`, true), true, llmsandbox.StatusLost},
		"page":          {answers("text/html", "<h1>Log in</h1>", true), true, llmsandbox.StatusLost},
		"output only":   {answers("text/event-stream", "event: stdout\ndata: \"x\"\n\n", true), true, llmsandbox.StatusLost},
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"status": 404, "code": "kernel_closed"}`)
		}, false, llmsandbox.StatusSetupFailed},
	} {
		_, sb := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/kernels") {
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, `{"id": "k1", "language": "python"}`)
				return
			}
			test.answer(w, r)
		})
		k, err := sb.Kernel(testContext(t), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		cell, err := k.Run(testContext(t), "1", nil)
		if cell == nil || cell.Status != test.status || errors.Is(err, llmsandbox.ErrLost) != test.lost || (err == nil) != (test.status == llmsandbox.StatusOK) {
			t.Errorf("%s: got %+v, %v, want %s, and ErrLost: %t", name, cell, err, test.status, test.lost)
		}
	}
	for _, id := range []string{"../x", "", "a/b", strings.Repeat("x", 1000)} {
		_, sb := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id": %q, "language": "python"}`, id)
		})
		if k, err := sb.Kernel(testContext(t), "", nil); !errors.Is(err, llmsandbox.ErrLost) {
			t.Errorf("got %v, %v, want that an answer with the id %q cannot be used", k, err, id)
		}
	}
}

// asWanted answers a client that wants events with one, and others with JSON.
func asWanted(result string, whole bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			answers("text/event-stream", ":\n\nevent: result\ndata: "+result+"\n\n", whole)(w, r)
			return
		}
		answers("application/json", result, whole)(w, r)
	}
}

const success = `{"status": "ok", "exit_code": 0, "stdout": "x"}`

// TestHostileServerOfRuns: no server that does not tell what became of a program makes it a success.
func TestHostileServerOfRuns(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		lost   bool // it is ErrLost
		status llmsandbox.Status
	}{
		"none":               {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, true, llmsandbox.StatusLost},
		"half":               {asWanted(success[:20], false), true, llmsandbox.StatusLost},
		"half and an end":    {asWanted(success[:20], true), true, llmsandbox.StatusLost},
		"empty":              {asWanted(`{}`, true), true, llmsandbox.StatusLost},
		"null":               {asWanted(`null`, true), true, llmsandbox.StatusLost},
		"list":               {asWanted(`[]`, true), true, llmsandbox.StatusLost},
		"contradiction":      {asWanted(`{"status": "ok", "exit_code": 1}`, true), true, llmsandbox.StatusLost},
		"ok without a code":  {asWanted(`{"status": "ok"}`, true), true, llmsandbox.StatusLost},
		"lost":               {asWanted(`{"status": "lost", "reason": "gone", "sandbox_id": "sb-1"}`, true), true, llmsandbox.StatusLost},
		"too long":           {asWanted(`{"status": "ok", "exit_code": 0, "stdout": "`+strings.Repeat("x", smallResult)+`"}`, true), true, llmsandbox.StatusLost},
		"page":               {answers("text/html", "<h1>Log in</h1>", true), true, llmsandbox.StatusLost},
		"no events":          {answers("text/event-stream", "", true), true, llmsandbox.StatusLost},
		"output only":        {answers("text/event-stream", "event: stdout\ndata: \"x\"\n\n", true), true, llmsandbox.StatusLost},
		"output that is cut": {answers("text/event-stream", "event: stdout\ndata: \"x\"\n\n", false), true, llmsandbox.StatusLost},
		"half an event":      {answers("text/event-stream", "event: result\ndata: "+success+"\n", true), true, llmsandbox.StatusLost},
		"output of numbers":  {answers("text/event-stream", "event: stdout\ndata: 1\n\nevent: result\ndata: "+success+"\n\n", true), true, llmsandbox.StatusLost},
		"problem of none":    {answers("text/event-stream", "event: problem\ndata: 1\n\n", true), true, llmsandbox.StatusLost},
		"no success":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, true, llmsandbox.StatusLost},
		"gateway": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "upstream", http.StatusBadGateway)
		}, true, llmsandbox.StatusLost},
		"server error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "oops", http.StatusInternalServerError)
		}, false, llmsandbox.StatusLost},
		"given up": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusRequestTimeout)
			fmt.Fprint(w, `{"status": 408, "code": "canceled"}`)
		}, false, llmsandbox.StatusLost},
		"long problem": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"status": 404, "code": "not_found", "detail": "%s"}`, strings.Repeat("x", 1<<20))
		}, false, llmsandbox.StatusSetupFailed},
		"terminal": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"status": 200, "code": "\u001b[2J", "detail": "a\u001b]0;title\u0007b"}`)
		}, false, llmsandbox.StatusSetupFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c, sb := hostileServer(t, test.answer)
			for call, run := range runs(testContext(t), c, sb) {
				res, err := run()
				if err == nil || res == nil || res.Status != test.status || errors.Is(err, llmsandbox.ErrLost) != test.lost {
					t.Fatalf("%s: got %+v, %v, want %s, and ErrLost: %t", call, res, err, test.status, test.lost)
				}
				if text := err.Error(); len(text) > 16<<10 || strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, key) {
					t.Errorf("%s: got %q (%d bytes), want something short without control characters and key", call, text, len(text))
				}
				if res.OK() || res.SandboxID == "" && call != "once" {
					t.Errorf("%s: got %+v, want no success, and the sandbox's id", call, res)
				}
			}
		})
	}
}

// TestHostileStream: what a stream has beside its events means nothing, an event that is too long ends it, and one that never ends is left.
func TestHostileStream(t *testing.T) {
	_, sb := hostileServer(t, answers("text/event-stream",
		"retry: 1\r\nid: 3\r\n: comment\r\n\r\nevent: else\ndata: {}\n\ndata: 1\n\nevent: stdout\ndata: \"x\"\n\nevent: result\ndata: {\"status\": \"ok\",\ndata: \"exit_code\": 0}\n\nevent: stdout\ndata: \"y\"\n\n", true))
	var out bytes.Buffer
	if res, err := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Stdout: &out}); err != nil || !res.OK() || out.String() != "x" {
		t.Errorf("got %+v, %v, %q, want ok and x", res, err, &out)
	}
	for name, piece := range map[string]string{"a line": "x", "lines": "data: x\n", "comments": ":\n"} {
		_, sb := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, strings.Repeat(piece, 1000)); err != nil {
					return
				}
			}
		})
		if res, err := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Stdout: io.Discard}); !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost {
			t.Errorf("%s without an end: got %+v, %v, want lost", name, res, err)
		}
	}
	_, sb = hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
		answers("text/event-stream", "event: result\ndata: "+success+"\n\n", true)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	if res, err := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Stdout: io.Discard}); err != nil || !res.OK() {
		t.Errorf("a stream that stays open: got %+v, %v, want the result that has come", res, err)
	}
}

// TestHostileServerOfFiles: no part of a file, and no other page, is taken for a file.
func TestHostileServerOfFiles(t *testing.T) {
	const octets = "application/octet-stream"
	for name, answer := range map[string]http.HandlerFunc{
		"none": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"cut":  answers(octets, "part", false),
		"page": answers("text/html", "<h1>Log in</h1>", true),
		"short": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			answers(octets, "part", false)(w, r)
		},
		"without an end": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\n\r\npart", octets)
		},
	} {
		_, sb := hostileServer(t, answer)
		if data, err := sb.ReadFile(testContext(t), "a"); !errors.Is(err, llmsandbox.ErrLost) || data != nil {
			t.Errorf("%s: got %q, %v, want ErrLost", name, data, err)
		}
	}
	_, sb := hostileServer(t, answers(octets, "all", true))
	if data, err := sb.ReadFile(testContext(t), "a"); err != nil || string(data) != "all" {
		t.Errorf("got %q, %v, want the file", data, err)
	}
}

// TestHostileServerOfHTTP2: what is cut off is lost there, too.
func TestHostileServerOfHTTP2(t *testing.T) {
	var proto atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/files"):
			answers("application/octet-stream", "part", r.URL.Query().Get("path") == "all")(w, r)
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"id": "sb-1"}`)
		default:
			answers("text/event-stream", "event: stdout\ndata: \"x\"\n\n", false)(w, r)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	c, err := client.NewWith(server.URL, key, &client.Options{HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := c.Attach(testContext(t), "sb-1")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := sb.ReadFile(testContext(t), "all"); err != nil || string(data) != "part" || proto.Load() != "HTTP/2.0" {
		t.Errorf("got %q, %v over %v, want the file over HTTP/2", data, err, proto.Load())
	}
	if data, err := sb.ReadFile(testContext(t), "cut"); !errors.Is(err, llmsandbox.ErrLost) {
		t.Errorf("got %q, %v, want ErrLost", data, err)
	}
	var out bytes.Buffer
	if res, err := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Stdout: &out}); !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost || out.String() != "x" {
		t.Errorf("got %+v, %v, %q, want x and lost", res, err, &out)
	}
}

// TestHostileAnswers: answers that are none of the API, too long, or without an end fail.
func TestHostileAnswers(t *testing.T) {
	long := `{"entries": [` + strings.Repeat(`{"mode": "0644"},`, 1<<19) + `{}]}`
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		call   func(*client.Client, *client.Sandbox) error
	}{
		"mkdir": {answers("text/html", "<h1>Log in</h1>", true), func(_ *client.Client, sb *client.Sandbox) error { return sb.Mkdir(testContext(t), "a") }},
		"close": {answers("text/html", "<h1>Log in</h1>", true), func(_ *client.Client, sb *client.Sandbox) error { return sb.Destroy(testContext(t)) }},
		"write": {answers("text/html", "<h1>Log in</h1>", true), func(_ *client.Client, sb *client.Sandbox) error { return sb.WriteFile(testContext(t), "a", nil) }},
		"long list": {answers("application/json", long, true), func(_ *client.Client, sb *client.Sandbox) error {
			_, err := sb.ListDir(testContext(t), "a")
			return err
		}},
		"mode": {answers("application/json", `{"entries": [{"mode": "x"}]}`, true), func(_ *client.Client, sb *client.Sandbox) error {
			_, err := sb.ListDir(testContext(t), "a")
			return err
		}},
		"stat":  {answers("application/json", `{"mode": ""}`, true), func(_ *client.Client, sb *client.Sandbox) error { _, err := sb.Stat(testContext(t), "a"); return err }},
		"pages": {answers("application/json", `{"sandboxes": [{"id": "sb-1"}], "next": "sb-1"}`, true), func(c *client.Client, _ *client.Sandbox) error { _, err := c.List(testContext(t), nil); return err }},
		"another": {answers("application/json", `{"id": "sb-2"}`, true), func(c *client.Client, _ *client.Sandbox) error {
			_, err := c.Attach(testContext(t), "sb-1")
			return err
		}},
	} {
		c, sb := hostileServer(t, test.answer)
		if err := test.call(c, sb); !errors.Is(err, llmsandbox.ErrLost) || name == "long list" && !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: got %v, want ErrLost, and why", name, err)
		}
	}
	for _, id := range []string{"", "..", "a/b", "../../v1/run?x", strings.Repeat("a", 41), "é"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id": %q}`, id)
		}))
		if sb, err := connect(t, server.URL, key, client.Options{}).Open(testContext(t), nil); !errors.Is(err, llmsandbox.ErrLost) {
			t.Errorf("id %q: got %v, %v, want ErrLost", id, sb, err)
		}
		server.Close()
	}
}

// TestRedirect: no redirect gets the key, the code or a file.
func TestRedirect(t *testing.T) {
	var visited atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		c, sb := hostileServer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		for call, run := range runs(testContext(t), c, sb) {
			res, err := run()
			var refused *client.Error
			if !errors.As(err, &refused) || refused.Status != status || !strings.Contains(refused.Detail, other.URL) || res.Status != llmsandbox.StatusSetupFailed {
				t.Errorf("%d, %s: got %+v, %v, want an error that names where to", status, call, res, err)
			}
		}
		if _, err := sb.ReadFile(testContext(t), "a"); err == nil {
			t.Errorf("%d: got no error, want one", status)
		}
	}
	if n := visited.Load(); n != 0 {
		t.Errorf("got %d requests elsewhere, want none", n)
	}
}
