package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/testpostgres"
)

// onBoth runs a test with the flags of a server's database: a file's, and PostgreSQL's.
func onBoth(t *testing.T, test func(t *testing.T, m *machine, flags ...string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newMachine(t)) })
	t.Run("postgres", func(t *testing.T) {
		db := testpostgres.ForTest(t)
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
		if out, text, err := m.run(append([]string{"serve", "logout", "--new-secret"}, flags...)...); err != nil {
			t.Fatalf("%v: %s%s", err, out, text)
		}
		taken(s) // until it ends
		s.end(syscall.SIGTERM)
		s = m.start(flags...)
		if status, body := s.ask("", http.MethodGet, signed, ""); status != http.StatusForbidden {
			t.Errorf("the signed URL after its secret was replaced: %d %s, want 403", status, body)
		}
		ask(http.StatusOK, http.MethodPost, path+"/files/sign", `{"path": "a", "method": "GET", "expires_seconds": 600}`)
		signed = strings.TrimPrefix(made.URL, s.address)
		if status, body := s.ask(key, http.MethodDelete, path, ""); status != http.StatusNoContent {
			t.Errorf("%d %s, want the sandbox removed", status, body)
		}
		if status, body := s.ask("", http.MethodGet, signed, ""); status != http.StatusNotFound {
			t.Errorf("the signed URL of a sandbox that is gone: %d %s, want 404", status, body)
		}
	})
}

// TestSharedSessions: a browser's session is good at another server on the same database and after all servers have ended, until it is logged out at one of them, or its
// key is revoked.
func TestSharedSessions(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine, flags ...string) {
		key := m.makeKey(append([]string{"one"}, flags...)...)
		s, other := m.start(flags...), m.start(flags...)
		first, second := s.login(key), s.login(key)
		for _, at := range []*server{s, other} {
			at.look(first, http.StatusOK)
			at.look(second, http.StatusOK)
			at.look(strings.Repeat("x", len(first)), http.StatusUnauthorized)
		}
		if status, body := other.browse(http.MethodPost, "/console/logout", first); status != http.StatusNoContent {
			t.Errorf("logout: %d %s, want 204", status, body)
		}
		s.look(first, http.StatusUnauthorized)
		other.look(first, http.StatusUnauthorized)
		s.end(syscall.SIGKILL)
		other.end(syscall.SIGTERM)
		s, other = m.start(flags...), m.start(flags...)
		s.look(second, http.StatusOK)
		other.look(second, http.StatusOK)
		s.look(first, http.StatusUnauthorized)
		third := s.login(key)
		other.look(third, http.StatusOK)
		if out, text, err := m.run(append([]string{"serve", "logout"}, flags...)...); err != nil || out != "Sessions ended: 2\n" {
			t.Errorf("%v: %s%s, want that two sessions ended", err, out, text)
		}
		for _, session := range []string{second, third} {
			s.look(session, http.StatusUnauthorized)
			other.look(session, http.StatusUnauthorized)
		}
		second = s.login(key)
		other.look(second, http.StatusOK)
		if out, text, err := m.run(append([]string{"serve", "key", "revoke", "one"}, flags...)...); err != nil {
			t.Fatalf("%v: %s%s", err, out, text)
		}
		s.look(second, http.StatusUnauthorized)
		other.look(second, http.StatusUnauthorized)
	})
}

// TestOwnSession: a session of the key that a server makes for itself ends with that server, and is one of no other.
func TestOwnSession(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine, flags ...string) {
		s, other := m.start(flags...), m.start(flags...)
		session := s.login(s.key)
		s.look(session, http.StatusOK)
		other.look(session, http.StatusUnauthorized)
		s.end(syscall.SIGTERM)
		m.start(flags...).look(session, http.StatusUnauthorized)
	})
}

// browserHost is the name that browsers open servers by: without a port in it, cookies have the same name at all of them.
const browserHost = "localhost"

// browse sends a request of a page of the console, and returns the answer's status and body.
func (s *server) browse(method, path, session string) (int, string) {
	s.t.Helper()
	status, body, _ := s.page(method, path, "", session)
	return status, body
}

func (s *server) page(method, path, body, session string) (int, string, []*http.Cookie) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = browserHost
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.AddCookie(&http.Cookie{Name: "llmsandbox", Value: session})
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
	return res.StatusCode, string(text), res.Cookies()
}

// login logs a browser in with a key, and returns its session.
func (s *server) login(key string) string {
	s.t.Helper()
	status, body, cookies := s.page(http.MethodPost, "/console/login", `{"key": "`+key+`"}`, "")
	if status != http.StatusNoContent || len(cookies) != 1 {
		s.t.Fatalf("login: %d %s, %d cookies, want 204 and one", status, body, len(cookies))
	}
	return cookies[0].Value
}

// look fails unless a page of a session is answered with a status.
func (s *server) look(session string, want int) {
	s.t.Helper()
	if status, body := s.browse(http.MethodGet, "/v1/sandboxes", session); status != want {
		s.t.Errorf("a page of the session: %d %s, want %d", status, body, want)
	}
}

// TestSharedOnce: of requests with the same Idempotency-Key that two servers on the same database get at once, one is carried out, and both servers have its answer
// then.
func TestSharedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, m *machine, flags ...string) {
		key := m.makeKey(append([]string{"one"}, flags...)...)
		servers := []*server{m.start(flags...), m.start(flags...)}
		create := func(s *server) (int, string) {
			return s.ask(key, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`, "Idempotency-Key: once")
		}
		const clients = 6
		var statuses [clients]int
		var bodies [clients]string
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() { statuses[i], bodies[i] = create(servers[i%2]) })
		}
		all.Wait()
		status, made := create(servers[0])
		if status != http.StatusCreated {
			t.Fatalf("%d %s, want the sandbox", status, made)
		}
		if status, again := create(servers[1]); status != http.StatusCreated || again != made {
			t.Errorf("%d %s, want as from the other server\n%s", status, again, made)
		}
		created := 0
		for i, status := range statuses {
			switch {
			case status == http.StatusCreated && bodies[i] == made:
				created++
			case status != http.StatusConflict || !strings.Contains(bodies[i], `"idempotency"`):
				t.Errorf("%d %s, want the sandbox, or that it is being made", status, bodies[i])
			}
		}
		if created == 0 {
			t.Error("none of them has made it")
		}
		var list struct{ Sandboxes []struct{ ID string } }
		if status, body := servers[1].ask(key, http.MethodGet, "/v1/sandboxes", ""); json.Unmarshal([]byte(body), &list) != nil || status != http.StatusOK || len(list.Sandboxes) != 1 {
			t.Fatalf("%d %s, want one sandbox", status, body)
		}
		if status, body := servers[0].ask(key, http.MethodDelete, "/v1/sandboxes/"+list.Sandboxes[0].ID, ""); status != http.StatusNoContent {
			t.Errorf("%d %s, want it removed", status, body)
		}
	})
}

// TestSharedForward: a session and a signed URL count at the server that holds the sandbox, to which another has forwarded the request.
func TestSharedForward(t *testing.T) {
	db := testpostgres.ForTest(t)
	m, source := newMachine(t), db.Database(t)
	key := m.makeKey("one", "--database", source)
	a, b := m.startReplica(source, key), m.startReplica(source, key)
	var made struct{ ID, URL string }
	if status, body := a.ask(key, http.MethodPost, "/v1/sandboxes", `{"language": "bash"}`); json.Unmarshal([]byte(body), &made) != nil || status != http.StatusCreated {
		t.Fatalf("%d %s: want a sandbox", status, body)
	}
	path := "/v1/sandboxes/" + made.ID
	session := b.login(key)
	if status, body, _ := b.page(http.MethodPost, path+"/run", `{"code": "echo content >a"}`, session); status != http.StatusOK || !strings.Contains(body, `"ok"`) {
		t.Errorf("run by a session: %d %s, want ok", status, body)
	}
	if status, body, _ := b.page(http.MethodPost, path+"/files/sign", `{"path": "a", "method": "GET", "expires_seconds": 600}`, session); status != http.StatusOK || json.Unmarshal([]byte(body), &made) != nil {
		t.Fatalf("sign by a session: %d %s, want a URL", status, body)
	}
	signed := strings.TrimPrefix(made.URL, "http://"+browserHost)
	if status, body := b.ask("", http.MethodGet, signed, ""); status != http.StatusOK || body != "content\n" {
		t.Errorf("the signed URL: %d %s, want the content", status, body)
	}
	if status, body := b.browse(http.MethodPost, "/console/logout", session); status != http.StatusNoContent {
		t.Errorf("logout: %d %s, want 204", status, body)
	}
	for _, s := range []*server{a, b} {
		if status, body := s.browse(http.MethodGet, path, session); status != http.StatusUnauthorized {
			t.Errorf("after the logout: %d %s, want 401", status, body)
		}
	}
	if status, body := b.ask(key, http.MethodDelete, path, ""); status != http.StatusNoContent {
		t.Errorf("remove: %d %s, want 204", status, body)
	}
}
