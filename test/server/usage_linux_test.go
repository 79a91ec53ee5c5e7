package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// cpu is how many seconds of CPU time the project of a key was charged.
func (s *server) cpu(key string) float64 {
	s.t.Helper()
	var u struct {
		Total struct {
			CPU float64 `json:"cpu_seconds"`
		}
	}
	if status, body := s.ask(key, http.MethodGet, "/v1/usage", ""); json.Unmarshal([]byte(body), &u) != nil || status != http.StatusOK {
		s.t.Fatalf("%d %s: want what the project has used", status, body)
	}
	return u.Total.CPU
}

// TestUsageOutlivesServer: a project is charged what its sandbox has used, once, whatever becomes of the servers and whatever the sandbox does without one. A
// project that has used what it may in a day is told to come back on the next one, by the next server, too.
func TestUsageOutlivesServer(t *testing.T) {
	m := newMachine(t)
	a, b := m.makeKey("one", "--project", "a"), m.makeKey("two", "--project", "b")
	burn := func(before string, seconds float64, after string) string {
		code, err := json.Marshal(fmt.Sprintf("import time\n%s\nbegun = time.process_time()\nwhile time.process_time() - begun < %g: pass\n%s", before, seconds, after))
		if err != nil {
			t.Fatal(err)
		}
		return `{"language": "python", "code": ` + string(code) + `}`
	}
	s := m.start()
	s.stdout(s.ask(b, http.MethodPost, "/v1/run", burn("", 0.3, "")))
	other := s.cpu(b)
	if other < 0.3 || s.cpu(a) != 0 {
		t.Fatalf("charged %g s for a run of 0.3 s, and %g s to a project that has run nothing", other, s.cpu(a))
	}
	var sb struct{ ID string }
	if status, body := s.ask(a, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`); json.Unmarshal([]byte(body), &sb) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a sandbox", status, body)
	}
	path, burnt := "/v1/sandboxes/"+sb.ID, 0.0
	check := func(when string) {
		t.Helper()
		// Between both answers nothing runs there but the sandbox's own, which waits.
		charged := s.cpu(a)
		var used struct {
			CPU float64 `json:"cpu_ms"`
		}
		if status, body := s.ask(a, http.MethodGet, path+"/usage", ""); json.Unmarshal([]byte(body), &used) != nil || status != http.StatusOK {
			t.Fatalf("%d %s: want what the sandbox uses", status, body)
		}
		// Both are whole microseconds, which numbers of seconds and milliseconds round differently.
		if of := used.CPU/1000 + 1e-6; charged < burnt || charged > of || charged < of-0.2 {
			t.Errorf("%s: charged %g s of the %g s that the sandbox has used, in programs at least %g s", when, charged, of, burnt)
		}
		if again := s.cpu(b); again != other {
			t.Errorf("%s: the other project is charged %g s, before it was %g s", when, again, other)
		}
	}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s.stdout(s.ask(a, http.MethodPost, path+"/run", burn("", 0.5, "")))
		burnt += 0.5
		check("after a run")
		s.stdout(s.ask(a, http.MethodPost, path+"/run", `{"code": "rm -f go done; mkfifo go done"}`))
		if status, body := s.ask(a, http.MethodPost, path+"/processes", burn("open('go').read()", 0.5, "open('done', 'w').write('done')")); status != http.StatusCreated {
			t.Fatalf("%d %s: want a program", status, body)
		}
		s.end(end)
		if out, text, err := m.run("exec", sb.ID, "--", "bash", "-c", "echo >go; cat done"); err != nil || out != "done" {
			t.Fatalf("%v: %s%s, want the program to end", err, out, text)
		}
		burnt += 0.5
		s = m.start()
		if end == syscall.SIGTERM && s.cpu(b) != other { // of a server that was killed it need not be kept
			t.Errorf("%g s, want the %g s that the server before has charged", s.cpu(b), other)
		}
		other = s.cpu(b)
		if status, body := s.ask(a, http.MethodGet, path+"/usage", ""); status != http.StatusOK { // by which the server has it
			t.Fatalf("%d %s: want the sandbox", status, body)
		}
		check("by the next server after " + end.String())
	}
	s.end(syscall.SIGTERM)
	s = m.start("--project-cpu-per-day", "1s")
	charged := s.cpu(a)
	status, body := s.ask(a, http.MethodPost, path+"/run", `{"code": "1"}`)
	if status != http.StatusTooManyRequests || !strings.Contains(body, `"quota"`) {
		t.Errorf("%d %s, want that a quota of 1 s is reached with %g s", status, body, charged)
	}
	s.stdout(s.ask(b, http.MethodPost, "/v1/run", `{"language": "bash", "code": "true"}`))
	if status, body := s.ask(a, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("%d %s, want that the sandbox can be removed", status, body)
	}
	if after := s.cpu(a); after < charged || after > charged+1 {
		t.Errorf("charged %g s after the removal, want little more than %g s", after, charged)
	}
}
