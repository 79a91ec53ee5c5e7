package server

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

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
	s := m.start("--database", source, "--listen", address, "--replica-url", "http://"+address)
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

// TestReplicas: of servers that share a database, each answers for every sandbox, and when one is killed or stopped, another has its sandboxes, with
// what runs in them.
func TestReplicas(t *testing.T) {
	db, err := testpostgres.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
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
	b.end(syscall.SIGTERM)
	if status, body := c.persist(http.MethodPost, cells, `{"code": "echo $X$Y"}`); status != http.StatusOK || !strings.Contains(body, `"stdout":"12\n"`) {
		t.Errorf("after the server that held it was stopped: %d %s, want the kernel's variables", status, body)
	}
	if status, body := c.ask(key, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("remove: %d %s, want 204", status, body)
	}
	if status, body := c.ask(key, http.MethodGet, path, ""); status != http.StatusNotFound {
		t.Errorf("once it is removed: %d %s, want 404", status, body)
	}
	c.end(syscall.SIGTERM)
	out, text, err := m.run("serve", "audit", "--json", "--database", source, "--sandbox", sb.ID)
	if err != nil || strings.Count(out, "run-in-sandbox") != 1 {
		t.Errorf("%v: %s%s, want one run, as its request was carried out by one server", err, out, text)
	}
}
