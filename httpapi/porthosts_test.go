package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

const portsDomain = "ports.example.org"

// at is a request by the name of a port, without a redirect being followed.
func (c *client) at(host, method, path, body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	before := http.DefaultClient.CheckRedirect
	http.DefaultClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { http.DefaultClient.CheckRedirect = before }()
	return c.do(method, path, body, append([]string{"Host: " + host}, headers...)...)
}

// TestPortHosts: a port by its name is private, has an origin of its own, and is for those who have a key or a share of it.
func TestPortHosts(t *testing.T) {
	c := serve(t, Config{PortsDomain: portsDomain})
	sandbox, _ := c.listen()
	_, id, _ := strings.Cut(sandbox, "/sandboxes/")
	_, apiPort, _ := strings.Cut(strings.TrimPrefix(c.address, "http://"), ":")
	host := "8000-" + id + "." + portsDomain
	nobody := c.as("")
	var got received
	receive := func(name string, res *http.Response, text string) {
		t.Helper()
		got = received{}
		if err := json.Unmarshal([]byte(text), &got); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, want an answer from inside", name, res.StatusCode, text)
		}
	}
	res, text := c.at(host, http.MethodGet, "/a%2Fb?x=1", "", "Cookie: own=1")
	if receive("a key", res, text); got.Path != "/a%2Fb?x=1" || got.header("Authorization") != "" || got.header("Host") != "localhost:8000" || got.header("Cookie") != "own=1" {
		t.Errorf("got %+v, want the request without its key", got)
	}

	var shared apitypes.Share
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, sandbox+"/shares", `{"port": 8000}`)
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodPost, sandbox+"/shares", `{"port": 8000}`)
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, sandbox+"/shares", `{"port": 0}`)
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, sandbox+"/shares", `{"port": 8000, "expires_seconds": 86401}`)
	c.want(http.StatusCreated, &shared, http.MethodPost, sandbox+"/shares", `{"port": 8000, "expires_seconds": 600}`)
	u, err := url.Parse(shared.URL)
	if err != nil || u.Host != host+":"+apiPort || u.Scheme != "http" || time.Until(shared.Expires) > 10*time.Minute || time.Until(shared.Expires) < 0 {
		t.Fatalf("%+v, %v: want an address of the port for ten minutes", shared, err)
	}
	res, text = nobody.at(u.Host, http.MethodGet, u.RequestURI(), "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
	cookies := res.Cookies()
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Domain != "" || cookies[0].Path != "/" {
		t.Fatalf("%d %v %s, want a cookie of this host only, and the clean address", res.StatusCode, res.Header, text)
	}
	cookie := "Cookie: " + cookies[0].Name + "=" + cookies[0].Value
	own := "http://" + u.Host
	for name, headers := range map[string][]string{
		"opened": {"Sec-Fetch-Site: none"}, "its own page": {"Origin: " + own, "Sec-Fetch-Site: same-origin"}, "no browser": nil,
		"a link": {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
	} {
		res, text := nobody.at(u.Host, http.MethodGet, "/", "", append(headers, cookie+"; own=1")...)
		if receive(name, res, text); got.header("Cookie") != "own=1" || res.Header.Get("Content-Security-Policy") != "" || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %+v, want the server's own cookie only", name, got)
		}
	}
	hostile := "/?" + url.Values{"Set-Cookie": {"own=2; Domain=ports.example.org; Path=/x"}, "Access-Control-Allow-Origin": {"*"}, "Clear-Site-Data": {`"*"`}}.Encode()
	res, _ = nobody.at(u.Host, http.MethodGet, hostile, "", cookie)
	if set := res.Header.Values("Set-Cookie"); len(set) != 1 || set[0] != "own=2; Path=/x" || res.Header.Get("Access-Control-Allow-Origin") != "" || res.Header.Get("Clear-Site-Data") != "" {
		t.Errorf("%v, want a cookie of this host only", res.Header)
	}
	for _, name := range []string{shareCookie, "__Host-" + shareCookie, "__host-LLMSANDBOX-share"} {
		if res, _ := nobody.at(u.Host, http.MethodGet, "/?Set-Cookie="+url.QueryEscape(name+"=x"), "", cookie); len(res.Header.Values("Set-Cookie")) != 0 {
			t.Errorf("%v, want that nobody inside says who may use it", res.Header)
		}
	}
	for location, want := range map[string]string{"http://localhost:8000/x": "/x", "//localhost:8000//evil.example": "/evil.example", "https://login.example/": "https://login.example/"} {
		path := "/?status=302&Location=" + url.QueryEscape(location)
		if res, _ := nobody.at(u.Host, http.MethodGet, path, "", cookie); res.Header.Get("Location") != want {
			t.Errorf("a redirect to %s: %q, want %q", location, res.Header.Get("Location"), want)
		}
		if res, _ := c.at(u.Host, http.MethodGet, path, ""); res.Header.Get("Location") != want && strings.HasPrefix(want, "/") || strings.Contains(res.Header.Get("Location"), "login") {
			t.Errorf("with a key, a redirect to %s: %q, want that no other server gets the key", location, res.Header.Get("Location"))
		}
	}

	other := "8000-" + id[:len(id)-1] + "0." + portsDomain
	token := u.Query().Get("token")
	for name, test := range map[string]struct {
		client       *client
		host, method string
		path         string
		headers      []string
		status       int
	}{
		"no key":                  {nobody, host, http.MethodGet, "/", nil, http.StatusUnauthorized},
		"another project":         {c.as(keyB), host, http.MethodGet, "/", nil, http.StatusNotFound},
		"another key":             {c.as("nobody"), host, http.MethodGet, "/", nil, http.StatusUnauthorized},
		"another key and a share": {c.as("nobody"), host, http.MethodGet, "/", []string{cookie}, http.StatusUnauthorized},
		"a key that reads":        {c.as(keyAReads), host, http.MethodGet, "/", nil, http.StatusForbidden},
		"another port":            {nobody, "9000" + host[4:], http.MethodGet, "/", []string{cookie}, http.StatusUnauthorized},
		"another sandbox":         {nobody, other, http.MethodGet, "/", []string{cookie}, http.StatusUnauthorized},
		"a changed share":         {nobody, host, http.MethodGet, "/", []string{cookie[:len(cookie)-4] + "AAAA"}, http.StatusUnauthorized},
		"no share":                {nobody, host, http.MethodGet, sharePath, nil, http.StatusUnauthorized},
		"a share of another":      {nobody, other, http.MethodGet, sharePath + "?token=" + token, nil, http.StatusUnauthorized},
		"a port as no number":     {nobody, "08000" + host[4:], http.MethodGet, "/", []string{cookie}, http.StatusNotFound},
		"the domain itself":       {c, portsDomain, http.MethodGet, "/v1/sandboxes", nil, http.StatusForbidden},
		"a name below":            {c, "x." + host, http.MethodGet, "/", nil, http.StatusNotFound},
		"no domain of ours":       {c, "8000-" + id + ".evil.example", http.MethodGet, "/", nil, http.StatusForbidden},
		"a name that ends so":     {c, "8000-" + id + ".evil-" + portsDomain, http.MethodGet, "/", nil, http.StatusForbidden},
		"another page":            {nobody, u.Host, http.MethodGet, "/", []string{cookie, "Origin: https://evil.example"}, http.StatusForbidden},
		"a page of another port":  {nobody, u.Host, http.MethodPost, "/", []string{cookie, "Origin: http://9000" + u.Host[4:]}, http.StatusForbidden},
		"its picture":             {nobody, u.Host, http.MethodGet, "/", []string{cookie, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}, http.StatusForbidden},
		"its frame":               {nobody, u.Host, http.MethodGet, "/", []string{cookie, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, http.StatusForbidden},
		"its form":                {nobody, u.Host, http.MethodPost, "/", []string{cookie, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, http.StatusForbidden},
		"no clean path":           {nobody, u.Host, http.MethodGet, "/%2e%2e/%2e%2e/shares", []string{cookie}, http.StatusBadRequest},
		"an operation of the API": {nobody, u.Host, http.MethodGet, "/openapi.json?status=404", []string{cookie}, http.StatusNotFound},
	} {
		res, text := test.client.at(test.host, test.method, test.path, "", test.headers...)
		if res.StatusCode != test.status || strings.Contains(text, "openapi\"") || len(res.Cookies()) > 0 {
			t.Errorf("%s: %d %v %s, want %d", name, res.StatusCode, res.Header, text, test.status)
		}
	}
	// By their names, ports have WebSockets, which pages of others have not.
	for origin, want := range map[string]int{own: http.StatusSwitchingProtocols, "": http.StatusSwitchingProtocols, "http://9000" + u.Host[4:]: http.StatusForbidden, "null": http.StatusForbidden} {
		r := nobody.request(http.MethodGet, "/ws", "", "Host: "+u.Host, cookie, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("a WebSocket of %q: %d, want %d", origin, res.StatusCode, want)
		}
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, sandbox, "")
	if res, text := nobody.at(host, http.MethodGet, "/", "", cookie); res.StatusCode != http.StatusNotFound {
		t.Errorf("after the sandbox's end: %d %s, want 404", res.StatusCode, text)
	}
}

// TestPortsDomain: which domains can be that of ports, and what a server without one answers.
func TestPortsDomain(t *testing.T) {
	for domain, hosts := range map[string][]string{
		"Ports.example.org": nil, "ports": nil, ".example.org": nil, "example.org.": nil, "ports.example.org:80": nil, "*.example.org": nil, "a..b": nil, "ports.example.org": {"api.ports.example.org"},
	} {
		if _, err := New(&Config{PortsDomain: domain, Hosts: hosts}); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%q with %q: %v, want ErrInvalid", domain, hosts, err)
		}
	}
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	if res, text := c.do(http.MethodPost, path+"/shares", `{"port": 8000}`); res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, `"unsupported"`) {
		t.Errorf("%d %s, want that there is no domain", res.StatusCode, text)
	}
}

// TestShares: a share is of one port until its end, and of one server.
func TestShares(t *testing.T) {
	s, err := newSealer(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := portHost{"sb-1", 80}
	token := func(lasts time.Duration) string {
		text, err := s.seal(sharePath, time.Now().Add(lasts), share{Project: "a", ID: h.id, Port: h.port})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := token(time.Hour)
	if found, end, ok := s.openShare(good, h); !ok || found.Project != "a" || strings.Contains(good, "sb-1") || time.Until(end) > time.Hour || time.Until(end) < 59*time.Minute {
		t.Errorf("%+v, %v, %t, want what was shared", found, end, ok)
	}
	other, err := newSealer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := other.openShare(good, h); ok {
		t.Error("another server takes it")
	}
	for i := range good {
		changed := []byte(good)
		changed[i] ^= 1
		if _, _, ok := s.openShare(string(changed), h); ok {
			t.Errorf("with byte %d changed, it is taken", i)
		}
	}
	for _, bad := range []string{"", "?", good + "A", good[1:], good + "=", strings.Repeat("A", 4000), token(-time.Second)} {
		if _, _, ok := s.openShare(bad, h); ok {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, of := range []portHost{{"sb-1", 81}, {"sb-2", 80}} {
		if _, _, ok := s.openShare(good, of); ok {
			t.Errorf("it is taken for %v", of)
		}
	}
}

// TestShareByHTTPS: where clients speak HTTPS, the cookie goes over nothing else, and no other host can set it.
func TestShareByHTTPS(t *testing.T) {
	c := serve(t, Config{PortsDomain: portsDomain, BehindProxy: true})
	sandbox, _ := c.create(`{"language": "bash"}`)
	var shared apitypes.Share
	c.want(http.StatusCreated, &shared, http.MethodPost, sandbox+"/shares", `{"port": 8000}`, "Host: localhost")
	u, err := url.Parse(shared.URL)
	if err != nil || u.Scheme != "https" || u.Port() != "" {
		t.Fatalf("%+v, %v: want an address of HTTPS", shared, err)
	}
	res, _ := c.as("").at(u.Host, http.MethodGet, u.RequestURI(), "")
	cookies := res.Cookies()
	if len(cookies) != 1 || !cookies[0].Secure || cookies[0].Name != "__Host-"+shareCookie {
		t.Fatalf("%v, want a cookie for HTTPS only", res.Header)
	}
	for name, want := range map[string]int{cookies[0].Name: http.StatusNotFound, shareCookie: http.StatusUnauthorized} { // nothing listens
		if res, text := c.as("").at(u.Host, http.MethodGet, "/", "", "Cookie: "+name+"="+cookies[0].Value, "Origin: https://"+u.Host); res.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", name, res.StatusCode, text, want)
		}
	}
}

// FuzzParsePortHost: a name is of one port, and is what the port is written as.
func FuzzParsePortHost(f *testing.F) {
	for _, seed := range []string{"8000-sb-0a1b2c3d-k3v9x7m2p4qnr6tw", "08000-sb-1", "1-", "-1", "65536-x", "1-a.b", "1-a/../b", "+1-a", "1-A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, label string) {
		h, ok := parsePortHost(label)
		if ok && (h.label() != label || h.port < 1 || h.port > 65535 || strings.ContainsAny(h.id, "./%\\ ") || h.id == "") {
			t.Errorf("%q: %+v, want that it is what it is read from", label, h)
		}
	})
}
