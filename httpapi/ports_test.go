package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

//go:embed testdata/port.py
var portServer string

// listen creates a sandbox in which a server listens on port 8000, and returns the path of the sandbox and that of the port.
func (c *client) listen() (sandbox, port string) {
	c.t.Helper()
	sandbox, _ = c.create(`{"language": "python"}`)
	c.listenIn(sandbox)
	return sandbox, sandbox + "/ports/8000"
}

// listenIn starts that server in a sandbox.
func (c *client) listenIn(sandbox string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{"code": portServer})
	if err != nil {
		c.t.Fatal(err)
	}
	var started struct{ ID uint64 }
	c.want(http.StatusCreated, &started, http.MethodPost, sandbox+"/processes", string(body))
	res, err := http.DefaultClient.Do(c.request(http.MethodGet, fmt.Sprintf("%s/processes/%d/output", sandbox, started.ID), ""))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	all := ""
	for b := make([]byte, 1000); !strings.Contains(all, "listening"); {
		n, err := res.Body.Read(b)
		if all += string(b[:n]); err != nil {
			c.t.Fatalf("%s, %v: want that it listens", all, err)
		}
	}
}

// What a server inside was sent.
type received struct {
	Method, Path string
	Headers      [][2]string
	Body         int
}

func (r received) header(name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

// TestPorts: a server inside gets what the client sends, and nothing of its keys and of what is between.
func TestPorts(t *testing.T) {
	c := serve(t, Config{Origins: []string{"https://app.example.org"}})
	sandbox, port := c.listen()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		var got received
		body := map[bool]string{true: strings.Repeat("x", 2*apitypes.MaxBody)}[method == http.MethodPut] // more than the API itself takes
		c.want(http.StatusTeapot, &got, method, port+"/a%2Fb/c;d?status=418&q=%20+&q2", body,
			"Cookie: a=b", "Forwarded: for=1.2.3.4", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Prefix: /x", "X-Real-IP: 1.2.3.4", "Referer: https://app.example.org/secret", "Via: 1.1 x",
			"Origin: https://app.example.org", "X-Own: kept", "Proxy-Authorization: Basic x", "Upgrade: h2c", "Connection: Upgrade, X-Hop", "X-Hop: 1")
		if got.Method != method || got.Path != "/a%2Fb/c;d?status=418&q=%20+&q2" || got.Body != len(body) || got.header("X-Own") != "kept" || got.header("Host") != "localhost:8000" || got.header("Origin") != "http://localhost:8000" {
			t.Errorf("%s: got %+v, want the request", method, got)
		}
		for _, name := range []string{"Authorization", "X-API-Key", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Prefix", "X-Real-IP", "Referer", "Via", "Proxy-Authorization", "Upgrade", "Connection", "X-Hop"} {
			if v := got.header(name); v != "" && v != "close" {
				t.Errorf("%s: got the header %s: %s, want none", method, name, v)
			}
		}
	}
	var list apitypes.Ports
	want := apitypes.Port{Port: 8000, Address: "127.0.0.1", Family: "ipv4"}
	if c.as(keyAReads).want(http.StatusOK, &list, http.MethodGet, sandbox+"/ports", ""); !slices.Contains(list.Ports, want) {
		t.Errorf("got %+v, want %+v among them", list, want)
	}
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodGet, sandbox+"/ports", "")
	c.as("").want(http.StatusUnauthorized, nil, http.MethodGet, sandbox+"/ports", "")
	other, _ := c.create(`{"language": "bash"}`)
	if c.want(http.StatusOK, &list, http.MethodGet, other+"/ports", ""); list.Ports == nil || len(list.Ports) != 0 {
		t.Errorf("got %+v of another sandbox, want an empty list", list)
	}
	var got received
	if c.as("").want(http.StatusOK, &got, http.MethodGet, port+"/", "", "X-API-Key: "+keyA); got.header("X-API-Key") != "" || got.Path != "/" {
		t.Errorf("got %+v, want nothing of the key", got)
	}
	if res, _ := c.do(http.MethodHead, port+"/", ""); res.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %d, want 200", res.StatusCode)
	}
	for _, other := range []string{"/v1/sandboxes/%73b-0/ports/080/x", port + "/../../../../" + "healthz"} { // what is not spelled as usual
		if res, text := c.do(http.MethodGet, other, ""); strings.Contains(text, `"path"`) || res.StatusCode >= 500 {
			t.Errorf("%s: %d %s, want that it does not come to the port", other, res.StatusCode, text)
		}
	}
	for name, test := range map[string]struct {
		client       *client
		method, path string
		headers      []string
		status       int
		code         string
	}{
		"nothing listens":    {c, http.MethodGet, sandbox + "/ports/9/", nil, http.StatusNotFound, "not_listening"},
		"port 0":             {c, http.MethodGet, sandbox + "/ports/0/", nil, http.StatusUnprocessableEntity, "invalid"},
		"port 65536":         {c, http.MethodGet, sandbox + "/ports/65536/", nil, http.StatusUnprocessableEntity, "invalid"},
		"a port by its name": {c, http.MethodGet, sandbox + "/ports/http/", nil, http.StatusUnprocessableEntity, "invalid"},
		"another project":    {c.as(keyB), http.MethodGet, port + "/", nil, http.StatusNotFound, "not_found"},
		"a key that reads":   {c.as(keyAReads), http.MethodGet, port + "/", nil, http.StatusForbidden, "scope"},
		"no key":             {c.as(""), http.MethodGet, port + "/", nil, http.StatusUnauthorized, "unauthorized"},
		"another page":       {c, http.MethodGet, port + "/", []string{"Origin: https://evil.example"}, http.StatusForbidden, "forbidden"},
		"a page from inside": {c, http.MethodGet, port + "/", []string{"Origin: null"}, http.StatusForbidden, "forbidden"},
		"another host":       {c, http.MethodGet, port + "/", []string{"Host: evil.example"}, http.StatusForbidden, "forbidden"},
		"a service worker":   {c, http.MethodGet, port + "/", []string{"Service-Worker: script"}, http.StatusForbidden, "forbidden"},
		"no HTTP":            {c, http.MethodGet, port + "/raw?raw=SSH-2.0-x%0d%0a", nil, http.StatusBadGateway, "bad_gateway"},
		"a protocol":         {c, http.MethodGet, port + "/raw?raw=HTTP/1.1+101+x%0d%0aUpgrade:+x%0d%0aConnection:+Upgrade%0d%0a%0d%0a", nil, http.StatusBadGateway, "bad_gateway"},
		"long headers":       {c, http.MethodGet, port + "/raw?raw=HTTP/1.1+200+x%0d%0aX:+" + strings.Repeat("x", maxPortHeader-100), nil, http.StatusBadGateway, "bad_gateway"},
	} {
		if res, text := test.client.do(test.method, test.path, "", test.headers...); res.StatusCode != test.status || !strings.Contains(text, `"code":"`+test.code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", name, res.StatusCode, text, test.status, test.code)
		}
	}
}

// TestPortsAreHostile: what a server inside answers can set nothing for this server's origin, and leads nowhere else.
func TestPortsAreHostile(t *testing.T) {
	c := serve(t, Config{Origins: []string{"https://app.example.org"}})
	_, port := c.listen()
	hostile := url.Values{}
	for _, name := range dropped {
		hostile.Set(name, "hostile")
	}
	for name, value := range map[string]string{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true", "Content-Security-Policy": "default-src *", "X-Own": "kept", "Content-Type": "text/html"} {
		hostile.Set(name, value)
	}
	hostile.Set("Access-Control-Allow-Origin", "*")
	interim := "HTTP/1.1 103 x\r\nSet-Cookie: hostile\r\nAccess-Control-Allow-Origin: *\r\n\r\nHTTP/1.1 200 OK\r\nX-Own: kept\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"
	for name, path := range map[string]string{"headers": "/?" + hostile.Encode(), "an error": "/?status=500&" + hostile.Encode(), "an interim answer": "/raw?raw=" + url.QueryEscape(interim)} {
		for origin, allowed := range map[string]string{"": "", "https://app.example.org": "https://app.example.org"} {
			var headers []string
			if origin != "" {
				headers = []string{"Origin: " + origin}
			}
			res, text := c.do(http.MethodGet, port+path, "", headers...)
			for name, values := range res.Header {
				if strings.Contains(strings.Join(values, " "), "hostile") {
					t.Errorf("%s: %s: %q, want none", path, name, values)
				}
			}
			h, policies := res.Header, res.Header.Values("Content-Security-Policy")
			if len(policies) == 0 || policies[len(policies)-1] != sandboxed || strings.Contains(sandboxed, "same-origin") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
				h.Get("Access-Control-Allow-Origin") != allowed || h.Get("Access-Control-Allow-Credentials") != "" || h.Get("X-Own") != "kept" {
				t.Errorf("%s from %q: %d %v %s, want it sandboxed, and allowed %q", name, origin, res.StatusCode, h, text, allowed)
			}
		}
	}
	follow := *http.DefaultClient
	follow.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for location, want := range map[string]string{
		"/x?a=b#c": port + "/x?a=b#c", "x/": port + "/d%2Fd/x/", "http://localhost:8000/y": port + "/y", "http://127.0.0.1:8000": port + "/",
		"../../../../v1/run": port + "/v1/run", "/%2e%2e/%2e%2e/..%2f/v1/run": port + "/v1/run", `/..\..\v1`: port + "/..%5C..%5Cv1", "/../../../../../../healthz": port + "/healthz",
		"http://localhost:9000/": "", "https://evil.example/": "", "//evil.example/": "", `\\evil.example`: "*", "javascript:alert(1)": "", "http://user@localhost:8000/": "", c.address + "/v1/run": "",
		"/%zz": "", "http://localhost:8000:x/": "", "data:text/html,x": "", "//localhost:8000/z": port + "/z",
		"/a%2Fb/%2f%2fc%2F": port + "/a%2Fb/%2f%2fc%2F", "f": port + "/d%2Fd/f", "/a%2Fb//c/": port + "/a%2Fb/c/", "/a%2f../b%2Fc": port + "/b/c", "..%2f..%2fv1/run": port + "/v1/run", "/%2e/a%2Fb": port + "/a/b",
	} {
		res, err := follow.Do(c.request(http.MethodPost, port+"/d%2Fd/e?status=307&Location="+url.QueryEscape(location), ""))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		got := res.Header.Get("Location")
		if res.StatusCode != http.StatusTemporaryRedirect || got != want && (want != "*" || got != "" && !strings.HasPrefix(got, port+"/")) {
			t.Errorf("a redirect to %q: %d %q, want %q", location, res.StatusCode, got, want)
		}
	}
	// What comes piece by piece goes on piece by piece, without what is behind the last.
	read, write := io.Pipe()
	r := c.request(http.MethodPost, port+"/stream", "")
	r.Body = read
	r.ContentLength = -1
	answered := make(chan *http.Response)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	_, _ = write.Write([]byte("one"))
	res := <-answered
	for _, piece := range []string{"one", "two"} {
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != piece {
			t.Fatalf("%q, %v, want %q", got, err, piece)
		}
		if piece == "one" {
			_, _ = write.Write([]byte("two"))
		}
	}
	_ = write.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 || len(res.Trailer) > 0 {
		t.Errorf("%q, %v, %v, want the end", rest, err, res.Trailer)
	}
	res.Body.Close()
}

// TestPortsWebSocket: a WebSocket comes through, also with its key among the subprotocols, which the server inside is not told. It ends with the server.
func TestPortsWebSocket(t *testing.T) {
	c := serve(t, Config{Origins: []string{"https://app.example.org"}})
	_, port := c.listen()
	for _, with := range []*client{c, c.as("")} {
		conn, res := with.dial(port+"/ws", "Origin: https://app.example.org", "Cookie: a=b", "Sec-WebSocket-Protocol: own"+map[bool]string{true: ", " + apitypes.KeyProtocol + keyA}[with.key == ""])
		if conn == nil {
			t.Fatalf("%d, want a WebSocket", res.StatusCode)
		}
		told := res.Header.Get("X-Headers")
		if strings.Contains(told, "key") || strings.Contains(told, "Cookie") || strings.Contains(told, "app.example.org") || !strings.Contains(told, `"own"`) || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("the server was told %s and answers %v, want no key and no cookies", told, res.Header)
		}
		for _, message := range []string{"hello", strings.Repeat("x", 60000)} {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := conn.ReadMessage(); err != nil || string(got) != message {
				t.Errorf("%d bytes, %v, want what was sent", len(got), err)
			}
		}
	}
	for name, headers := range map[string][]string{"another page": {"Origin: https://evil.example"}, "another key": {"Authorization: ", "Sec-WebSocket-Protocol: " + apitypes.KeyProtocol + keyB}} {
		if conn, res := c.dial(port+"/ws", headers...); conn != nil {
			t.Errorf("%s: %d, want that it is refused", name, res.StatusCode)
		}
	}
	open, _ := c.dial(port + "/ws")
	flood, err := http.DefaultClient.Do(c.request(http.MethodGet, port+"/flood", "")) // and its client does not read
	if err != nil {
		t.Fatal(err)
	}
	defer flood.Body.Close()
	c.stop()
	if _, _, err := open.ReadMessage(); err == nil {
		t.Error("a WebSocket goes on, want that it ends with the server")
	}
}

// TestPortsAndSessions: what is served inside does not get the session of a browser, and its pages have no use of it.
func TestPortsAndSessions(t *testing.T) {
	c := serve(t, Config{Console: true, PortsDomain: portsDomain})
	_, port := c.listen()
	nobody := c.as("")
	res, text := nobody.do(http.MethodPost, loginPath, `{"key": "`+keyA+`"}`, "Origin: "+c.address)
	if len(res.Cookies()) != 1 {
		t.Fatalf("%d %v %s, want a session", res.StatusCode, res.Header, text)
	}
	c.want(http.StatusOK, nil, http.MethodPut, port+"/", strings.Repeat("x", apitypes.MaxBody+1)) // as without a console
	cookie := "Cookie: " + res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
	var got received
	nobody.want(http.StatusOK, &got, http.MethodGet, port+"/", "", cookie, "Sec-Fetch-Site: same-origin")
	if got.Method != http.MethodGet || got.header("Cookie") != "" {
		t.Errorf("got %+v, want nothing of the session", got)
	}
	for _, headers := range map[string][]string{"by script": {"Origin: null", "Sec-Fetch-Site: cross-site"}, "without one": {"Sec-Fetch-Site: cross-site"}} {
		for _, path := range []string{port + "/", "/v1/sandboxes", port[:strings.Index(port, "/ports")] + "/terminals"} {
			nobody.want(http.StatusForbidden, nil, http.MethodGet, path, "", append(headers, cookie)...)
		}
	}
	host := "8000-" + strings.Split(port, "/")[3] + "." + portsDomain
	if res, text := nobody.at(host, http.MethodGet, "/login", "", cookie, "Sec-Fetch-Site: same-origin"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%d %s, want that sessions are of the server's own name", res.StatusCode, text)
	}
	if res, text := c.at(host, http.MethodGet, "/login", ""); !strings.Contains(text, `"path": "/login"`) {
		t.Errorf("%d %s, want what is inside, and not the console", res.StatusCode, text)
	}
}
