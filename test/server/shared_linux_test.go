package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// onBoth runs a test with the flags of a server's database: a file's, and PostgreSQL's.
func onBoth(t *testing.T, test func(t *testing.T, m *machine, flags ...string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newMachine(t)) })
	t.Run("postgres", func(t *testing.T) {
		db, err := testpostgres.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Stop(); err != nil {
				t.Error(err)
			}
		})
		test(t, newMachine(t), "--database", db.Database(t))
	})
}

// TestSharedTokens: a signed URL and where a list goes on are good at another server on the same database, and after all servers have ended.
func TestSharedTokens(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine, flags ...string) {
		key := m.makeKey(append([]string{"one", "--scope", "read", "--scope", "write", "--scope", "audit"}, flags...)...)
		s, other := m.start(flags...), m.start(flags...)
		var made struct{ ID, URL, Next string }
		ask := func(want int, method, path, body string) {
			t.Helper()
			if status, text := s.ask(key, method, path, body); status != want || text != "" && json.Unmarshal([]byte(text), &made) != nil {
				t.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
			}
		}
		ask(http.StatusCreated, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`)
		path := "/v1/sandboxes/" + made.ID
		ask(http.StatusNoContent, http.MethodPut, path+"/files?path=a", "content")
		ask(http.StatusOK, http.MethodPost, path+"/files/sign", `{"path": "a", "method": "GET", "expires_seconds": 600}`)
		ask(http.StatusOK, http.MethodGet, "/v1/audit?limit=1", "")
		signed := strings.TrimPrefix(made.URL, s.address)
		taken := func(s *server) {
			t.Helper()
			if status, body := s.ask("", http.MethodGet, signed, ""); status != http.StatusOK || body != "content" {
				t.Errorf("the signed URL: %d %s, want the content", status, body)
			}
			if status, body := s.ask(key, http.MethodGet, "/v1/audit?limit=1&after="+made.Next, ""); status != http.StatusOK {
				t.Errorf("the list: %d %s, want that it goes on", status, body)
			}
		}
		taken(s)
		taken(other)
		s.end(syscall.SIGKILL)
		other.end(syscall.SIGTERM)
		s = m.start(flags...)
		taken(s)
		if status, body := s.ask(key, http.MethodDelete, path, ""); status != http.StatusNoContent {
			t.Errorf("%d %s, want the sandbox removed", status, body)
		}
		if status, body := s.ask("", http.MethodGet, signed, ""); status != http.StatusNotFound {
			t.Errorf("the signed URL of a sandbox that is gone: %d %s, want 404", status, body)
		}
	})
}
