package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// withKey sends a key with each request.
type withKey struct {
	http.RoundTripper
	key string
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", k.key)
	return k.RoundTripper.RoundTrip(r)
}

// agent connects a client of MCP. What it returns calls a tool, and returns the text of the answer and the session that it names.
func (c *client) agent() func(tool string, args map[string]any) (text, session string) {
	c.t.Helper()
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil).Connect(testContext(c.t), &sdk.StreamableClientTransport{
		Endpoint: c.address + mcpPath, HTTPClient: &http.Client{Transport: withKey{http.DefaultTransport, c.key}},
	}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = agent.Close() }) // the server may have ended
	return func(tool string, args map[string]any) (string, string) {
		c.t.Helper()
		res, err := agent.CallTool(testContext(c.t), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			c.t.Fatalf("%s: %v", tool, err)
		}
		text, err := json.Marshal(res.Content)
		if err != nil {
			c.t.Fatal(err)
		}
		var out struct {
			SessionID string `json:"session_id"`
		}
		if structured, err := json.Marshal(res.StructuredContent); err != nil || res.StructuredContent != nil && json.Unmarshal(structured, &out) != nil {
			c.t.Fatalf("%s: %+v, %v", tool, res, err)
		}
		return string(text), out.SessionID
	}
}

// TestTools: what tools do is in the audit log and the metrics as what requests do is, with who has called, and without code.
func TestTools(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{MCP: true, Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil }})
	one, other := c.agent(), c.as(keyB).agent()
	one("execute_code", map[string]any{"language": "bash", "code": "exit 1 # a-secret"})
	_, session := one("create_session", map[string]any{"language": "bash"})
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"run_in_session", map[string]any{"session_id": session, "code": "echo a-secret"}},
		{"write_file", map[string]any{"session_id": session, "path": "a", "content": "a-secret"}},
		{"list_files", map[string]any{"session_id": session}},
		{"edit_file", map[string]any{"session_id": session, "path": "none", "old_text": "a", "new_text": "a-secret"}},
		{"run_in_session", map[string]any{"session_id": session}},
	} {
		one(call.tool, call.args)
	}
	if text, _ := other("run_in_session", map[string]any{"session_id": session, "code": "x"}); !strings.Contains(text, "no such session") {
		t.Errorf("by a key of another project: %s, want no such session", text)
	}
	one("close_session", map[string]any{"session_id": session})
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, "/mcp", "{}")
	c.as("nobody's").want(http.StatusUnauthorized, nil, http.MethodPost, "/mcp", "{}")
	c.as(keyA).want(http.StatusNotFound, nil, http.MethodPost, "/mcp/", "{}")
	_, metrics := c.do(http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`llmsandbox_mcp_calls_total{outcome="error",tool="execute_code"} 1`, `llmsandbox_mcp_calls_total{outcome="ok",tool="list_files"} 1`,
		`llmsandbox_mcp_call_seconds_count{tool="run_in_session"} 3`, `llmsandbox_programs_total{status="error"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("%q is not in\n%s", want, metrics)
		}
	}
	c.stop()
	sandboxes := map[string]int{}
	var got []string
	for _, e := range events {
		if strings.Contains(fmt.Sprint(e), "a-secret") || e.Status != 0 && e.Status != http.StatusForbidden || time.Since(e.Time).Abs() > time.Hour {
			t.Errorf("got %+v, want no code, no status and the time", e)
		}
		if e.Sandbox != "" {
			sandboxes[e.Sandbox]++
		}
		got = append(got, fmt.Sprintln(e.ProjectID, e.KeyName, e.Operation, e.Sandbox != "", e.Outcome))
	}
	want := []string{
		"a one mcp/execute_code true error\n", "a one mcp/create_session true ok\n", "a one mcp/run_in_session true ok\n", "a one mcp/write_file true ok\n",
		"a one mcp/edit_file true file_not_found\n", "a one mcp/run_in_session false failed\n", "b two mcp/run_in_session false setup_failed\n",
		"a one mcp/close_session true ok\n", "a looks mcp false scope\n",
	}
	if !slices.Equal(got, want) || len(sandboxes) != 2 {
		t.Errorf("got\n%s\nwant\n%s\nof two sandboxes, not %v", got, want, sandboxes)
	}
}

// TestRateOfTools: a call of a tool is a request of its key, and one that comes too soon does nothing.
func TestRateOfTools(t *testing.T) {
	c := serve(t, Config{MCP: true, MaxRequestRate: 1})
	one, other := c.agent(), c.as(keyB).agent()
	c.server.rates.wait("a/one", time.Now().Add(time.Hour)) // takes what there is, for as long as the test goes on
	if text, session := one("create_session", map[string]any{"language": "bash"}); session != "" || !strings.Contains(text, "more than 1 requests in a second") {
		t.Errorf("got %s, want that it is too much", text)
	}
	if text, _ := other("get_supported_languages", nil); !strings.Contains(text, "bash") {
		t.Errorf("of another key: got %s, want the languages", text)
	}
	if _, metrics := c.as(keyAReads).do(http.MethodGet, "/metrics", ""); !strings.Contains(metrics, `llmsandbox_mcp_calls_total{outcome="rate",tool="create_session"} 1`) {
		t.Errorf("the call is not in\n%s", metrics)
	}
}
