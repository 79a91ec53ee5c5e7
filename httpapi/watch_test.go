package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// TestWatchSandboxes: who watches gets what there is, and then what is created, changed and removed, or ends by itself, by this server and by another one, of
// its own project only.
func TestWatchSandboxes(t *testing.T) {
	b := local.New(&local.Options{StateDir: t.TempDir()})
	c := serve(t, Config{Sandbox: llmsandbox.Options{Backend: b}})
	there, first := c.create(`{"language": "bash", "labels": {"name": "first"}}`)
	next, leave := c.as(keyAReads).changes("/v1/sandboxes/watch")
	others, _ := c.as(keyB).changes("/v1/sandboxes/watch")
	var list struct{ Sandboxes []apitypes.Sandbox }
	name, data := next()
	if err := json.Unmarshal([]byte(data), &list); name != "sandboxes" || err != nil || len(list.Sandboxes) != 1 || list.Sandboxes[0].ID != first.ID || list.Sandboxes[0].Labels["name"] != "first" {
		t.Fatalf("got %s %s, %v, want the sandbox that there is", name, data, err)
	}
	if name, data := others(); name != "sandboxes" || data != `{"sandboxes":[]}` {
		t.Errorf("got %s %s, want that the other project has none", name, data)
	}
	var deadline string
	want := func(op string, s apitypes.Sandbox) {
		t.Helper()
		name, data := next()
		var change apitypes.SandboxChange
		if err := json.Unmarshal([]byte(data), &change); name != "change" || err != nil || change.Op != op || change.Sandbox.ID != s.ID || change.Sandbox.Language != "bash" {
			t.Fatalf("got %s %s, %v, want %s of %s", name, data, err, op, s.ID)
		}
		deadline = fmt.Sprint(change.Sandbox.Deadline)
	}
	path, made := c.create(`{"language": "bash"}`)
	want("create", made)
	was := deadline
	c.want(http.StatusOK, nil, http.MethodPatch, path, `{"lifetime_seconds": 7200}`)
	if want("change", made); deadline == was {
		t.Errorf("the change says that the sandbox ends at %s, as before", deadline)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	want("remove", made)
	_, short := c.create(`{"language": "bash", "lifetime_seconds": 3}`)
	want("create", short)
	want("remove", short)
	elsewhere := serve(t, Config{Sandbox: llmsandbox.Options{Backend: b}})
	path, made = elsewhere.create(`{"language": "bash"}`)
	want("create", made)
	elsewhere.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	want("remove", made)
	leave()

	c.as(keyAAudit).want(http.StatusForbidden, nil, http.MethodGet, "/v1/sandboxes/watch", "")
	path, _ = c.as(keyB).create(`{"language": "bash"}`)
	if name, data := others(); name != "change" || !strings.Contains(data, path[strings.LastIndexByte(path, '/')+1:]) {
		t.Errorf("got %s %s, want the other project's own", name, data)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, there, "")
	c.server.stop()
	if name, data := others(); name != "problem" || !strings.Contains(data, `"stopping"`) {
		t.Errorf("got %s %s, want that the server stops", name, data)
	}
	c.want(http.StatusServiceUnavailable, nil, http.MethodGet, "/v1/sandboxes/watch", "")
}

// TestWatchesBound: a project has so many watches at a time.
func TestWatchesBound(t *testing.T) {
	c := serve(t, Config{})
	for range maxSocketsOfProject {
		c.changes("/v1/sandboxes/watch")
	}
	c.want(http.StatusTooManyRequests, nil, http.MethodGet, "/v1/sandboxes/watch", "")
	c.as(keyB).changes("/v1/sandboxes/watch")
}
