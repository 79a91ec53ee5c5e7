package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// TestDatabaseGone: while the database does not answer, a program that runs goes on, nobody is let in, and the server says that it
// is not ready. With the database all is as before, and the audit log has what happened.
func TestDatabaseGone(t *testing.T) {
	db := testpostgres.ForTest(t)
	m := newMachine(t)
	source := db.Database(t)
	key := m.makeKey("one", "--database", source)
	s := m.start("--database", source)
	var sb struct{ ID string }
	if status, body := s.ask(key, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`); json.Unmarshal([]byte(body), &sb) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a sandbox", status, body)
	}
	id, path := sb.ID, "/v1/sandboxes/"+sb.ID
	s.stdout(s.ask(key, http.MethodPost, path+"/run", `{"code": "mkfifo go begun"}`))
	type answer struct {
		status int
		body   string
	}
	ended := make(chan answer, 1)
	go func() {
		status, body := s.ask(key, http.MethodPost, path+"/run", `{"code": "echo >begun; cat go"}`)
		ended <- answer{status, body}
	}()
	s.stdout(s.ask(key, http.MethodPost, path+"/run", `{"code": "cat begun"}`))
	if err := db.Pause(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, path: http.StatusServiceUnavailable} {
		if status, body := s.ask(key, http.MethodGet, path, ""); status != want || strings.Contains(body, "pg-") || strings.Contains(body, "postgres") {
			t.Errorf("%s: %d %s, want %d, and nothing about the database's place", path, status, body, want)
		}
	}
	if out, text, err := m.run("exec", id, "--", "bash", "-c", "echo done >go"); err != nil {
		t.Fatalf("%v: %s%s", err, out, text)
	}
	end := <-ended
	if out := s.stdout(end.status, end.body); out != "done\n" {
		t.Errorf("%q, want what the program that ran meanwhile has written", out)
	}
	if err := db.Resume(); err != nil {
		t.Fatal(err)
	}
	if status, body := s.ask(key, http.MethodGet, "/readyz", ""); status != http.StatusOK {
		t.Errorf("with the database again: %d %s, want 200", status, body)
	}
	if status, body := s.ask(key, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("with the database again: %d %s, want 204", status, body)
	}
	s.end(syscall.SIGTERM)
	out, text, err := m.run("serve", "audit", "--json", "--database", source, "--sandbox", id)
	if err != nil || strings.Count(out, "run-in-sandbox") != 3 || strings.Count(out, "remove-sandbox") != 1 {
		t.Errorf("%v: %s%s, want three runs and the removal", err, out, text)
	}
}
