package e2b

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// ask sends a request of the control plane, and returns the answer's status, body and headers.
func (h *host) ask(key, method, path, body string, headers ...string) (int, string, http.Header) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(testContext(h.t), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("X-API-KEY", key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

// make makes a sandbox by a request and returns what the answer says of it.
func (h *host) make(body string, headers ...string) (made sandbox) {
	h.t.Helper()
	status, text, _ := h.ask(Key(testKey), http.MethodPost, "/v2/sandboxes", body, headers...)
	if err := json.Unmarshal([]byte(text), &made); status != http.StatusCreated || err != nil {
		h.t.Fatalf("create %s: %d %s, %v", body, status, text, err)
	}
	return made
}

func TestLife(t *testing.T) {
	h := serve(t)
	first := h.make(`{"templateID": "base", "timeout": 100, "metadata": {"who": "me & you", "n": "1"}, "envVars": {"A": "1"}, "allow_internet_access": true, "new": [1]}`)
	if first.Template != "base" || first.Client == "" || first.Version != envdVersion || len(first.Token) != 64 || first.Domain == nil || innerID(first.ID) == "" {
		t.Errorf("it is %+v, want all that SDKs need", first)
	}
	second := h.make(`{"metadata": {"n": "2"}}`)
	var info listed
	_, text, _ := h.ask(testKey, http.MethodGet, "/sandboxes/"+first.ID, "")
	if err := json.Unmarshal([]byte(text), &info); err != nil || info.Metadata["who"] != "me & you" || info.Token != first.Token || info.State != running || strings.Contains(text, "null") {
		t.Errorf("info: %s, %v", text, err)
	}
	if left := time.Until(info.End); left > 100*time.Second || left < 40*time.Second {
		t.Errorf("it ends in %v, want within the 100 seconds", left)
	}

	list := func(key, query string) (ids []string, next string) {
		t.Helper()
		status, text, header := h.ask(key, http.MethodGet, "/v2/sandboxes"+query, "")
		var all []listed
		if err := json.Unmarshal([]byte(text), &all); status != http.StatusOK || err != nil {
			t.Fatalf("list %s: %d %s, %v", query, status, text, err)
		}
		for _, l := range all {
			ids = append(ids, l.ID)
			if l.Token != "" {
				t.Errorf("list %s has tokens", query)
			}
		}
		if _, there := header["X-Next-Token"]; there && header.Get("X-Next-Token") == "" {
			t.Errorf("list %s: an empty X-Next-Token, want none", query)
		}
		return ids, header.Get("X-Next-Token")
	}
	filter := func(pairs string) string { return "?metadata=" + url.QueryEscape(pairs) }
	for query, want := range map[string][]string{
		"":                                   {second.ID, first.ID},
		"?order=asc":                         {first.ID, second.ID},
		"?order=asc&limit=2":                 {first.ID, second.ID},
		filter("who=me%2520%2526%2520you"):   {first.ID},
		filter("n=2&who=x"):                  nil,
		"?state=paused":                      nil,
		"?state=paused,running":              {second.ID, first.ID},
		"?template=none":                     nil,
		"?startedAfter=2999-01-01T00:00:00Z": nil,
		"?startedAfter=" + url.QueryEscape(info.Started.Format(time.RFC3339Nano)): {second.ID, first.ID},
	} {
		if ids, next := list(testKey, query); !slices.Equal(ids, want) || next != "" {
			t.Errorf("list %q: %v and next %q, want %v", query, ids, next, want)
		}
	}
	page, next := list(testKey, "?limit=1")
	rest, end := list(testKey, "?limit=1&nextToken="+next)
	if !slices.Equal(page, []string{second.ID}) || !slices.Equal(rest, []string{first.ID}) || end != "" {
		t.Errorf("pages: %v, %v, and then %q", page, rest, end)
	}
	if ids, _ := list(otherKey, ""); len(ids) > 0 {
		t.Errorf("another project sees %v", ids)
	}

	// connect extends and never shortens; timeout does both.
	for _, c := range []struct {
		path, body string
		status     int
		least      time.Duration
	}{
		{"connect", `{"timeout": 10}`, http.StatusOK, 50 * time.Second},
		{"connect", `{"timeout": 5000}`, http.StatusOK, 4900 * time.Second},
		{"refreshes", `{"duration": 10}`, http.StatusNoContent, 4800 * time.Second},
		{"timeout", `{"timeout": 600}`, http.StatusNoContent, 500 * time.Second},
	} {
		if status, text, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+first.ID+"/"+c.path, c.body); status != c.status || c.status == http.StatusOK && !strings.Contains(text, first.Token) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, text)
		}
		_, text, _ := h.ask(testKey, http.MethodGet, "/sandboxes/"+first.ID+"-old", "")
		if err := json.Unmarshal([]byte(text), &info); err != nil || time.Until(info.End) < c.least || time.Until(info.End) > c.least+time.Hour {
			t.Errorf("after %s %s it ends in %v: %s, %v", c.path, c.body, time.Until(info.End), text, err)
		}
	}

	// A key that reads may only look, and another project's finds nothing.
	for _, c := range []struct {
		key, method, path string
		want              int
	}{
		{readKey, http.MethodDelete, "/sandboxes/" + first.ID, http.StatusForbidden},
		{readKey, http.MethodPost, "/v2/sandboxes", http.StatusForbidden},
		{readKey, http.MethodGet, "/sandboxes/" + first.ID, http.StatusOK},
		{otherKey, http.MethodGet, "/sandboxes/" + first.ID, http.StatusNotFound},
		{otherKey, http.MethodDelete, "/sandboxes/" + first.ID, http.StatusNotFound},
		{otherKey, http.MethodPost, "/sandboxes/" + first.ID + "/timeout", http.StatusNotFound},
		{otherKey, http.MethodPost, "/v2/sandboxes/" + first.ID + "/connect", http.StatusNotFound},
		{otherKey, http.MethodPut, "/sandboxes/" + first.ID + "/network", http.StatusNotFound},
		{testKey, http.MethodGet, "/sandboxes/none", http.StatusNotFound},
		{testKey, http.MethodDelete, "/sandboxes/sb00000000aaaaaaaaaaaaaaaa", http.StatusNotFound},
		{"wrong", http.MethodGet, "/v2/sandboxes", http.StatusUnauthorized},
		{"", http.MethodGet, "/v2/sandboxes", http.StatusUnauthorized},
		{testKey, http.MethodPost, "/sandboxes/" + first.ID + "/fork", http.StatusNotImplemented},
		{readKey, http.MethodPost, "/sandboxes/" + first.ID + "/pause", http.StatusForbidden},
		{otherKey, http.MethodPost, "/sandboxes/" + first.ID + "/pause", http.StatusNotFound},
		{testKey, http.MethodGet, "/v2/sandboxes?limit=101", http.StatusBadRequest},
		{testKey, http.MethodGet, "/v2/sandboxes?nextToken=x", http.StatusBadRequest},
	} {
		body := ""
		if c.method == http.MethodPost {
			body = `{"timeout": 5}`
		}
		status, text, header := h.ask(c.key, c.method, c.path, body)
		var failed struct {
			Code    int
			Message string
		}
		if status != c.want || status != http.StatusOK && (json.Unmarshal([]byte(text), &failed) != nil || failed.Code != status || failed.Message == "") {
			t.Errorf("%s %s as %q: %d %s, want %d", c.method, c.path, c.key, status, text, c.want)
		}
		if status == http.StatusNotImplemented && header.Get("Should-Retry") != "false" {
			t.Errorf("%s: it may be tried again", c.path)
		}
	}

	if status, _, _ := h.ask(testKey, http.MethodDelete, "/sandboxes/"+first.ID, ""); status != http.StatusNoContent {
		t.Errorf("kill: %d", status)
	}
	if status, text, _ := h.ask(testKey, http.MethodGet, "/health", "", sandboxHeader, first.ID); status != http.StatusBadGateway || !strings.Contains(text, "was not found") || !strings.Contains(text, first.ID) {
		t.Errorf("health of one that was killed: %d %s", status, text)
	}
	if status, _, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+second.ID+"/timeout", `{"timeout": 0}`); status != http.StatusNoContent {
		t.Errorf("a timeout of 0: %d", status)
	}
	if ids, _ := list(testKey, ""); len(ids) > 0 {
		t.Errorf("%v are left", ids)
	}
}

// TestCreateRefused: what bounds a sandbox is kept or refused, and nothing is made.
func TestCreateRefused(t *testing.T) {
	h := serve(t)
	for body, want := range map[string]string{
		`{"timeout": 0}`:                         "400 timeout",
		`{"timeout": -1}`:                        "400 timeout",
		`{"timeout": 1e300}`:                     "400 lifetime",
		`{"timeout": "x"}`:                       "400 the body",
		`[`:                                      "400 the body",
		`{"autoPauseMemory": false}`:             "400 autoPause",
		`{"iam": {"tokens": 1}}`:                 "400 iam",
		`{"network": {"rules": {"a.test": []}}}`: "400 network.rules",
		`{"network": {"egressProxy": {"address": "x"}}}`:                  "400 network.egressProxy",
		`{"network": {"dnsServers": ["1.1.1.1"]}}`:                        "400 network.dnsServers",
		`{"network": {"httpsPorts": [1]}}`:                                "400 network.httpsPorts",
		`{"network": {"maskRequestHost": "/"}}`:                           "400 network.maskRequestHost",
		`{"network": {"denyOut": ["10.0.0.0/8"]}}`:                        "400 network.denyOut",
		`{"network": {"allowOut": ["a.test"]}}`:                           "400 network.allowOut",
		`{"network": {"allowOut": ["a.test"], "denyOut": ["0.0.0.0/0"]}}`: "400 not allowed",
		`{"templateID": "none"}`:                                          "404 none",
		`{"volumeMounts": [{"name": "kept", "path": "/kept"}]}`:           "400 volumes",
		`{"metadata": "` + strings.Repeat("x", maxBody) + `"}`:            "413 bytes",
	} {
		status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes", body)
		code, words, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != code || !strings.Contains(text, words) {
			t.Errorf("create %.80s: %d %s, want %s", body, status, text, want)
		}
	}
	if all, err := h.service.List(testContext(t), testProject); err != nil || len(all) > 0 {
		t.Errorf("%v, %v were made", all, err)
	}
}

func TestIdempotency(t *testing.T) {
	h := serve(t)
	// Without records, what was made is forgotten with the server; the key is taken nevertheless.
	first := h.make(`{"timeout": 60}`, "Idempotency-Key", "one")
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes", `{"timeout": 60}`, "Idempotency-Key", "one"); status != http.StatusCreated || !strings.Contains(text, first.ID) {
		t.Errorf("again: %d %s, want the same sandbox", status, text)
	}
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes", `{"timeout": 61}`, "Idempotency-Key", "one"); status != http.StatusConflict {
		t.Errorf("another body: %d %s, want %d", status, text, http.StatusConflict)
	}
}

// TestNetworkOfRequest: a sandbox reaches what the operator allows, or the less that is asked for.
func TestNetworkOfRequest(t *testing.T) {
	h := serve(t)
	yes, no := true, false
	for _, c := range []struct {
		internet *bool
		asked    *network
		want     llmsandbox.NetworkMode
	}{
		{nil, nil, ""},
		{&yes, &network{}, ""},
		{&no, nil, llmsandbox.NetworkNone},
		{nil, &network{Deny: []string{"0.0.0.0/0"}}, llmsandbox.NetworkNone},
		{nil, &network{Deny: []string{"0.0.0.0/0"}, Allow: []string{"a.test"}}, llmsandbox.NetworkAllow},
		{nil, &network{Allow: []string{"10.0.0.1", "fe80::/10"}}, ""},
	} {
		if n, err := h.server.network(c.internet, c.asked); err != nil || n.Mode != c.want {
			t.Errorf("%v %+v: %+v, %v, want %q", c.internet, c.asked, n, err, c.want)
		}
	}
}

func TestCORS(t *testing.T) {
	h := serve(t)
	status, _, header := h.ask("", http.MethodOptions, "/v2/sandboxes", "", "Origin", "https://app.test", "Access-Control-Request-Method", "POST")
	if status != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("%d %v, want leave for all pages", status, header)
	}
}

func TestPlaces(t *testing.T) {
	const id = "sb-0a1b2c3d-k3v9x7m2p4qnr6tw"
	h := serve(t)
	for _, c := range []struct {
		host, id, port string
		want           *place
		refused        bool
	}{
		{"127.0.0.1:80", "", "", nil, false},
		{"127.0.0.1", outerID(id), "", &place{id, envdPort}, false},
		{"127.0.0.1", outerID(id) + "-client", "49999", &place{id, interpreterPort}, false},
		{"127.0.0.1", outerID(id), "70000", nil, true},
		{"49983-" + outerID(id) + ".sandboxes.test:8443", "", "", &place{id, envdPort}, false},
		{"49983-" + outerID(id) + ".sandboxes.test", outerID(id), "49983", &place{id, envdPort}, false},
		{"8000-" + outerID(id) + ".sandboxes.test", outerID(id), "49983", nil, true},
		{"8000-" + id + ".sandboxes.test", "", "", nil, false},
		{"x.sandboxes.test", "", "", nil, false},
	} {
		r := &http.Request{Host: c.host, Header: http.Header{}, URL: &url.URL{Path: "/health"}}
		if c.id != "" {
			r.Header.Set(sandboxHeader, c.id)
		}
		if c.port != "" {
			r.Header.Set(portHeader, c.port)
		}
		p, err := h.server.place(r)
		if c.refused != (err != nil) || !c.refused && (p == nil) != (c.want == nil) || p != nil && c.want != nil && *p != *c.want {
			t.Errorf("%s %s %s: %+v, %v, want %+v", c.host, c.id, c.port, p, err, c.want)
		}
	}
}

func FuzzIDs(f *testing.F) {
	f.Add("sb0a1b2c3dk3v9x7m2p4qnr6tw", "bjE=")
	f.Fuzz(func(t *testing.T, id, cursor string) {
		if inner := innerID(id); inner != "" && outerID(inner) != id {
			t.Errorf("%q is %q inside, and that %q outside", id, inner, outerID(inner))
		}
		_, _ = parseCursor(cursor)
		_, _ = metadataOf(cursor)
	})
}
