package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// A madeBySDK is a sandbox as the answer to an SDK has it.
type madeBySDK struct {
	ID      string `json:"sandboxID"`
	Traffic string `json:"trafficAccessToken"`
	Domain  string `json:"domain"`

	sandbox string // its path at the API
}

// listenForSDK makes a sandbox as SDKs do, in which a server listens on port 8000.
func (c *client) listenForSDK(body string) (made madeBySDK) {
	c.t.Helper()
	c.want(http.StatusCreated, &made, http.MethodPost, "/v2/sandboxes", body)
	var all apitypes.Sandboxes
	c.want(http.StatusOK, &all, http.MethodGet, "/v1/sandboxes", "")
	for _, sb := range all.Sandboxes {
		if strings.ReplaceAll(sb.ID, "-", "") == made.ID {
			made.sandbox = "/v1/sandboxes/" + sb.ID
		}
	}
	c.listenIn(made.sandbox)
	return made
}

// host is what get_host of an SDK returns.
func (m madeBySDK) host(port string) string { return port + "-" + m.ID + "." + m.Domain }

// TestSDKPorts: anyone who knows the name of a port can use its server, which gets what the client sends and answers for its own origin. Ports of the API are as without that.
func TestSDKPorts(t *testing.T) {
	c := serve(t, Config{E2B: true, PortsDomain: portsDomain, Console: true})
	nobody := c.as("")
	made := c.listenForSDK(`{}`)
	host := made.host("8000")
	if _, port, _ := strings.Cut(strings.TrimPrefix(c.address, "http://"), ":"); made.Domain != portsDomain+":"+port {
		t.Fatalf("the domain is %s, want that of ports, with the server's port", made.Domain)
	}
	var got received
	receive := func(name string, res *http.Response, text string) {
		t.Helper()
		got = received{}
		if err := json.Unmarshal([]byte(text), &got); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, want an answer from inside", name, res.StatusCode, text)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		res, text := nobody.at(host, method, "/a%2Fb//c/../d;e?x=%20+&y", "", "Cookie: own=1; "+shareCookie+"=x", "Authorization: Bearer inside", "Origin: https://app.example.org", "Sec-Fetch-Site: cross-site",
			"X-Forwarded-For: 1.2.3.4", "X-Forwarded-Host: evil.example", "Forwarded: for=1.2.3.4", "X-Real-IP: 1.2.3.4", "Access-Control-Request-Method: GET",
			"X-Access-Token: secret", "E2b-Traffic-Access-Token: secret", "E2b_Sandbox_Id: secret", "E2b-Other: secret", "X-API-Key: secret", "Upgrade: h2c", "Connection: Upgrade, X-Hop", "X-Hop: 1")
		receive(method, res, text)
		if got.Method != method || got.Path != "/a%2Fb//c/../d;e?x=%20+&y" || got.header("Host") != host || got.header("Authorization") != "Bearer inside" || got.header("Cookie") != "own=1" ||
			got.header("Origin") != "https://app.example.org" || strings.Contains(text, "secret") {
			t.Errorf("%s: got %s, want the request without what is for this server", method, text)
		}
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-Ip", "Upgrade", "X-Hop"} {
			if got.header(name) != "" {
				t.Errorf("%s: the server inside gets %s: %s", method, name, got.header(name))
			}
		}
	}
	res, text := c.at(host, http.MethodGet, "/", "") // with a key
	if receive("a key", res, text); got.header("Authorization") != "" {
		t.Errorf("the server inside gets the key: %s", text)
	}
	res, text = c.at("PORT"+host[4:], http.MethodGet, "/", "") // no name of a port: the API refuses it
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("a name of no port: %d %s, want 404", res.StatusCode, text)
	}
	own := url.Values{"Access-Control-Allow-Origin": {"*"}, "Www-Authenticate": {"Basic"}, "Cache-Control": {"max-age=9"}, "Set-Cookie": {"own=2; Domain=" + portsDomain}, "Clear-Site-Data": {`"*"`}, "Strict-Transport-Security": {"max-age=9; includeSubDomains"}}
	res, _ = nobody.at(host, http.MethodGet, "/?"+own.Encode(), "")
	if h := res.Header; h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Www-Authenticate") != "Basic" || h.Get("Cache-Control") != "max-age=9" || h.Get("Set-Cookie") != "own=2" || h.Get("Clear-Site-Data") != "" || h.Get("Strict-Transport-Security") != "" {
		t.Errorf("%v, want what is about the port's origin alone", h)
	}
	for location, want := range map[string]string{"/x": "/x", "http://" + host + "/y?z": "/y?z", "http://localhost:8000/y": "/y", "https://login.example/": "https://login.example/"} {
		if res, _ := nobody.at(host, http.MethodGet, "/?status=302&Location="+url.QueryEscape(location), ""); res.Header.Get("Location") != want {
			t.Errorf("a redirect to %s: %q, want %q", location, res.Header.Get("Location"), want)
		}
	}
	name, _, _ := strings.Cut(host, ":")
	api := "8000-" + strings.TrimPrefix(made.sandbox, "/v1/sandboxes/") + "." + portsDomain
	for about, test := range map[string]struct {
		host, path string
		headers    []string
		status     int
		says       string
	}{
		"nothing listens":                {made.host("9"), "/", nil, http.StatusBadGateway, `"message":"The sandbox is running but port is not open"`},
		"no HTTP":                        {host, "/raw?raw=SSH-2.0-x%0d%0a", nil, http.StatusBadGateway, "no answer of HTTP"},
		"a protocol":                     {host, "/raw?raw=HTTP/1.1+101+x%0d%0aUpgrade:+x%0d%0aConnection:+Upgrade%0d%0a%0d%0a", nil, http.StatusBadGateway, "no answer of HTTP"},
		"another sandbox":                {"8000-" + strings.Repeat("a", len(made.ID)) + "." + portsDomain, "/", nil, http.StatusBadGateway, "was not found"},
		"the API's name":                 {api, "/", nil, http.StatusUnauthorized, "this port is private"},
		"the API's name and a share":     {api, "/", []string{"Cookie: " + shareCookie + "=x"}, http.StatusUnauthorized, "this port is private"},
		"the API's name and headers":     {api, "/", []string{"E2b-Sandbox-Id: " + made.ID, "E2b-Sandbox-Port: 8000"}, http.StatusBadRequest, "by its name only"},
		"the console's name":             {"localhost", "/", []string{"E2b-Sandbox-Id: " + made.ID, "E2b-Sandbox-Port: 8000"}, http.StatusBadRequest, "by its name only"},
		"a name below":                   {"x." + name, "/", nil, http.StatusNotFound, "the name is none of a port"},
		"a dot at the end is the API's":  {name + ".", "/", nil, http.StatusUnauthorized, "this port is private"},
		"zeros are the API's":            {"0" + name, "/", nil, http.StatusNotFound, "the name is none of a port"},
		"another domain":                 {"8000-" + made.ID + ".evil.example", "/", nil, http.StatusForbidden, "none of this server's names"},
		"a domain that ends so":          {"8000-" + made.ID + ".evil-" + portsDomain, "/", nil, http.StatusForbidden, "none of this server's names"},
		"its address as another's host":  {"127.0.0.1", "/", []string{"X-Forwarded-Host: " + name}, http.StatusOK, "<html"},
		"a share of the API's by a name": {host, sharePath + "?token=x&status=410", nil, http.StatusGone, sharePath}, // it is a path like others there
	} {
		if res, text := nobody.at(test.host, http.MethodGet, test.path, "", test.headers...); res.StatusCode != test.status || !strings.Contains(text, test.says) {
			t.Errorf("%s: %d %s, want %d and %q", about, res.StatusCode, text, test.status, test.says)
		}
	}
	// Those that the API has made are private, also by such a name.
	byAPI, _ := c.listen()
	if res, text := nobody.at("8000-"+strings.ReplaceAll(strings.TrimPrefix(byAPI, "/v1/sandboxes/"), "-", "")+"."+portsDomain, http.MethodGet, "/", ""); res.StatusCode != http.StatusForbidden {
		t.Errorf("made by the API: %d %s, want 403", res.StatusCode, text)
	}
	conn, res := nobody.dial("/ws", "Host: "+host, "Origin: https://app.example.org", "Sec-WebSocket-Protocol: own, "+apitypes.KeyProtocol+keyA)
	if conn == nil {
		t.Fatalf("%d, want a WebSocket", res.StatusCode)
	}
	if told := res.Header.Get("X-Headers"); strings.Contains(told, keyA) || !strings.Contains(told, `"own"`) || !strings.Contains(told, "https://app.example.org") {
		t.Errorf("the server inside was told %s, want what is its own", told)
	}
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := conn.ReadMessage(); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v, want what was sent", text, err)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, "/sandboxes/"+made.ID, "")
	if _, _, err := conn.ReadMessage(); err == nil {
		t.Error("the WebSocket goes on, want that it ends with its sandbox")
	}
	if res, text := nobody.at(host, http.MethodGet, "/", ""); res.StatusCode != http.StatusBadGateway || !strings.Contains(text, "The sandbox was not found") {
		t.Errorf("after its end: %d %s, want that it was not found", res.StatusCode, text)
	}
}

// TestPrivateSDKPorts: a sandbox whose ports are not public has a token for them, without which nothing goes inside, and its server may be asked for by another host.
func TestPrivateSDKPorts(t *testing.T) {
	c := serve(t, Config{E2B: true, PortsDomain: portsDomain})
	made := c.listenForSDK(`{"network": {"allowPublicTraffic": false, "maskRequestHost": "app-${PORT}.test"}}`)
	var other madeBySDK
	c.as(keyB).want(http.StatusCreated, &other, http.MethodPost, "/v2/sandboxes", `{"network": {"allowPublicTraffic": false}}`)
	nobody, host := c.as(""), made.host("8000")
	token := "E2b-Traffic-Access-Token: " + made.Traffic
	for about, headers := range map[string][]string{
		"no token": nil, "another sandbox's": {"E2b-Traffic-Access-Token: " + other.Traffic}, "its key": {"X-API-Key: " + keyA}, "part of it": {token[:len(token)-1]}, "another header": {"X-Access-Token: " + made.Traffic},
		"a cookie": {"Cookie: e2b-traffic-access-token=" + made.Traffic},
	} {
		for _, port := range []string{"8000", "9"} { // it is not told what listens
			if res, text := nobody.at(made.host(port), http.MethodGet, "/", "", headers...); res.StatusCode != http.StatusForbidden || strings.Contains(text, "open") {
				t.Errorf("%s: %d %s, want 403", about, res.StatusCode, text)
			}
		}
		if conn, res := nobody.dial("/ws", append(headers, "Host: "+host)...); conn != nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: a WebSocket: %d, want 403", about, res.StatusCode)
		}
	}
	if res, text := nobody.at(host, http.MethodGet, "/?token="+made.Traffic, ""); res.StatusCode != http.StatusForbidden {
		t.Errorf("a token in the address: %d %s, want 403", res.StatusCode, text)
	}
	res, text := nobody.at(host, http.MethodGet, "/", "", token)
	var got received
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.header("Host") != "app-8000.test" || got.header("X-Forwarded-Host") != host || strings.Contains(text, made.Traffic) {
		t.Errorf("%d %s, want an answer from inside, which was asked for the other host", res.StatusCode, text)
	}
	if conn, res := nobody.dial("/ws", "Host: "+host, token); conn == nil || strings.Contains(res.Header.Get("X-Headers"), made.Traffic) {
		t.Errorf("a WebSocket: %d %v, want one without the token", res.StatusCode, res.Header)
	}
	if res, text := nobody.at(host, http.MethodGet, "/?status=302&Location=http://app-8000.test/x", "", token); res.Header.Get("Location") != "/x" {
		t.Errorf("a redirect to itself: %v %s, want that it stays there", res.Header, text)
	}
	if res, text := nobody.at(made.host("9"), http.MethodGet, "/", "", token); res.StatusCode != http.StatusBadGateway || !strings.Contains(text, "port is not open") {
		t.Errorf("%d %s, want that nothing listens", res.StatusCode, text)
	}
}
