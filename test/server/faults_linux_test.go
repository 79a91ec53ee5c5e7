package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// A disk is a small file system of a test.
type disk struct {
	t    *testing.T
	path string
}

// mountDisk mounts one at a directory until the test's servers have ended.
func mountDisk(t *testing.T, path string) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this test needs root, for a file system of its own")
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=8m,mode=700"); err != nil {
		t.Fatal(err)
	}
	return &disk{t, path}
}

func (d *disk) unmount() {
	if err := unix.Unmount(d.path, 0); err != nil {
		d.t.Error(err)
	}
}

// fill leaves nothing of the disk, also of what was given back since it was filled.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.path, "fill"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if closed := f.Close(); closed != nil || !errors.Is(err, unix.ENOSPC) {
		d.t.Fatalf("%v, %v, want that it is full", err, closed)
	}
}

func (d *disk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.path, "fill")); err != nil {
		d.t.Fatal(err)
	}
}

// refused fails unless an answer is a problem with that status and code, which says nothing of the server's own machine.
func refused(t *testing.T, what string, gotStatus int, body string, status int, code string) {
	t.Helper()
	var p struct{ Code, Detail string }
	err := json.Unmarshal([]byte(body), &p)
	if err != nil || gotStatus != status || p.Code != code || strings.Contains(p.Detail, "/") || strings.Contains(p.Detail, "SQL") {
		t.Errorf("%s: %d %s, want %d %s, and nothing of the server's machine", what, gotStatus, body, status, code)
	}
}

// create makes a sandbox with the fifo go in it, and returns its id and path.
func (s *server) create() (id, path string) {
	s.t.Helper()
	var sb struct{ ID string }
	if status, body := s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`); json.Unmarshal([]byte(body), &sb) != nil || status != http.StatusCreated {
		s.t.Fatalf("%d %s: want a sandbox", status, body)
	}
	path = "/v1/sandboxes/" + sb.ID
	s.stdout(s.ask(s.key, http.MethodPost, path+"/exec", `{"argv": ["mkfifo", "go"]}`))
	return sb.ID, path
}

// untilRefused sends a request until it is refused as it should be, and returns the paths of the sandboxes that were made before: what the server has tried at its
// start may still be giving back what fill has just taken.
func (s *server) untilRefused(fill func(), path, body string, status int, code string) (made []string) {
	s.t.Helper()
	for range 10 {
		fill()
		got, text := s.ask(s.key, http.MethodPost, path, body)
		if got >= http.StatusBadRequest {
			refused(s.t, path, got, text, status, code)
			return made
		}
		var sb struct{ ID string }
		if err := json.Unmarshal([]byte(text), &sb); err != nil {
			s.t.Fatal(err)
		}
		if sb.ID != "" {
			made = append(made, "/v1/sandboxes/"+sb.ID)
		}
	}
	s.t.Errorf("%s: it is never refused", path)
	return made
}

const waits = `{"code": "cat go", "timeout_seconds": 120}`

// let has the program waits of a sandbox end, without the server.
func (m *machine) let(id string) {
	m.t.Helper()
	if out, text, err := m.run("exec", id, "--", "bash", "-c", "echo done >go"); err != nil {
		m.t.Fatalf("%v: %s%s", err, out, text)
	}
}

// remove removes a sandbox.
func (s *server) remove(path string) {
	s.t.Helper()
	if status, body := s.ask(s.key, http.MethodDelete, path, ""); status != http.StatusNoContent {
		s.t.Errorf("remove: %d %s, want 204", status, body)
	}
}

// TestDatabaseFull: while the database takes nothing more, what needs no record goes on, what needs one is refused and not done, and the server says that
// it is not ready. With space again all goes on, and nothing is lost of what became of programs and of the audit log.
func TestDatabaseFull(t *testing.T) {
	m := newMachine(t)
	d := mountDisk(t, t.TempDir())
	t.Cleanup(d.unmount) // after the servers have ended
	s := m.start("--state", d.path)
	id, path := s.create()
	process := s.startProgram(path, waits)
	d.fill()
	if out := s.stdout(s.ask(s.key, http.MethodPost, "/v1/run", `{"code": "print(1)"}`)); out != "1\n" {
		t.Errorf("%q, want what the code prints", out)
	}
	status, body := s.ask(s.key, http.MethodPost, path+"/processes", `{"code": "echo begun >begun; sleep 100"}`)
	refused(t, "a program that goes on", status, body, http.StatusServiceUnavailable, "not_kept")
	status, body = s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`, "Idempotency-Key: one")
	refused(t, "a request with a key", status, body, http.StatusServiceUnavailable, "service_unavailable")
	status, body = s.ask(s.key, http.MethodGet, "/readyz", "")
	refused(t, "/readyz", status, body, http.StatusServiceUnavailable, "not_ready")
	if out := s.stdout(s.ask(s.key, http.MethodPost, path+"/exec", `{"shell": "ps -e | grep -c sleep || true"}`)); out != "0\n" {
		t.Errorf("%q programs go on that were refused, want none", out)
	}
	m.let(id)
	if res := s.outcome(process); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("%+v, want what the program has written", res)
	}
	d.free()
	if status, body := s.ask(s.key, http.MethodGet, "/readyz", ""); status != http.StatusOK {
		t.Errorf("with space again: %d %s, want 200", status, body)
	}
	if res := s.outcome(s.startProgram(path, `{"code": "echo 2"}`)); res.Status != "ok" || res.Stdout != "2\n" {
		t.Errorf("%+v, want ok", res)
	}
	s.end(syscall.SIGTERM)
	for _, want := range []string{"the audit log could not be written, which is tried again", "the result of a program could not be kept", "make space on its disk"} {
		if s.said.count(want) == 0 {
			t.Errorf("the log has no %q", want)
		}
	}
	if n := s.said.count("are lost"); n > 0 {
		t.Errorf("events of the audit log are lost")
	}
	s = m.start("--state", d.path)
	if res := s.outcome(process); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("of the next server: %+v, want what it was", res)
	}
	s.remove(path)
	s.end(syscall.SIGTERM)
	out, text, err := m.run("serve", "audit", "--json", "--state", d.path)
	for action, want := range map[string]int{`"run"`: 1, "create-sandbox": 2, "exec-in-sandbox": 2, "start-process": 3, "process-end": 2, "remove-sandbox": 1} {
		if n := strings.Count(out, action); err != nil || n != want {
			t.Errorf("the audit log has %d of %s, want %d: %v: %s%s", n, action, want, err, out, text)
		}
	}
}

// TestSandboxesFull: while the disk of the sandboxes' own state is full, none is made, which the answer says, and those that there are go on.
func TestSandboxesFull(t *testing.T) {
	m := newMachine(t)
	state := strings.TrimPrefix(m.env[len(m.env)-1], "LLMSANDBOX_STATE_DIR=")
	d := mountDisk(t, state)
	t.Cleanup(func() {
		m.run("gc")
		if out, _, err := m.run("ls"); err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("sandboxes are left: %v: %s", err, out)
		}
		d.unmount()
	})
	s := m.start("--state", t.TempDir(), "--warm", "0")
	_, path := s.create()
	s.untilRefused(d.fill, "/v1/run", `{"language": "bash", "code": "echo 1"}`, http.StatusInsufficientStorage, "no_space")
	made := s.untilRefused(d.fill, "/v1/sandboxes", `{"language": "bash"}`, http.StatusInsufficientStorage, "no_space")
	if out := s.stdout(s.ask(s.key, http.MethodPost, path+"/run", `{"code": "echo 1"}`)); out != "1\n" {
		t.Errorf("%q, want that the sandbox goes on", out)
	}
	d.free()
	if out := s.stdout(s.ask(s.key, http.MethodPost, "/v1/run", `{"language": "bash", "code": "echo 1"}`)); out != "1\n" {
		t.Errorf("with space again: %q, want 1", out)
	}
	_, other := s.create()
	for _, path := range append(made, other, path) {
		s.remove(path)
	}
	s.end(syscall.SIGTERM)
	if s.said.count("make space there") == 0 {
		t.Error("the log does not say what to do")
	}
}

// TestNoFilesLeft: where clients take all the files that the server may have open, it waits for some without spinning, and what runs ends as it should. When they
// have gone, it serves again.
func TestNoFilesLeft(t *testing.T) {
	m := newMachine(t)
	const most = "160"
	s := m.startWith(exec.Command("prlimit", "--nofile="+most+":"+most, command), "--log", "debug")
	id, path := s.create()
	process := s.startProgram(path, waits) // by a connection that stays
	host := strings.TrimPrefix(s.address, "http://")
	var clients []net.Conn
	for range 200 {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, conn)
	}
	made := s.untilRefused(func() {}, "/v1/sandboxes", `{"language": "bash"}`, http.StatusServiceUnavailable, "overloaded")
	m.let(id)
	for _, conn := range clients {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	http.DefaultClient.CloseIdleConnections() // a new one is taken
	if status, body := s.ask(s.key, http.MethodGet, "/readyz", ""); status != http.StatusOK {
		t.Errorf("%d %s, want 200", status, body)
	}
	if res := s.outcome(process); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("%+v, want what the program has written", res)
	}
	if out := s.stdout(s.ask(s.key, http.MethodPost, "/v1/run", `{"code": "print(1)"}`)); out != "1\n" {
		t.Errorf("%q, want what the code prints", out)
	}
	_, other := s.create()
	for _, path := range append(made, other, path) {
		s.remove(path)
	}
	s.end(syscall.SIGTERM)
	if n := s.said.count("Accept error"); n == 0 || n > 200 {
		t.Errorf("it tried %d times to take a connection, want some, and pauses between them", n)
	}
}

// A stalling is a way to PostgreSQL that can hold back all that comes through.
type stalling struct {
	all      sync.WaitGroup
	listener net.Listener

	mu    sync.Mutex
	open  chan struct{} // closed while what comes goes on
	conns []net.Conn
}

// stall leads to the database of a URL, and returns the URL of the way.
func stall(t *testing.T, source string) (*stalling, string) {
	t.Helper()
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "way")
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	to := filepath.Join(u.Query().Get("host"), socket)
	p := &stalling{open: make(chan struct{})}
	p.resume()
	if p.listener, err = net.Listen("unix", filepath.Join(dir, socket)); err != nil {
		t.Fatal(err)
	}
	p.all.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			db, err := net.Dial("unix", to)
			if err != nil {
				t.Error(err)
				conn.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, conn, db)
			p.mu.Unlock()
			p.all.Go(func() { p.copy(db, conn) })
			p.all.Go(func() { p.copy(conn, db) })
		}
	})
	t.Cleanup(func() {
		p.listener.Close()
		p.resume()
		p.mu.Lock()
		for _, conn := range p.conns {
			conn.Close()
		}
		p.mu.Unlock()
		p.all.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	q := u.Query()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return p, u.String()
}

func (p *stalling) copy(to, from net.Conn) {
	defer to.Close()
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		<-open
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *stalling) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

func (p *stalling) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// TestDatabaseStalls: while the database takes connections and does not answer, requests are told so in a bounded time, also many at once, and a program that runs
// goes on. When it answers again, all is as before.
func TestDatabaseStalls(t *testing.T) {
	db := testpostgres.ForTest(t)
	m := newMachine(t)
	way, source := stall(t, db.Database(t))
	key := m.makeKey("one", "--database", source, "--scope", "read", "--scope", "write")
	s := m.start("--database", source)
	s.key = key
	id, path := s.create()
	process := s.startProgram(path, waits)
	way.stop()
	m.let(id)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+path+"/run", strings.NewReader(`{"code": "echo 1"}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+key)
			r.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "service_unavailable") {
				t.Errorf("%d %s, %v, want 503, and when to come back", res.StatusCode, body, err)
			}
		})
	}
	all.Go(func() {
		status, body := s.ask(key, http.MethodGet, "/readyz", "")
		refused(t, "/readyz", status, body, http.StatusServiceUnavailable, "not_ready")
	})
	all.Go(func() {
		if status, body := s.ask(key, http.MethodGet, "/healthz", ""); status != http.StatusOK {
			t.Errorf("/healthz: %d %s, want 200", status, body)
		}
	})
	all.Wait()
	way.resume()
	if status, body := s.ask(key, http.MethodGet, "/readyz", ""); status != http.StatusOK {
		t.Errorf("with the database again: %d %s, want 200", status, body)
	}
	if res := s.outcome(process); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("%+v, want what the program has written", res)
	}
	if out := s.stdout(s.ask(key, http.MethodPost, path+"/run", `{"code": "echo 1"}`)); out != "1\n" {
		t.Errorf("%q, want 1", out)
	}
	s.end(syscall.SIGTERM)
	s = m.start("--database", source)
	s.key = key
	if res := s.outcome(process); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("of the next server: %+v, want what it was", res)
	}
	s.remove(path)
}
