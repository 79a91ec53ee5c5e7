package e2b

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// byName sends a request to a name below the tests' domain, or to another one.
func (h *host) byName(method, name, path string, header http.Header) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(testContext(h.t), method, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Host, r.Header = name, header
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestPorts: the ports of a sandbox are for anyone who has their names, unless it was asked for otherwise. Those of the data plane are not among them.
func TestPorts(t *testing.T) {
	h := serve(t)
	public, private := h.make(`{}`), h.make(`{"network": {"allowPublicTraffic": false}}`)
	other := h.make(`{"network": {"allowPublicTraffic": false}}`)
	made := h.open(llmsandbox.Options{}) // as the API makes one
	var reached *Port
	h.port = func(w http.ResponseWriter, _ *http.Request, to *Port) error {
		reached = to
		_, _ = io.WriteString(w, "inside")
		return nil
	}
	if public.Traffic != nil || private.Traffic == nil || *private.Traffic == *other.Traffic || *private.Traffic == private.Token {
		t.Fatalf("tokens: %v, %v and %v, want one of its own for each that is not public", public.Traffic, private.Traffic, other.Traffic)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(h.url, "http://"), ":")
	if want := testDomain + ":" + port; *public.Domain != want {
		t.Errorf("the domain is %s, want %s, by which the client has reached the server", *public.Domain, want)
	}
	status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes/"+private.ID+"/connect", `{}`)
	var again sandbox
	if err := json.Unmarshal([]byte(text), &again); err != nil || status != http.StatusOK || again.Traffic == nil || *again.Traffic != *private.Traffic {
		t.Errorf("connect: %d %s, %v, want the same token", status, text, err)
	}
	name := func(port string, id string) string { return port + "-" + id + "." + testDomain }
	token := func(values ...string) http.Header { return http.Header{"E2b-Traffic-Access-Token": values} }
	for about, test := range map[string]struct {
		host   string
		header http.Header
		status int
		says   string
	}{
		"public":                  {name("8000", public.ID), nil, http.StatusOK, "inside"},
		"capitals and a port":     {strings.ToUpper(name("8000", public.ID)) + ":99", nil, http.StatusOK, "inside"},
		"its key":                 {name("8000", public.ID), http.Header{"X-Api-Key": {otherKey}}, http.StatusOK, "inside"},
		"the same in headers":     {name("8000", public.ID), http.Header{sandboxHeader: {public.ID}, portHeader: {"8000"}}, http.StatusOK, "inside"},
		"another in headers":      {name("8000", public.ID), http.Header{sandboxHeader: {private.ID}, portHeader: {"8000"}}, http.StatusBadRequest, "different"},
		"the data's in headers":   {name("8000", public.ID), http.Header{sandboxHeader: {public.ID}}, http.StatusBadRequest, "different"},
		"private":                 {name("8000", private.ID), token(*private.Traffic), http.StatusOK, "inside"},
		"no token":                {name("8000", private.ID), nil, http.StatusForbidden, "not public"},
		"an empty token":          {name("8000", private.ID), token(""), http.StatusForbidden, "not public"},
		"another sandbox's":       {name("8000", private.ID), token(*other.Traffic), http.StatusForbidden, "not public"},
		"a wrong one first":       {name("8000", private.ID), token("x", *private.Traffic), http.StatusForbidden, "not public"},
		"the data's token":        {name("8000", private.ID), token(private.Token), http.StatusForbidden, "not public"},
		"the token as the data's": {name("8000", private.ID), http.Header{tokenHeader: {private.Token}}, http.StatusForbidden, "not public"},
		"a key for a token":       {name("8000", private.ID), http.Header{"X-Api-Key": {testKey}}, http.StatusForbidden, "not public"},
		"made by the API":         {name("8000", outerID(made.sandbox.ID())), nil, http.StatusForbidden, "the API has made it"},
		"no such sandbox":         {name("8000", strings.Repeat("a", len(public.ID))), nil, http.StatusBadGateway, `"message":"The sandbox was not found"`},
		"data":                    {name("49983", public.ID), nil, http.StatusUnauthorized, "token"},
		"data of a private one":   {name("49983", private.ID), token(*private.Traffic), http.StatusUnauthorized, "token"},
		"contexts":                {name("49999", private.ID), nil, http.StatusForbidden, "not public"},
		"contexts with its token": {name("49999", private.ID), token(*private.Traffic), http.StatusNotFound, "404"},
		"public contexts":         {name("49999", public.ID), nil, http.StatusNotFound, "404"},
		// What is spelled otherwise is no name of a port, and goes to the control plane here.
		"zeros":            {name("08000", public.ID), nil, http.StatusNotImplemented, ""},
		"a sign":           {name("+8000", public.ID), nil, http.StatusNotImplemented, ""},
		"port 0":           {name("0", public.ID), nil, http.StatusNotImplemented, ""},
		"port 65536":       {name("65536", public.ID), nil, http.StatusNotImplemented, ""},
		"no id":            {name("8000", "x"), nil, http.StatusNotImplemented, ""},
		"the API's name":   {name("8000", innerID(public.ID)), nil, http.StatusNotImplemented, ""},
		"another domain":   {"8000-" + public.ID + ".evil-" + testDomain, nil, http.StatusNotImplemented, ""},
		"a name below":     {"x." + name("8000", public.ID), nil, http.StatusNotImplemented, ""},
		"a name above":     {name("8000", public.ID) + ".evil.test", nil, http.StatusNotImplemented, ""},
		"a dot at the end": {name("8000", public.ID) + ".", nil, http.StatusNotImplemented, ""},
	} {
		reached = nil
		status, text := h.byName(http.MethodGet, test.host, "/x", test.header)
		if status != test.status || !strings.Contains(text, test.says) || (reached != nil) != (test.says == "inside") {
			t.Errorf("%s: %d %s, %+v, want %d and %q", about, status, text, reached, test.status, test.says)
		}
		if reached != nil && (reached.Project != testProject || reached.Port != 8000 || reached.Host != test.host || outerID(reached.Sandbox.ID()) != public.ID && outerID(reached.Sandbox.ID()) != private.ID) {
			t.Errorf("%s: it is %+v, want port 8000 of its sandbox, asked by its name", about, reached)
		}
	}
	if status, _ := h.byName(http.MethodConnect, name("8000", public.ID), "/", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("CONNECT: %d, want 405", status)
	}
	h.port = func(http.ResponseWriter, *http.Request, *Port) error { return fmt.Errorf("dial: %w", fs.ErrNotExist) }
	if status, text := h.byName(http.MethodGet, name("81", public.ID), "/", nil); status != http.StatusBadGateway ||
		text != `{"sandboxId":"`+public.ID+`","message":"The sandbox is running but port is not open","port":81,"code":502}` {
		t.Errorf("nothing listens: %d %s, want what SDKs tell it by", status, text)
	}
	h.port = func(http.ResponseWriter, *http.Request, *Port) error { return llmsandbox.ErrClosed }
	if status, text := h.byName(http.MethodGet, name("81", public.ID), "/", nil); status != http.StatusBadGateway || !strings.Contains(text, goneMessage) {
		t.Errorf("its sandbox has ended: %d %s, want that it was not found", status, text)
	}
	h.port = func(http.ResponseWriter, *http.Request, *Port) error {
		return &Refusal{Status: http.StatusTeapot, Message: "no"}
	}
	if status, text := h.byName(http.MethodGet, name("81", public.ID), "/", nil); status != http.StatusTeapot || !strings.Contains(text, `"message":"no"`) {
		t.Errorf("refused: %d %s, want why", status, text)
	}
	// Whatever paths of the data plane mean, a port has its own.
	var seen *http.Request
	h.port = func(_ http.ResponseWriter, r *http.Request, _ *Port) error { seen = r; return nil }
	for _, path := range []string{"/files?path=x&signature=y", "/process.Process/StreamInput", "/sandboxes", "/v2/sandboxes?x=1"} {
		if status, text := h.byName(http.MethodOptions, name("8000", public.ID), path, http.Header{"Access-Control-Request-Method": {"GET"}}); status != http.StatusOK || seen.RequestURI != path || seen.Method != http.MethodOptions {
			t.Errorf("%s: %d %s, %+v, want that it goes inside", path, status, text, seen)
		}
	}
}

// TestNotInside: what a request has for this server does not go inside, and the rest does.
func TestNotInside(t *testing.T) {
	h := serve(t)
	made := h.make(`{"network": {"allowPublicTraffic": false}}`)
	var got http.Header
	h.port = func(_ http.ResponseWriter, r *http.Request, _ *Port) error { got = r.Header; return nil }
	name := "8000-" + made.ID + "." + testDomain
	for about, test := range map[string]struct {
		sent http.Header
		want string // of Authorization
	}{
		"nothing":          {http.Header{}, ""},
		"the server's own": {http.Header{"Authorization": {"Bearer inside"}}, "Bearer inside"},
		"user and word":    {http.Header{"Authorization": {"Basic dXNlcjpw"}}, "Basic dXNlcjpw"},
		"no scheme":        {http.Header{"Authorization": {"inside"}}, "inside"},
		"a key":            {http.Header{"Authorization": {"Bearer " + testKey}}, ""},
		"another form":     {http.Header{"Authorization": {"bearer  " + Key(testKey)}}, ""},
		"another project":  {http.Header{"Authorization": {"Token " + otherKey}}, ""},
		"two":              {http.Header{"Authorization": {"Bearer inside", "Bearer " + testKey}}, ""},
		"two, a key first": {http.Header{"Authorization": {"Bearer " + testKey, "Bearer inside"}}, ""},
	} {
		got = nil
		header := test.sent.Clone()
		for name, value := range map[string]string{
			trafficHeader: *made.Traffic, sandboxHeader: made.ID, portHeader: "8000", tokenHeader: made.Token, "X-Api-Key": testKey, "X-Own": "kept",
			"e2b_sandbox_id": "x", "e2b-traffic_access_token": *made.Traffic, "E2B-ANYTHING": "x", "x_api_key": testKey, "X_Access_Token": made.Token,
		} {
			header[name] = []string{value}
		}
		if status, text := h.byName(http.MethodGet, name, "/", header); status != http.StatusOK || got == nil {
			t.Fatalf("%s: %d %s, want that it goes inside", about, status, text)
		}
		if got.Get("X-Own") != "kept" || strings.Join(got.Values("Authorization"), ", ") != test.want {
			t.Errorf("%s: %v goes inside, want the server's own, and Authorization %q", about, got, test.want)
		}
		for name, values := range got {
			text := name + ": " + strings.Join(values, " ")
			if strings.HasPrefix(strings.ToLower(name), "e2b") || slices.ContainsFunc([]string{*made.Traffic, made.Token, testKey}, func(secret string) bool { return strings.Contains(text, secret) }) {
				t.Errorf("%s: %s goes inside", about, text)
			}
		}
	}
}

// TestPortsHost: a request may choose by which host its server inside is asked, and nothing that is none.
func TestPortsHost(t *testing.T) {
	h := serve(t)
	var asked string
	h.port = func(_ http.ResponseWriter, _ *http.Request, to *Port) error { asked = to.Host; return nil }
	for mask, want := range map[string]string{"localhost:${PORT}": "localhost:8000", "${PORT}-my_app.example.com": "8000-my_app.example.com", "fixed": "fixed", "${PORT}": "8000"} {
		made := h.make(`{"network": {"maskRequestHost": "` + mask + `"}}`)
		if status, text := h.byName(http.MethodGet, "8000-"+made.ID+"."+testDomain, "/", nil); status != http.StatusOK || asked != want {
			t.Errorf("%s: %d %s, asked for %q, want %q", mask, status, text, asked, want)
		}
	}
	for _, mask := range []string{":80", "a b", "a:b", "a:80:80", "a:65536", "a/b", "[::1]", "ä", `a\r\nX: y`, `\u0000`, "$PORT", "${port}", "${PORT", strings.Repeat("a", 256)} {
		if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes", `{"network": {"maskRequestHost": "`+mask+`"}}`); status != http.StatusBadRequest || !strings.Contains(text, "maskRequestHost") {
			t.Errorf("%q: %d %s, want that it is refused", mask, status, text)
		}
	}
	made := h.make(`{}`)
	for _, body := range []string{`{"allowPublicTraffic": false}`, `{"maskRequestHost": "x"}`} {
		if status, text, _ := h.ask(testKey, http.MethodPut, "/sandboxes/"+made.ID+"/network", body); status != http.StatusBadRequest || !strings.Contains(text, "when the sandbox is created") {
			t.Errorf("%s: %d %s, want that it is refused", body, status, text)
		}
	}
}

// TestNoDomain: a server without a domain serves no ports, also those of sandboxes that are made now and asked for later, and says so.
func TestNoDomain(t *testing.T) {
	h := serve(t)
	h.server.cfg.Domain = ""
	open, private := h.make(`{"network": {"allowPublicTraffic": true}}`), h.make(`{"network": {"allowPublicTraffic": false}}`)
	if open.Domain != nil || open.Traffic != nil || private.Traffic == nil {
		t.Errorf("%+v and %+v, want no domain, and a token where it is asked for", open, private)
	}
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/sandboxes", `{"network": {"maskRequestHost": "x"}}`); status != http.StatusBadRequest || !strings.Contains(text, "--ports-domain") {
		t.Errorf("%d %s, want that there is no domain", status, text)
	}
	if status, text := h.byName(http.MethodGet, "49999", "/x", http.Header{sandboxHeader: {private.ID}, portHeader: {"49999"}}); status != http.StatusForbidden {
		t.Errorf("contexts: %d %s, want that they need the token", status, text)
	}
	h.server.cfg.Domain = testDomain
	if status, text := h.byName(http.MethodGet, "8000-"+open.ID+"."+testDomain, "/", nil); status != http.StatusForbidden {
		t.Errorf("with a domain since: %d %s, want that it is not public", status, text)
	}
}

// FuzzPortsLabel: what a label has is ports or nothing, and never public by mistake.
func FuzzPortsLabel(f *testing.F) {
	for _, seed := range []string{`{"public":true}`, `{"public":false,"host":"localhost:${PORT}"}`, `{}`, `null`, `[]`, `{"public":1}`, `{"host":"a\r\nb"}`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, label string) {
		p := portsOf(map[string]string{portsLabel: label})
		if p != nil && strings.ContainsAny(p.Host, "\r\n /") {
			t.Errorf("%q has the host %q", label, p.Host)
		}
		if p == nil || !p.Public {
			return
		}
		var is struct{ Public any }
		if err := json.Unmarshal([]byte(label), &is); err != nil || is.Public != true {
			t.Errorf("%q is public", label)
		}
	})
}

// FuzzPortName: a name is of one port of one sandbox, and is what these are written as.
func FuzzPortName(f *testing.F) {
	for _, seed := range []string{"8000-sb0a1b2c3dk3v9x7m2p4qnr6tw.sandboxes.test:80", "08000-sb0a1b2c3dk3v9x7m2p4qnr6tw.sandboxes.test", "8000-.sandboxes.test", ".sandboxes.test", "[::1]", "8000-SB0a1b2c3dk3v9x7m2p4qnr6tw.Sandboxes.test"} {
		f.Add(seed)
	}
	s := &Server{cfg: Config{Domain: testDomain}}
	f.Fuzz(func(t *testing.T, host string) {
		p := s.ofHost(&http.Request{Host: host})
		if p == nil {
			return
		}
		name := fmt.Sprintf("%d-%s.%s", p.port, outerID(p.id), testDomain)
		u, err := url.Parse("http://" + name)
		if p.port < 1 || p.port > 65535 || err != nil || u.Hostname() != name || !strings.HasPrefix(strings.ToLower(host), name) {
			t.Errorf("%q is %+v, want that it is what it is read from", host, p)
		}
	})
}
