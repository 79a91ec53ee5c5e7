package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// require skips a test that cannot run on this machine, or fails it where everything ought to be there.
func require(t testing.TB, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("LLMSANDBOX_REQUIRE") == "1":
		t.Fatalf("cannot run here: %s", why)
	default:
		t.Skip(why)
	}
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Keys of the tests' servers.
const (
	keyA      = "key-of-project-a"
	keyAReads = "key-of-project-a-that-reads"
	keyB      = "key-of-project-b"
	keyAAudit = "key-of-project-a-that-reads-its-audit-log"
)

func authenticate(_ context.Context, key string) (Caller, error) {
	switch key {
	case keyA:
		return Caller{Project: "a", KeyName: "one", Scopes: []string{database.ScopeRead, database.ScopeWrite}}, nil
	case keyAReads:
		return Caller{Project: "a", KeyName: "looks", Scopes: []string{database.ScopeRead}}, nil
	case keyAAudit:
		return Caller{Project: "a", KeyName: "audits", Scopes: []string{database.ScopeAudit}}, nil
	case keyB:
		return Caller{Project: "b", KeyName: "two", Scopes: []string{database.ScopeRead, database.ScopeWrite}}, nil
	}
	return Caller{}, ErrUnknownKey
}

// A client sends requests to a server of the test's own.
type client struct {
	t       *testing.T
	server  *Server
	address string
	key     string
	stop    func() // the server ends, as it does with the test
}

// serve runs a server until the test ends.
func serve(t *testing.T, cfg Config) *client {
	t.Helper()
	require(t, runtime.GOOS == "linux", "the local backend needs Linux")
	cfg.Sandbox.BestEffort = true
	if cfg.Sandbox.Backend == nil {
		cfg.Sandbox.Backend = local.New(&local.Options{StateDir: t.TempDir()})
	}
	if cfg.Warm == 0 {
		cfg.Warm = -1
	}
	if cfg.Authenticate == nil {
		cfg.Authenticate = authenticate
	}
	s, err := New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop := sync.OnceFunc(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &client{t, s, "http://" + l.Addr().String(), keyA, stop}
}

// as is the client with another key.
func (c *client) as(key string) *client {
	other := *c
	other.key = key
	return &other
}

// request makes a request; each header is "Name: value".
func (c *client) request(method, path, body string, headers ...string) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(testContext(c.t), method, c.address+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	return r
}

// do sends a request and returns the answer with its body.
func (c *client) do(method, path, body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.DefaultClient.Do(c.request(method, path, body, headers...))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(text)
}

// want sends a request whose answer must have a status, and decodes its body into v, unless that is nil.
func (c *client) want(status int, v any, method, path, body string, headers ...string) {
	c.t.Helper()
	res, text := c.do(method, path, body, headers...)
	if res.StatusCode != status {
		c.t.Fatalf("%s %s: %d, %s: want %d", method, path, res.StatusCode, text, status)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

// create creates a sandbox and returns its path.
func (c *client) create(body string) (path string, sb apitypes.Sandbox) {
	c.t.Helper()
	c.want(http.StatusCreated, &sb, http.MethodPost, "/v1/sandboxes", body)
	return "/v1/sandboxes/" + sb.ID, sb
}
