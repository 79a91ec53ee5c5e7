package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A keyed transport sends a key with each request.
type keyed struct {
	*http.Transport
	key string
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", k.key)
	return k.Transport.RoundTrip(r)
}

// An agent is a client of MCP.
type agent struct {
	*sdk.ClientSession
	t *testing.T
}

// connect connects a client, which leaves with the test.
func (s *server) connect(key string) (*agent, error) {
	s.t.Helper()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil).Connect(s.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.address + "/mcp", HTTPClient: &http.Client{Transport: keyed{transport, key}},
	}, nil)
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = session.Close() }) // its key may be revoked, or the server have ended
	return &agent{session, s.t}, nil
}

func (s *server) agent(key string) *agent {
	s.t.Helper()
	a, err := s.connect(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// An answer is what a tool returns.
type answer struct {
	Status, Stdout, Value, Error string
	SessionID                    string `json:"session_id"`
}

func (a *agent) call(tool string, args map[string]any) answer {
	a.t.Helper()
	res, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		a.t.Fatal(err)
	}
	var out answer
	if err := json.Unmarshal(b, &out); err != nil {
		a.t.Fatalf("%s: %v: %s", tool, err, b)
	}
	return out
}

// TestMCP: agents run code with keys of the server; a project's sessions are its own, and a key counts with each request.
func TestMCP(t *testing.T) {
	m := newMachine(t)
	one, also := m.makeKey("one", "--project", "a"), m.makeKey("also", "--project", "a")
	two, looks := m.makeKey("two", "--project", "b"), m.makeKey("looks", "--project", "a", "--scope", "read")
	s := m.start("--network", "full", "--secret", "TOKEN=not-a-real-one@example.org")
	a, b, c := s.agent(one), s.agent(also), s.agent(two)
	if out := a.call("execute_code", map[string]any{"code": "print(6 * 7)"}); out.Status != "ok" || out.Stdout != "42\n" {
		t.Errorf("%+v, want 42", out)
	}
	// A network, which requests of the API may ask for here, the tools do not have.
	const proxies = "env | grep -ci proxy; true"
	if out := a.call("execute_code", map[string]any{"language": "bash", "code": proxies}); out.Stdout != "0\n" {
		t.Errorf("%+v, want no proxy", out)
	}
	if out := s.stdout(s.ask(one, http.MethodPost, "/v1/run", `{"language": "bash", "network": {"mode": "full"}, "code": "`+proxies+`"}`)); out == "0\n" {
		t.Error("with a network there is no proxy, want one")
	}
	id := a.call("create_session", map[string]any{"language": "python"}).SessionID
	use := func(who *agent, code string) answer {
		return who.call("run_in_session", map[string]any{"session_id": id, "code": code})
	}
	if out := use(a, "x = 1"); out.Status != "ok" {
		t.Errorf("%+v, want ok", out)
	}
	if out := use(b, "x + 1"); out.Value != "2" {
		t.Errorf("by another key of the project: %+v, want the value 2", out)
	}
	if out := use(c, "x + 1"); out.Value != "" || !strings.Contains(out.Error, "no such session") {
		t.Errorf("by a key of another project: %+v, want no such session", out)
	}
	if _, err := s.connect(looks); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("by a key that reads: %v, want Forbidden", err)
	}
	if status, body := s.ask(looks, http.MethodPost, "/mcp", "{}"); status != http.StatusForbidden || !strings.Contains(body, "scope write") {
		t.Errorf("by a key that reads: %d %s, want 403, and the scope that it needs", status, body)
	}
	if status, body := s.ask("nobody's", http.MethodPost, "/mcp", "{}"); status != http.StatusUnauthorized {
		t.Errorf("by an unknown key: %d %s, want 401", status, body)
	}
	if _, text, err := m.run("serve", "key", "revoke", "also"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if res, err := b.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_in_session", Arguments: map[string]any{"session_id": id, "code": "x"}}); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("by a key that is revoked: %+v, %v, want Unauthorized", res, err)
	}
	if out := use(a, "x"); out.Value != "1" {
		t.Errorf("%+v, want the value 1", out)
	}
	s.end(syscall.SIGTERM) // also with clients, whose streams are open
}
