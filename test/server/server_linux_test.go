package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

// command is the llmsandbox command.
var command string

func TestMain(m *testing.M) { os.Exit(withCommand(m)) }

func withCommand(m *testing.M) int {
	dir, err := os.MkdirTemp("", "server")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if dir, err = testcommand.In(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	command = filepath.Join(dir, "llmsandbox")
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// A machine is where servers are started one after the other, with a state directory of the test's own.
type machine struct {
	t   *testing.T
	env []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	state, err := os.MkdirTemp("", "lsb") // its path must be short for sockets
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t, append(os.Environ(), "LLMSANDBOX_STATE_DIR="+state)}
	t.Cleanup(func() {
		m.run("gc") // what killed servers had kept ready
		if out, _, err := m.run("ls"); err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("sandboxes are left: %v: %s, want no error, and the heading alone", err, out)
		}
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	return m
}

// run runs the command to its end.
func (m *machine) run(args ...string) (stdout, stderr string, err error) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = m.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// makeKey makes a key and returns its secret.
func (m *machine) makeKey(args ...string) string {
	m.t.Helper()
	out, text, err := m.run(append([]string{"serve", "key", "create"}, args...)...)
	if err != nil {
		m.t.Fatalf("%v: %s", err, text)
	}
	return strings.TrimSpace(out)
}

// A server is a process that serves.
type server struct {
	*machine
	cmd          *exec.Cmd
	address, key string
	log          sync.WaitGroup
	said         lines // what it has logged since it serves
}

// lines are written and read at the same time.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// count is how many have a text.
func (l *lines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

var serving = regexp.MustCompile(`serving on (\S+?)(?:; the key, until it ends, is (\S+))?$`)

// start starts a server, which ends with the test.
func (m *machine) start(args ...string) *server {
	m.t.Helper()
	return m.startWith(exec.Command(command), args...)
}

// startWith starts a server by a command that takes the arguments of llmsandbox.
func (m *machine) startWith(cmd *exec.Cmd, args ...string) *server {
	m.t.Helper()
	cmd.Args = append(append(cmd.Args, "serve", "--listen", "127.0.0.1:0", "--best-effort", "--warm", "1"), args...)
	s := &server{machine: m, cmd: cmd}
	s.cmd.Env = m.env
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.end(syscall.SIGTERM)
		}
	})
	lines := bufio.NewScanner(stderr)
	for s.address == "" {
		if !lines.Scan() {
			m.t.Fatalf("the server ended: %v", lines.Err())
		}
		if found := serving.FindStringSubmatch(lines.Text()); found != nil {
			s.address, s.key = found[1], found[2]
		} else {
			m.t.Log(lines.Text())
		}
	}
	s.log.Go(func() {
		for lines.Scan() {
			s.said.add(lines.Text())
			m.t.Log(lines.Text())
		}
	})
	return s
}

// end ends the server, and fails unless it ends as it should.
func (s *server) end(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	s.log.Wait() // it reads until the server has ended
	err := s.cmd.Wait()
	if want := sig == syscall.SIGKILL; (err != nil) != want {
		s.t.Errorf("the server ended: %v, want an error: %t", err, want)
	}
}

// ask sends a request and returns the answer's status and body. Each header is "Name: value".
func (s *server) ask(key, method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// stdout is that of the result that a body is.
func (s *server) stdout(status int, body string) string {
	s.t.Helper()
	var res struct{ Status, Stdout string }
	if err := json.Unmarshal([]byte(body), &res); err != nil || status != http.StatusOK || res.Status != "ok" {
		s.t.Fatalf("%d %s, %v: want a program that ended well", status, body, err)
	}
	return res.Stdout
}

// startProgram starts a program that goes on without its client, and returns its path.
func (s *server) startProgram(path, body string) string {
	s.t.Helper()
	var p struct{ ID uint64 }
	status, text := s.ask(s.key, http.MethodPost, path+"/processes", body)
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != http.StatusCreated {
		s.t.Fatalf("%d %s, %v: want a program", status, text, err)
	}
	return fmt.Sprintf("%s/processes/%d", path, p.ID)
}

type result struct {
	Status, Stdout, Stderr, Language string
	ExitCode                         int  `json:"exit_code"`
	Truncated                        bool `json:"stdout_truncated"`
}

// outcome waits for the end of a program.
func (s *server) outcome(process string) result {
	s.t.Helper()
	var p struct {
		State  string
		Result result
	}
	status, text := s.ask(s.key, http.MethodGet, process+"?wait_seconds=60", "")
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != http.StatusOK || p.State != "ended" {
		s.t.Fatalf("%d %.1000s, %v: want a program that has ended", status, text, err)
	}
	return p.Result
}

// output reads the output of a program behind an event until stdout and stderr have come to these ends, and returns the id of the last event, and both
// of them.
func (s *server) output(process, after, stdoutEnd, stderrEnd string) (last, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+process+"/output", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	got := map[string]string{}
	lines := bufio.NewScanner(res.Body)
	for id, name := "", ""; !strings.HasSuffix(got["stdout"], stdoutEnd) || !strings.HasSuffix(got["stderr"], stderrEnd); {
		if !lines.Scan() {
			s.t.Fatalf("the stream ended after %q: %v", got, lines.Err())
		}
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			var part string
			if err := json.Unmarshal([]byte(value), &part); err != nil {
				s.t.Fatalf("%s: %s: %v, want output", name, value, err)
			}
			got[name] += part
			last = id
		}
	}
	return last, got["stdout"] + got["stderr"]
}

// TestKilled: a sandbox, its files, kernels and programs outlive a server that is killed, and one that ends, and the next server has them.
func TestKilled(t *testing.T) {
	m := newMachine(t)
	s := m.start()
	var sb struct{ ID string }
	status, body := s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "bash", "limits": {"timeout_seconds": 7}, "labels": {"a": "b"}}`)
	if err := json.Unmarshal([]byte(body), &sb); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s, %v: want a sandbox", status, body, err)
	}
	path := "/v1/sandboxes/" + sb.ID
	s.stdout(s.ask(s.key, http.MethodPost, path+"/run", `{"code": "echo kept >file"}`))
	var kernel struct{ ID string }
	if status, body := s.ask(s.key, http.MethodPost, path+"/kernels", `{}`); json.Unmarshal([]byte(body), &kernel) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a kernel", status, body)
	}
	cells := path + "/kernels/" + kernel.ID + "/cells"
	s.stdout(s.ask(s.key, http.MethodPost, cells, `{"code": "X=1"}`))
	facts := func() (all string) {
		t.Helper()
		for _, fact := range []string{"", "/network", "/capabilities", "/processes"} {
			status, body := s.ask(s.key, http.MethodGet, path+fact, "")
			if status != http.StatusOK {
				t.Errorf("%s: %d %s, want 200", fact, status, body)
			}
			if fact != "/processes" { // where a program may be a moment longer than its result takes
				all += body
			}
		}
		return all
	}
	before := facts()
	gone := s.startProgram(path, `{"code": "echo done", "timeout_seconds": 120}`)
	if res := s.outcome(gone); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("%+v, want ok", res)
	}
	s.stdout(s.ask(s.key, http.MethodPost, path+"/exec", `{"argv": ["mkfifo", "a", "b", "written"]}`))
	half := s.startProgram(path, `{"code": "echo one; no-such-program; read -r <a; echo two; also-not-there; exit 4", "timeout_seconds": 120}`)
	noisy := s.startProgram(path, `{"argv": ["sh", "-c", "read -r _ <b; head -c 4000000 /dev/zero | tr '\\0' x; echo end >&2; echo >written"], "timeout_seconds": 120}`)
	const once = `{"argv": ["sh", "-c", "echo >>once"]}`
	sent := func() (int, string) {
		t.Helper()
		return s.ask(s.key, http.MethodPost, path+"/processes", once, "Idempotency-Key: once")
	}
	firstStatus, first := sent()
	typed := s.startProgram(path, `{"argv": ["cat"], "stdin_open": true, "timeout_seconds": 120}`)
	last, out := s.output(half, "", "one\n", "not found\n")
	if out != "one\n/sandbox/main.sh: line 1: no-such-program: command not found\n" {
		t.Errorf("%q, want one and an error", out)
	}
	s.end(syscall.SIGKILL)
	old := s.key
	s = m.start()
	if status, body := s.ask(old, http.MethodGet, path, ""); status != http.StatusUnauthorized {
		t.Errorf("with the key of the server before: %d %s, want 401", status, body)
	}
	// Nobody asks for a program that writes much, which does not wait for that.
	s.stdout(s.ask(s.key, http.MethodPost, path+"/exec", `{"shell": "echo >a; echo >b; cat written", "timeout_seconds": 120}`))
	if _, out := s.output(half, last, "two\n", "not found\n"); out != "two\n/sandbox/main.sh: line 1: also-not-there: command not found\n" {
		t.Errorf("%q, want what came behind the byte at which the stream broke", out)
	}
	if res := s.outcome(half); res.Status != "error" || res.ExitCode != 4 || res.Stdout != "one\ntwo\n" || res.Truncated || res.Language != "bash" || strings.Contains(res.Stderr, ".run-") {
		t.Errorf("%+v, want what it would have been", res)
	}
	if res := s.outcome(noisy); res.Status != "ok" || len(res.Stdout) != 4_000_000 || res.Stderr != "end\n" || res.Truncated {
		t.Errorf("%s, %d bytes, %q, want all", res.Status, len(res.Stdout), res.Stderr)
	}
	if res := s.outcome(gone); res.Status != "ok" || res.Stdout != "done\n" {
		t.Errorf("%+v, want what it was", res)
	}
	if status, again := sent(); firstStatus != http.StatusCreated || status != firstStatus || again != first {
		t.Errorf("answered %d %s, and then %d %s: want the same, and 201", firstStatus, first, status, again)
	}
	var again struct{ ID uint64 }
	if err := json.Unmarshal([]byte(first), &again); err != nil {
		t.Fatal(err)
	}
	s.outcome(fmt.Sprintf("%s/processes/%d", path, again.ID))
	if out := s.stdout(s.ask(s.key, http.MethodPost, path+"/exec", `{"shell": "wc -l <once"}`)); out != "1\n" {
		t.Errorf("the program of two requests with one key ran %q times, want once", out)
	}
	if res := s.outcome(typed); res.Status != "ok" || res.Stdout != "" { // its input ended with the server
		t.Errorf("%+v, want ok", res)
	}
	if after := facts(); after != before {
		t.Errorf("it is %s, and was %s: want the same", after, before)
	}
	if out := s.stdout(s.ask(s.key, http.MethodPost, path+"/exec", `{"argv": ["cat", "file"]}`)); out != "kept\n" {
		t.Errorf("the file has %q, want what was written", out)
	}
	if out := s.stdout(s.ask(s.key, http.MethodPost, cells, `{"code": "echo $X; Y=2"}`)); out != "1\n" {
		t.Errorf("the kernel's variable is %q, want what it was", out)
	}
	s.end(syscall.SIGTERM) // lets go of the kernel
	s = m.start()
	if out := s.stdout(s.ask(s.key, http.MethodPost, cells, `{"code": "echo $X$Y"}`)); out != "12\n" {
		t.Errorf("the kernel's variables are %q, want what they were", out)
	}
	if status, body := s.ask(s.key, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("remove: %d %s, want 204", status, body)
	}
	s.end(syscall.SIGTERM)
}

// TestKeys: keys are made and revoked while a server runs, and each sees its project's sandboxes.
func TestKeys(t *testing.T) {
	m := newMachine(t)
	one := m.makeKey("one", "--project", "a")
	s := m.start()
	if s.key != "" {
		t.Errorf("the server made the key %q, want none where there is one", s.key)
	}
	two, looks := m.makeKey("two", "--project", "b"), m.makeKey("looks", "--project", "a", "--scope", "read")
	status, body := s.ask(one, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)
	var sb struct{ ID string }
	if err := json.Unmarshal([]byte(body), &sb); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s, %v: want a sandbox", status, body, err)
	}
	path := "/v1/sandboxes/" + sb.ID
	for _, c := range []struct {
		key, method, path string
		want              int
	}{
		{one, http.MethodGet, path, http.StatusOK}, {looks, http.MethodGet, path, http.StatusOK}, {two, http.MethodGet, path, http.StatusNotFound},
		{looks, http.MethodDelete, path, http.StatusForbidden}, {two, http.MethodDelete, path, http.StatusNotFound}, {"lsb_nobody", http.MethodGet, path, http.StatusUnauthorized},
	} {
		if status, body := s.ask(c.key, c.method, c.path, ""); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.method, status, body, c.want)
		}
	}
	if _, text, err := m.run("serve", "key", "revoke", "looks"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if status, body := s.ask(looks, http.MethodGet, path, ""); status != http.StatusUnauthorized {
		t.Errorf("with a revoked key: %d %s, want 401", status, body)
	}
	if status, body := s.ask(one, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("remove: %d %s, want 204", status, body)
	}
	s.end(syscall.SIGINT)
	log, text, err := m.run("serve", "audit", "--sandbox", sb.ID, "--json")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var did []string
	for line := range strings.Lines(log) {
		var e struct {
			KeyName string `json:"key_name"`
			Action  string `json:"action"`
			Outcome string `json:"outcome"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		did = append(did, e.KeyName+" "+e.Action+" "+e.Outcome)
	}
	want := []string{"one create-sandbox ok", "looks remove-sandbox scope", "two remove-sandbox not_found", "one remove-sandbox ok"}
	if !slices.Equal(did, want) {
		t.Errorf("the audit log has %q, want %q", did, want)
	}
}

// TestKeysOverHTTP: a key with the scope admin makes keys of its project, lists and revokes them, and those of another project are as if they were not.
func TestKeysOverHTTP(t *testing.T) {
	m := newMachine(t)
	admin, other := m.makeKey("admin", "--project", "a", "--scope", "admin", "--scope", "read", "--expires", "1d"), m.makeKey("other", "--project", "b", "--scope", "admin")
	s := m.start()
	type key struct {
		ID, Name, Secret, Expires, Revoked string
		Scopes                             []string
	}
	ask := func(key, method, path, body string, want int, v any) {
		t.Helper()
		status, text := s.ask(key, method, path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
		}
		if v == nil {
			return
		}
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	var made, next key
	ask(admin, http.MethodPost, "/v1/keys", `{"name": "ci", "scopes": ["read", "admin"]}`, http.StatusCreated, &made)
	if made.Expires == "" {
		t.Errorf("%+v, want a key that ends with its maker", made)
	}
	ask(made.Secret, http.MethodGet, "/v1/sandboxes", "", http.StatusOK, nil)
	ask(made.Secret, http.MethodPost, "/v1/sandboxes", "{}", http.StatusForbidden, nil)
	ask(made.Secret, http.MethodPost, "/v1/keys", `{"name": "next", "scopes": ["read"]}`, http.StatusCreated, &next)
	ask(admin, http.MethodPost, "/v1/keys", `{"name": "ci", "scopes": ["read"]}`, http.StatusConflict, nil)
	ask(admin, http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["write"]}`, http.StatusForbidden, nil)
	ask(admin, http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["read"], "expires_seconds": 90000}`, http.StatusForbidden, nil)
	ask(other, http.MethodDelete, "/v1/keys/"+made.ID, "", http.StatusNotFound, nil)
	var page struct {
		Keys []key
		Next string
	}
	ask(other, http.MethodGet, "/v1/keys", "", http.StatusOK, &page)
	if len(page.Keys) != 1 || page.Keys[0].Name != "other" {
		t.Errorf("%+v, want the key of that project", page.Keys)
	}
	var names []string
	for page.Next = "start"; page.Next != ""; {
		query := "?limit=2"
		if page.Next != "start" {
			query += "&after=" + page.Next
		}
		page.Keys, page.Next = nil, ""
		ask(admin, http.MethodGet, "/v1/keys"+query, "", http.StatusOK, &page)
		for _, k := range page.Keys {
			names = append(names, k.Name)
		}
	}
	if want := []string{"next", "ci", "admin"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for range 2 {
		ask(admin, http.MethodDelete, "/v1/keys/"+made.ID, "", http.StatusNoContent, nil)
	}
	ask(made.Secret, http.MethodGet, "/v1/sandboxes", "", http.StatusUnauthorized, nil)
	ask(next.Secret, http.MethodGet, "/v1/sandboxes", "", http.StatusOK, nil)
	if out, text, err := m.run("serve", "key", "list"); err != nil || !regexp.MustCompile(made.ID+`\s.*revoked`).MatchString(out) {
		t.Errorf("%s %s, %v: want the key, revoked", out, text, err)
	}
	s.end(syscall.SIGTERM)
	log, text, err := m.run("serve", "audit", "--json")
	if err != nil || !strings.Contains(log, `"action":"create-key"`) || !strings.Contains(log, "id "+made.ID+", scopes read admin") || !strings.Contains(log, `"action":"revoke-key"`) || strings.Contains(log, made.Secret) {
		t.Errorf("the audit log has %s (%s, %v), want who made and revoked keys, and no secret", log, text, err)
	}
}

// TestKernelIsShared: requests to a kernel, each of which the server lets go of, follow each other.
func TestKernelIsShared(t *testing.T) {
	m := newMachine(t)
	s := m.start()
	var sb, kernel struct{ ID string }
	status, body := s.ask(s.key, http.MethodPost, "/v1/sandboxes", `{"language": "python"}`)
	if err := json.Unmarshal([]byte(body), &sb); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s, %v: want a sandbox", status, body, err)
	}
	path := "/v1/sandboxes/" + sb.ID
	if status, body := s.ask(s.key, http.MethodPost, path+"/kernels", `{"plain": true}`); json.Unmarshal([]byte(body), &kernel) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a kernel", status, body)
	}
	one := path + "/kernels/" + kernel.ID
	for i := range 10 {
		if status, body := s.ask(s.key, http.MethodPost, one+"/complete", `{"code": "prin", "cursor": 4}`); status != http.StatusOK || !strings.Contains(body, "print") {
			t.Errorf("%d: %d %s, want print", i, status, body)
		}
		s.stdout(s.ask(s.key, http.MethodPost, one+"/cells", `{"code": "x = 1"}`))
		if status, body := s.ask(s.key, http.MethodGet, one+"/variables", ""); status != http.StatusOK || !strings.Contains(body, `"name":"x"`) {
			t.Errorf("%d: %d %s, want x", i, status, body)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if status, body := s.ask(s.key, http.MethodPost, one+"/inspect", `{"code": "len", "cursor": 3}`); status != http.StatusOK {
					t.Errorf("%d: %d %s, want what len is", i, status, body)
				}
			})
		}
		all.Wait()
	}
	s.ask(s.key, http.MethodDelete, path, "")
}

// TestPage types what docs/server.md shows, in its order and in one shell.
func TestPage(t *testing.T) {
	m := newMachine(t)
	s := m.start("--max-volumes", "4")
	page, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	var typed strings.Builder
	typed.WriteString("set -e\n")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		serves := slices.ContainsFunc([]string{"llmsandbox serve\n", "llmsandbox serve --", imagesOfPage}, func(part string) bool { return bytes.Contains(block[1], []byte(part)) })
		if !serves { // or it would not end; images have a test of their own
			typed.Write(block[1])
		}
	}
	script := strings.NewReplacer(
		"http://127.0.0.1:8321", s.address, "export KEY=fJ0…", "export KEY="+s.key, "curl ", "curl --silent --show-error --fail-with-body ",
		"ID=sb-…", `ID=$(curl --silent $U -H "X-API-Key: $KEY" | sed 's/.*"id":"\([^"]*\)".*/\1/')`,
	).Replace(typed.String())
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "data.csv"), []byte("a,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(m.env, "PATH="+filepath.Dir(command)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script)
	}
	for _, want := range []string{`"stdout":"42\n"`, `"labels":{"user":"anna"}`, `"stdout":"a,1\n\n"`, "data.csv\\n", `"value":{"text/plain":"21"}`, "event: stdout\n", `"typed\n"`, `"state":"ended"`, `3\n"`, "event: result", `"files":1`, "project/main.py\n", `"stdout":"1,2\n\n"`, "data/a.csv\n", s.address + "/v1/signed/", "dashboard  builds", "lsb_"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// imagesOfPage is in the block of docs/server.md that makes an image.
const imagesOfPage = "/v1/images"

// TestPageOfImages types that block, again where another test has changed the host's files meanwhile, which the image goes on top of.
func TestPageOfImages(t *testing.T) {
	s := newMachine(t).start("--max-images", "4")
	page, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n([^`]*" + imagesOfPage + ".*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("docs/server.md has no block with %s", imagesOfPage)
	}
	script := "set -e\nKEY=" + s.key + " U=" + s.address + "/v1/sandboxes\n" +
		`trap 'for at in $U/$ID $I/tools:1; do curl --silent $at -H "X-API-Key: $KEY" -X DELETE; done' EXIT` + "\n" +
		strings.NewReplacer("http://127.0.0.1:8321", s.address, "curl ", "curl --silent --show-error --fail-with-body ").Replace(string(block[1]))
	for {
		out, err := exec.Command("bash", "-c", script).CombinedOutput()
		if err != nil && regexp.MustCompile(`changed on the host|have changed since`).Match(out) {
			continue
		}
		if err != nil || !bytes.Contains(out, []byte(`"stdout":"prepared\n"`)) || !bytes.Contains(out, []byte(`"name":"tools:1"`)) {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
		return
	}
}

// TestRefuses: a server that others reach needs keys and TLS, and says so.
func TestRefuses(t *testing.T) {
	m := newMachine(t)
	refused := func(want string, args ...string) {
		t.Helper()
		out, text, err := m.run(append([]string{"serve", "--warm", "0", "--best-effort"}, args...)...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || out != "" || !strings.Contains(text, want) {
			t.Errorf("%v: %v, %s, want an error with %q", args, err, text, want)
		}
	}
	refused("serve key create", "--listen", "0.0.0.0:0")
	refused("belong together", "--tls-cert", "x")
	refused("ADDRESS:PORT", "--listen", "8321")
	refused("exclude each other", "--tls-cert", "x", "--tls-key", "y", "--behind-proxy")
	if _, text, err := m.run("serve", "key", "create", "x"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	refused("TLS is needed", "--listen", "0.0.0.0:0")
}

// TestSchemathesis: a program of others that knows nothing but the document finds no request that the server fails at, or answers
// otherwise than the document says.
func TestSchemathesis(t *testing.T) {
	m := newMachine(t)
	m.env = append(m.env, "PIP_INDEX_URL=http://127.0.0.1:9/", "PIP_RETRIES=0") // nobody is asked for libraries that are made up
	s := m.start("--max-sandboxes", "8", "--max-volumes", "4", "--max-images", "4", "--timeout", "5s", "--ttl", "20m", "--max-ttl", "20m")
	defer func() { // what it has made
		var list struct{ Sandboxes []struct{ ID string } }
		if _, body := s.ask(s.key, http.MethodGet, "/v1/sandboxes", ""); json.Unmarshal([]byte(body), &list) != nil {
			t.Error(body)
		}
		for _, sb := range list.Sandboxes {
			s.ask(s.key, http.MethodDelete, "/v1/sandboxes/"+sb.ID, "")
		}
	}()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	do := func(program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", filepath.Base(program), err, out)
		}
	}
	do("python3", "-m", "venv", "venv")
	do(filepath.Join(dir, "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check", "schemathesis==4.32.5")
	// Left out are checks that a right answer may not pass: a request that fits the document can still ask for more than the operator allows;
	// and a sandbox may have ended where it was not removed. Watches have no end. How long an answer takes is the machine's.
	do(filepath.Join(dir, "venv/bin/schemathesis"), "run", s.address+"/openapi.json", "-H", "Authorization: Bearer "+s.key, "--max-examples", "15", "--checks", "all",
		"--exclude-checks", "positive_data_acceptance,missing_required_header,use_after_free", "--exclude-operation-id", "watch-files", "--exclude-operation-id", "watch-sandboxes", "--workers", "1", "--request-timeout", "120", "--max-response-time", "120", "--seed", "1", "--no-color")
}
