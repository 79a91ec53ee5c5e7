package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b"
)

// TestSDKs: requests of SDKs need keys, count as requests of these, and are in the audit log, beside those of the API.
func TestSDKs(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{E2B: true, Console: true, Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil }})
	key := func(key string) []string { return []string{"Authorization: ", "X-API-Key: " + e2b.Key(key)} }
	ask := func(method, path, body string, want int, headers []string) string {
		t.Helper()
		res, text := c.do(method, path, body, headers...)
		if res.StatusCode != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, res.StatusCode, text, want)
		}
		return text
	}
	var made struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	text := ask(http.MethodPost, "/v2/sandboxes", `{"metadata": {"a": "a-secret"}}`, http.StatusCreated, key(keyA))
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(text, err)
	}
	ask(http.MethodPost, "/v2/sandboxes", `{"timeout": 0}`, http.StatusBadRequest, key(keyA))
	ask(http.MethodPost, "/v2/sandboxes", `{}`, http.StatusForbidden, key(keyAReads))
	ask(http.MethodPost, "/v2/sandboxes", `{}`, http.StatusUnauthorized, key("nobody's"))
	ask(http.MethodGet, "/sandboxes/"+made.ID, "", http.StatusNotFound, key(keyB))
	sandbox := []string{"E2b-Sandbox-Id: " + made.ID, "Authorization: "}
	ask(http.MethodGet, "/health", "", http.StatusNoContent, sandbox)
	ask(http.MethodGet, "/files?path=none", "", http.StatusUnauthorized, append(sandbox, "X-Access-Token: "+strings.Repeat("0", len(made.Token))))
	ask(http.MethodGet, "/files?path=none", "", http.StatusNotFound, append(sandbox, "X-Access-Token: "+made.Token))
	ask(http.MethodGet, "/v1/sandboxes", "", http.StatusOK, nil)           // the API is where it was
	for _, page := range []string{"/sandboxes", "/sandboxes/" + made.ID} { // and the console
		if text := ask(http.MethodGet, page, "", http.StatusOK, []string{"Authorization: "}); !strings.Contains(text, "<html") {
			t.Errorf("%s is %.80q, want a page of the console", page, text)
		}
	}
	ask(http.MethodDelete, "/sandboxes/"+made.ID, "", http.StatusNoContent, key(keyA))
	c.stop()
	var got []string
	for _, e := range events {
		got = append(got, e.Operation+" "+e.Outcome)
		if strings.Contains(e.Detail, "a-secret") || e.Sandbox == "" && e.Outcome == "ok" || e.ProjectID == "" {
			t.Errorf("got %+v, want the sandbox and the caller alone", e)
		}
	}
	if want := []string{"e2b/create ok", "e2b/create Bad Request", "e2b/create Forbidden", "e2b/kill ok"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSDKsRefused: what would be less safe, or not work, is not served.
func TestSDKsRefused(t *testing.T) {
	for name, cfg := range map[string]*Config{"no keys": {E2B: true}} {
		s, err := New(cfg)
		if err == nil {
			t.Errorf("%s: it serves, want an error (close: %v)", name, s.Close(testContext(t)))
		} else if !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%s: %v, want llmsandbox.ErrInvalid", name, err)
		}
	}
}

// TestSDKsTooOften: what SDKs send is counted, that for sandboxes by their project.
func TestSDKsTooOften(t *testing.T) {
	c := serve(t, Config{E2B: true, MaxRequestRate: 1})
	var made struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	c.want(http.StatusCreated, &made, http.MethodPost, "/v2/sandboxes", "{}", "Authorization: ", "X-API-Key: "+keyA)
	for what, ask := range map[string][]string{
		"the key sends":                    {http.MethodGet, "/v2/sandboxes", "X-API-Key: " + keyA},
		"the project's sandboxes are sent": {http.MethodGet, "/files?path=none", "E2b-Sandbox-Id: " + made.ID, "X-Access-Token: " + made.Token},
	} {
		limited := false
		for range 20 {
			res, text := c.do(ask[0], ask[1], "", append([]string{"Authorization: "}, ask[2:]...)...)
			if limited = res.StatusCode == http.StatusTooManyRequests; limited {
				if res.Header.Get("Retry-After") == "" || !strings.Contains(text, what+" more than 1 requests in a second") {
					t.Errorf("%s: %v %s, want who sends too much and when to come again", what, res.Header, text)
				}
				break
			}
		}
		if !limited {
			t.Errorf("%s: no request was one too many", what)
		}
	}
}
