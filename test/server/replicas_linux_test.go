package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// startReplica starts a server that shares a database with others.
func (m *machine) startReplica(source, key string) *server {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		m.t.Fatal(err)
	}
	s := m.start("--database", source, "--listen", address, "--replica-url", "http://"+address, "--ports-domain", "ports.test")
	s.key = key
	return s
}

// persist asks until the server is no longer busy, as it is until what a dead one held is taken.
func (s *server) persist(method, path, body string) (status int, text string) {
	s.t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		status, text = s.ask(s.key, method, path, body)
		if status != http.StatusTooManyRequests || time.Now().After(until) {
			return status, text
		}
		time.Sleep(time.Second) // as its Retry-After says
	}
}

// persistStdout asks until the server is no longer busy for a result with that output.
func (s *server) persistStdout(path, body, want string) {
	s.t.Helper()
	if out := s.stdout(s.persist(http.MethodPost, path, body)); out != want {
		s.t.Errorf("%s: %q, want %q", body, out, want)
	}
}

// TestReplicas: of servers that share a database, each answers for every sandbox, and when one is killed, hangs or stops, another has its sandboxes, with
// what runs in them.
func TestReplicas(t *testing.T) {
	db := testpostgres.ForTest(t)
	m := newMachine(t)
	source := db.Database(t)
	key := m.makeKey("one", "--database", source)
	other := m.makeKey("two", "--project", "other", "--database", source)
	a, b := m.startReplica(source, key), m.startReplica(source, key)
	var sb struct{ ID string }
	if status, body := a.ask(key, http.MethodPost, "/v1/sandboxes", `{"language": "bash", "limits": {"timeout_seconds": 60}}`); json.Unmarshal([]byte(body), &sb) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a sandbox", status, body)
	}
	path := "/v1/sandboxes/" + sb.ID
	for range 2 { // the second has an idle connection
		if status, body := b.ask(other, http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("of another project: %d %s, want 404", status, body)
		}
		if status, body := b.ask("no-key", http.MethodGet, path, ""); status != http.StatusUnauthorized {
			t.Errorf("without a key: %d %s, want 401", status, body)
		}
	}
	b.stdout(b.ask(key, http.MethodPost, path+"/run", `{"code": "mkfifo go; echo kept >file"}`))
	large := strings.Repeat("0123456789abcdef", 1<<18)
	if status, body := b.ask(key, http.MethodPut, path+"/files?path=large", large, "Content-Type: application/octet-stream"); status != http.StatusNoContent {
		t.Errorf("write a file: %d %s, want 204", status, body)
	}
	if status, body := b.ask(key, http.MethodGet, path+"/files?path=large", ""); status != http.StatusOK || body != large {
		t.Errorf("read a file: %d, %d bytes, want 200, all that was written", status, len(body))
	}
	var kernel struct{ ID string }
	if status, body := b.ask(key, http.MethodPost, path+"/kernels", `{}`); json.Unmarshal([]byte(body), &kernel) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a kernel", status, body)
	}
	cells := path + "/kernels/" + kernel.ID + "/cells"
	b.stdout(b.ask(key, http.MethodPost, cells, `{"code": "X=1"}`))
	if out := a.stdout(a.ask(key, http.MethodPost, cells, `{"code": "echo $X"}`)); out != "1\n" {
		t.Errorf("at the other server the kernel's variable is %q, want 1", out)
	}
	b.throughTheOther(sb.ID, a)
	program := b.startProgram(path, `{"code": "echo one; cat go; echo two", "timeout_seconds": 60}`)
	last, _ := b.output(program, "", "one\n", "")
	a.end(syscall.SIGKILL)
	if status, body := b.persist(http.MethodPost, path+"/exec", `{"shell": "echo between >go; cat file"}`); status != http.StatusOK || !strings.Contains(body, "kept") {
		t.Errorf("after the server that held it was killed: %d %s, want the file", status, body)
	}
	if _, out := b.output(program, last, "two\n", ""); out != "between\ntwo\n" {
		t.Errorf("%q, want what came behind the byte at which the stream broke", out)
	}
	if res := b.outcome(program); res.Status != "ok" || res.Stdout != "one\nbetween\ntwo\n" || res.Truncated {
		t.Errorf("%+v, want what it would have been", res)
	}
	if out := b.stdout(b.ask(key, http.MethodPost, cells, `{"code": "echo $X; Y=2"}`)); out != "1\n" {
		t.Errorf("the kernel's variable is %q, want what it was", out)
	}
	c := m.startReplica(source, key)
	if err := b.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // as if its machine had hung
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.cmd.Process.Signal(syscall.SIGCONT) }) // or it would not end
	c.persistStdout(cells, `{"code": "echo $X$Y; Z=3"}`, "12\n")
	if err := b.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.persistStdout(cells, `{"code": "echo $X$Y$Z"}`, "123\n") // it has lost the sandbox, and knows
	c.end(syscall.SIGTERM)
	b.persistStdout(cells, `{"code": "echo $X$Y$Z"}`, "123\n")
	if status, body := b.ask(key, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("remove: %d %s, want 204", status, body)
	}
	if status, body := b.ask(key, http.MethodGet, path, ""); status != http.StatusNotFound {
		t.Errorf("once it is removed: %d %s, want 404", status, body)
	}
	b.end(syscall.SIGTERM)
	out, text, err := m.run("serve", "audit", "--json", "--database", source, "--sandbox", sb.ID)
	if err != nil || strings.Count(out, "run-in-sandbox") != 1 {
		t.Errorf("%v: %s%s, want one run, as its request was carried out by one server", err, out, text)
	}
}

// throughTheOther uses a sandbox that another server holds by WebSockets, its ports and addresses that need no key.
func (s *server) throughTheOther(id string, holder *server) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	c, err := client.New(s.address, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	sb, err := c.Attach(ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	typed, typing := io.Pipe()
	seen, shown := io.Pipe()
	p, err := sb.Start(ctx, []string{"cat"}, &llmsandbox.ExecOptions{Terminal: &llmsandbox.WinSize{Cols: 80, Rows: 25}, Stdin: typed, Stdout: shown})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(typing, "typed\n"); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(seen)
	for lines.Scan() && lines.Text() != "typed" {
		s.t.Errorf("the terminal shows %q, want what was typed", lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, seen) }() // it ends with the terminal
	if _, err := io.WriteString(typing, "\x04"); err != nil {
		s.t.Fatal(err)
	}
	if res, err := p.Wait(ctx); err != nil || res.ExitCode != 0 {
		s.t.Errorf("cat in a terminal: %+v, %v, want its end", res, err)
	}
	if err := errors.Join(typing.Close(), shown.Close()); err != nil {
		s.t.Error(err)
	}

	serving := s.startProgram("/v1/sandboxes/"+id, `{"argv": ["python3", "-u", "-c", "import http.server as h; s = h.HTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler); print('listens'); s.serve_forever()"], "timeout_seconds": 60}`)
	s.output(serving, "", "listens\n", "")
	if status, body := s.ask(s.key, http.MethodGet, "/v1/sandboxes/"+id+"/ports/8000/file", ""); status != http.StatusOK || body != "kept\n" {
		s.t.Errorf("by a port's path: %d %q, want the file", status, body)
	}
	shared, _, err := sb.Share(ctx, 8000, time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := url.Parse(shared)
	if err != nil {
		s.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { // whatever the name
		return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(s.address, "http://"))
	}}}
	defer browser.CloseIdleConnections()
	for _, address := range []string{shared, u.Scheme + "://" + u.Host + "/file"} {
		res, err := browser.Get(address)
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "kept") && !strings.Contains(string(body), "file") {
			s.t.Errorf("by a port's name: %d %q, %v, want the file, or the directory that has it", res.StatusCode, body, err)
		}
	}
	if status, body := s.ask(s.key, http.MethodDelete, serving, ""); status != http.StatusNoContent {
		s.t.Errorf("kill what serves: %d %s, want 204", status, body)
	}
	status, body := holder.ask(s.key, http.MethodPost, "/v1/run", `{"language": "bash", "code": "echo drawn >artifacts/a.txt", "artifacts": "reference"}`)
	var ran struct{ Artifacts []struct{ Path string } }
	if err := json.Unmarshal([]byte(body), &ran); err != nil || status != http.StatusOK || len(ran.Artifacts) != 1 {
		s.t.Fatalf("%d %s, %v: want a result with an artifact", status, body, err)
	}
	if status, body := s.ask(s.key, http.MethodGet, ran.Artifacts[0].Path, ""); status != http.StatusOK || body != "drawn\n" {
		s.t.Errorf("an artifact of the other server: %d %q, want it", status, body)
	}
	told := func(at *server, session, body string) (string, string) {
		s.t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.address+"/mcp", strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + s.key, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			r.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: %d %s, %v, want an answer", body, res.StatusCode, text, err)
		}
		return res.Header.Get("Mcp-Session-Id"), string(text)
	}
	session, _ := told(holder, "", `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}`)
	if _, text := told(s, session, `{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}`); !strings.Contains(text, "execute_code") {
		s.t.Errorf("a client of MCP that the other server knows: %s, want its tools", text)
	}
	var signed struct{ URL string }
	if status, body := holder.ask(s.key, http.MethodPost, "/v1/sandboxes/"+id+"/files/sign", `{"path": "file", "method": "GET", "expires_seconds": 60}`); json.Unmarshal([]byte(body), &signed) != nil || status != http.StatusOK {
		s.t.Fatalf("%d %s: want a signed URL", status, body)
	}
	path := strings.TrimPrefix(signed.URL, holder.address)
	if status, body := s.ask("", http.MethodGet, path, ""); status != http.StatusOK || body != "kept\n" {
		s.t.Errorf("by a URL that the other server has signed: %d %q, want the file", status, body)
	}
}
