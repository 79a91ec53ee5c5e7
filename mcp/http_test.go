package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
)

const (
	tokenOne = "one-0123456789abcdef"
	tokenTwo = "two-0123456789abcdef"
)

// knows is an Authenticate that knows tokens, each of a principal of its own.
func knows(tokens ...string) func(context.Context, string) (Principal, error) {
	return func(_ context.Context, token string) (Principal, error) {
		if !slices.Contains(tokens, token) {
			return Principal{}, ErrUnknownToken
		}
		return Principal{Name: token}, nil
	}
}

// serveHTTP runs a server until the test ends, and returns its address.
func serveHTTP(t *testing.T, o HTTPOptions) (*Server, string) {
	t.Helper()
	return serveBounded(t, o, maxClients, clientIdle)
}

func serveBounded(t *testing.T, o HTTPOptions, most int, idle time.Duration) (*Server, string) {
	t.Helper()
	s, err := New(&Config{Version: "test", Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.handler(&o, most, idle)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		server.Close() // waits for streams, which end with their sessions
	})
	return s, server.Listener.Addr().String()
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// request makes a request that a client of the protocol would; each header is "Name: value",
// and takes the place of the one that would be sent.
func request(t *testing.T, method, address, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header[http.CanonicalHeaderKey(name)] = append([]string(nil), strings.Split(value, " && ")...)
	}
	return r
}

func answered(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// faultOf is the message of a refusal, which must be JSON.
func faultOf(t *testing.T, body string) string {
	t.Helper()
	var f struct {
		JSONRPC string
		Error   struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &f); err != nil || f.JSONRPC != "2.0" || f.Error.Code != faultCode || f.Error.Message == "" {
		t.Errorf("refused with %q, want a JSON-RPC error", body)
	}
	return f.Error.Message
}

func TestHTTPRefuses(t *testing.T) {
	_, address := serveHTTP(t, HTTPOptions{
		Authenticate: knows(tokenOne), Origins: []string{"https://app.example.org"}, Hosts: []string{"box.example.org"},
	})
	_, port, _ := net.SplitHostPort(address)
	const bearer = "Authorization: Bearer " + tokenOne
	tooLarge := strings.Repeat(" ", maxBody+1)
	for name, c := range map[string]struct {
		headers []string
		body    string
		status  int
		says    string // of a refusal
	}{
		"in order":                {headers: []string{bearer}, status: 200},
		"localhost":               {headers: []string{bearer, "Host: localhost:" + port}, status: 200},
		"a name of ours":          {headers: []string{bearer, "Host: BOX.example.org."}, status: 200},
		"another name":            {headers: []string{bearer, "Host: rebound.example.net"}, status: 403, says: "rebound.example.net"},
		"a name that begins so":   {headers: []string{bearer, "Host: localhost.example.net"}, status: 403, says: "Host"},
		"another address":         {headers: []string{bearer, "Host: 192.0.2.1"}, status: 403, says: "Host"},
		"a page of ours":          {headers: []string{bearer, "Origin: https://app.example.org"}, status: 200},
		"a page of this machine":  {headers: []string{bearer, "Origin: http://localhost:3000"}, status: 200},
		"a page of the loopback":  {headers: []string{bearer, "Origin: http://[::1]:3000"}, status: 200},
		"another page":            {headers: []string{bearer, "Origin: https://evil.example.net"}, status: 403, says: "evil.example.net"},
		"another port of a page":  {headers: []string{bearer, "Origin: https://app.example.org:444"}, status: 403, says: "--allow-origin"},
		"a page without origin":   {headers: []string{bearer, "Origin: null"}, status: 403, says: "null"},
		"a file as page":          {headers: []string{bearer, "Origin: file://localhost"}, status: 403, says: "file"},
		"two origins":             {headers: []string{bearer, "Origin: https://app.example.org && https://evil.example.net"}, status: 403, says: "evil"},
		"no token":                {status: 401, says: "Authorization"},
		"another's token":         {headers: []string{"Authorization: Bearer " + tokenTwo}, status: 401, says: "not one"},
		"half a token":            {headers: []string{"Authorization: Bearer " + tokenOne[:10]}, status: 401, says: "not one"},
		"an empty token":          {headers: []string{"Authorization: Bearer "}, status: 401, says: "not one"},
		"another scheme":          {headers: []string{"Authorization: Basic " + tokenOne}, status: 401, says: "not one"},
		"two tokens":              {headers: []string{"Authorization: Bearer " + tokenOne + " && Bearer " + tokenTwo}, status: 401, says: "not one"},
		"a body too large":        {headers: []string{bearer}, body: tooLarge, status: 413, says: "4194304 bytes"},
		"too large and no token":  {body: tooLarge, status: 401, says: "Authorization"},
		"no JSON":                 {headers: []string{bearer}, body: "{", status: 400},
		"a session that is not":   {headers: []string{bearer, "Mcp-Session-Id: guess"}, status: 404},
		"a session that is a way": {headers: []string{bearer, "Mcp-Session-Id: ../../x"}, status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			body := c.body
			if body == "" {
				body = initialize
			}
			res, got := answered(t, request(t, http.MethodPost, address, body, c.headers...))
			if res.StatusCode != c.status {
				t.Fatalf("status %d, want %d: %s", res.StatusCode, c.status, got)
			}
			if c.says != "" {
				says := faultOf(t, got)
				if !strings.Contains(says, c.says) {
					t.Errorf("says %q, want %q in it", says, c.says)
				}
				if strings.Contains(says, tokenOne) {
					t.Errorf("the refusal tells the token: %.300q, want says without %q", says, tokenOne)
				}
			}
			if (res.StatusCode == 401) != (res.Header.Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate: %q with status %d, want res.StatusCode == 401 = (res.Header.Get(\"WWW-Authenticate\") != \"\")", res.Header.Get("WWW-Authenticate"), res.StatusCode)
			}
		})
	}
}

// What a principal has made, all of its tokens reach, and no other principal; and what a token stands for is asked with each request.
func TestHTTPAuthenticate(t *testing.T) {
	var revoked atomic.Bool
	_, address := serveHTTP(t, HTTPOptions{Authenticate: func(_ context.Context, token string) (Principal, error) {
		switch {
		case token == "a" || token == "a2" && !revoked.Load():
			return Principal{Name: "project a"}, nil
		case token == "b":
			return Principal{Name: "project b"}, nil
		case token == "reads":
			return Principal{}, fmt.Errorf("%w: it only reads", ErrForbiddenToken)
		case token == "nobody's":
			return Principal{Via: 1}, nil
		case token == "broken":
			return Principal{}, errors.New("secret of the database")
		}
		return Principal{}, ErrUnknownToken
	}})
	res, _ := answered(t, request(t, http.MethodPost, address, initialize, "X-API-Key: a"))
	session := "Mcp-Session-Id: " + res.Header.Get("Mcp-Session-Id")
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	check := func(name string, status int, says string, headers ...string) {
		t.Helper()
		res, body := answered(t, request(t, http.MethodPost, address, ping, append(headers, session)...))
		if res.StatusCode != status || !strings.Contains(body, says) || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s, want %d, %q, and no secret", name, res.StatusCode, body, status, says)
		}
	}
	check("its own", http.StatusOK, "", "Authorization: Bearer a")
	check("its own key", http.StatusOK, "", "X-API-Key: a")
	check("another token of it", http.StatusOK, "", "authorization: bearer a2")
	check("another principal", http.StatusForbidden, "", "Authorization: Bearer b")
	check("one that may not", http.StatusForbidden, "it only reads", "Authorization: Bearer reads")
	check("one of nobody", http.StatusUnauthorized, "", "Authorization: Bearer nobody's")
	check("one that cannot be checked", http.StatusServiceUnavailable, "try again", "Authorization: Bearer broken")
	check("an unknown one", http.StatusUnauthorized, "not one", "Authorization: Bearer x")
	check("none", http.StatusUnauthorized, "needed")
	check("two", http.StatusUnauthorized, "not one", "Authorization: Bearer a", "X-API-Key: a")
	revoked.Store(true)
	check("one that is revoked", http.StatusUnauthorized, "not one", "X-API-Key: a2")
}

func TestHTTPBodyOfUnknownLength(t *testing.T) {
	_, address := serveHTTP(t, HTTPOptions{})
	r := request(t, http.MethodPost, address, "")
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat(" ", maxBody)), strings.NewReader(" "))), -1
	res, body := answered(t, r)
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("status %d, want 413: %s", res.StatusCode, body)
	}
	faultOf(t, body)
}

// A browser asks before it sends, without the token.
func TestHTTPPreflight(t *testing.T) {
	_, address := serveHTTP(t, HTTPOptions{Authenticate: knows(tokenOne), Origins: []string{"https://app.example.org"}})
	for origin, want := range map[string]int{"https://app.example.org": 204, "https://evil.example.net": 403, "": 405} {
		headers := []string{"Access-Control-Request-Method: POST"}
		if origin != "" {
			headers = append(headers, "Origin: "+origin)
		}
		res, _ := answered(t, request(t, http.MethodOptions, address, "", headers...))
		allowed := res.Header.Get("Access-Control-Allow-Origin") == origin && strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "Authorization")
		if res.StatusCode != want || allowed != (want == 204) {
			t.Errorf("%q: status %d, want %d; headers %v", origin, res.StatusCode, want, res.Header)
		}
	}
}

// 10^5 arrays in one another are an error of that request, and of no other.
func TestAbuse82NestedRequest(t *testing.T) {
	_, address := serveHTTP(t, HTTPOptions{})
	deep := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"experimental":`+strings.Repeat(`[`, 1e5)+strings.Repeat(`]`, 1e5)+`}`, 1)
	if res, body := answered(t, request(t, http.MethodPost, address, deep)); res.StatusCode == http.StatusOK && !strings.Contains(body, `"error"`) {
		t.Errorf("answered with %d %.200s, want StatusCode != %d or body containing \"\\\"error\\\"\"", res.StatusCode, body, http.StatusOK)
	}
	if res, body := answered(t, request(t, http.MethodPost, address, initialize)); res.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d %s, want %d", res.StatusCode, body, http.StatusOK)
	}
}

// Neither another principal nor a guess gets at a client's session.
func TestAbuse86SessionsOfOthers(t *testing.T) {
	_, address := serveHTTP(t, HTTPOptions{Authenticate: knows(tokenOne, tokenTwo)})
	one, two := "Authorization: Bearer "+tokenOne, "Authorization: Bearer "+tokenTwo
	res, _ := answered(t, request(t, http.MethodPost, address, initialize, one))
	id := res.Header.Get("Mcp-Session-Id")
	if len(id) < 22 { // 128 bits
		t.Fatalf("session %q, want len(id) >= 22", id)
	}
	session := "Mcp-Session-Id: " + id
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
		if res, body := answered(t, request(t, method, address, ping, two, session)); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s with another's token: %d %s, want %d", method, res.StatusCode, body, http.StatusForbidden)
		}
	}
	if res, body := answered(t, request(t, http.MethodPost, address, ping, one, session)); res.StatusCode != http.StatusOK {
		t.Errorf("its own: %d %s, want %d", res.StatusCode, body, http.StatusOK)
	}
}

func TestHTTPBoundsClients(t *testing.T) {
	_, address := serveBounded(t, HTTPOptions{}, 2, clientIdle)
	var ids []string
	for range 2 {
		res, _ := answered(t, request(t, http.MethodPost, address, initialize))
		ids = append(ids, "Mcp-Session-Id: "+res.Header.Get("Mcp-Session-Id"))
	}
	res, body := answered(t, request(t, http.MethodPost, address, initialize))
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(faultOf(t, body), "2 clients") || res.Header.Get("Retry-After") == "" {
		t.Fatalf("a third: %d %s, want StatusCode = %d, it to contain \"2 clients\", res.Header.Get(\"Retry-After\") not empty", res.StatusCode, body, http.StatusServiceUnavailable)
	}
	if res, body := answered(t, request(t, http.MethodDelete, address, "", ids[0])); res.StatusCode != http.StatusNoContent {
		t.Fatalf("leave: %d %s, want %d", res.StatusCode, body, http.StatusNoContent)
	}
	if res, body := answered(t, request(t, http.MethodPost, address, initialize)); res.StatusCode != http.StatusOK {
		t.Errorf("in the place of one that left: %d %s, want %d", res.StatusCode, body, http.StatusOK)
	}
}

func TestHTTPForgetsIdleClients(t *testing.T) {
	s, address := serveBounded(t, HTTPOptions{}, maxClients, 50*time.Millisecond)
	res, _ := answered(t, request(t, http.MethodPost, address, initialize))
	for session := range s.mcp.Sessions() {
		_ = session.Wait() // how it ended does not matter here
	}
	id := "Mcp-Session-Id: " + res.Header.Get("Mcp-Session-Id")
	// Its end is seen a moment before it is forgotten, which no event reports.
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		res, body := answered(t, request(t, http.MethodPost, address, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, id))
		if res.StatusCode == http.StatusNotFound {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d %s, want time.Since(began) <= 10s", res.StatusCode, body)
		}
	}
}

// A stream that waits for news ends with the server.
func TestHTTPEndsWithOpenStreams(t *testing.T) {
	s, address := serveHTTP(t, HTTPOptions{})
	res, _ := answered(t, request(t, http.MethodPost, address, initialize))
	id := "Mcp-Session-Id: " + res.Header.Get("Mcp-Session-Id")
	answered(t, request(t, http.MethodPost, address, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, id))
	stream, err := http.DefaultClient.Do(request(t, http.MethodGet, address, "", id))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("stream: %d, want %d", stream.StatusCode, http.StatusOK)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestHTTPOptionsRefused(t *testing.T) {
	s, err := New(&Config{Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]HTTPOptions{
		"every origin": {Origins: []string{"*"}}, "any below": {Origins: []string{"https://*.example.org"}}, "an origin with a path": {Origins: []string{"https://a.example/"}},
		"every host": {Hosts: []string{"*"}}, "a host with a port": {Hosts: []string{"a.example:80"}}, "no host": {Hosts: []string{""}},
	} {
		if _, err := s.Handler(&o); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%s: %v, want llmsandbox.ErrInvalid", name, err)
		}
	}
}

// The SDK's own client, as any program would use it.
func TestHTTPWithTheSDKClient(t *testing.T) {
	_, address := serveHTTP(t, HTTPOptions{Authenticate: knows(tokenOne)})
	client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + address, HTTPClient: &http.Client{Transport: bearer{transport}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+tokenOne)
	return b.next.RoundTrip(r)
}
