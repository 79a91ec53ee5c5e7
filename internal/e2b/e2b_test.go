package e2b

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// testKey is the key of testProject at the tests' servers.
const (
	testKey     = "key-of-project-a"
	testProject = "a"
	testDomain  = "sandboxes.test"
	otherKey    = "key-of-project-b"
	readKey     = "key-of-project-a-that-reads"
)

// A host is a server of a test's own.
type host struct {
	t       *testing.T
	server  *Server
	service *service.Service
	url     string
	port    func(w http.ResponseWriter, r *http.Request, to *Port) error // Config.Port
}

// noUsage keeps nothing of what projects use.
type noUsage struct{}

func (noUsage) AddUsage(context.Context, []metering.Hour, []metering.Counted) error { return nil }

func (noUsage) Counted(context.Context, string, string) (metering.Counted, error) {
	return metering.Counted{}, fs.ErrNotExist
}

func (noUsage) Usage(context.Context, string, time.Time, time.Time) ([]metering.Hour, error) {
	return nil, nil
}

// serve runs a server until the test ends.
func serve(t *testing.T) *host {
	t.Helper()
	return serveWith(t, func(*service.Config, *Config) {})
}

// serveWith is serve, with what change changes.
func serveWith(t *testing.T, change func(*service.Config, *Config)) *host {
	t.Helper()
	if runtime.GOOS != "linux" {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal("cannot run here: the local backend needs Linux")
		}
		t.Skip("the local backend needs Linux")
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	core := service.Config{
		Sandbox: llmsandbox.Options{Backend: local.New(&local.Options{StateDir: t.TempDir()}), BestEffort: true}, Warm: -1, Usage: noUsage{}, Log: log,
	}
	h := &host{t: t}
	cfg := Config{
		Port: func(w http.ResponseWriter, r *http.Request, to *Port) error { return h.port(w, r, to) },
		Authenticate: func(_ context.Context, key string) (database.Caller, error) {
			switch key {
			case testKey:
				return database.Caller{Project: testProject, Scopes: []string{database.ScopeRead, database.ScopeWrite}}, nil
			case otherKey:
				return database.Caller{Project: "b", Scopes: []string{database.ScopeRead, database.ScopeWrite}}, nil
			case readKey:
				return database.Caller{Project: testProject, Scopes: []string{database.ScopeRead}}, nil
			}
			return database.Caller{}, httpgate.ErrUnknown
		},
		Begin: func(context.Context, database.Caller, string, string, bool) (func(int, string), error) {
			return func(int, string) {}, nil
		},
		Count:  func(string) error { return nil },
		Secret: []byte(strings.Repeat("s", 32)), Domain: testDomain, Log: log,
	}
	change(&core, &cfg)
	svc, err := service.New(&core)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Service, h.service = svc, svc
	h.server, err = New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(h.server)
	t.Cleanup(func() {
		h.server.Close()
		front.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := svc.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	h.url = front.URL
	return h
}

// A box is a sandbox of a test, as SDKs reach it.
type box struct {
	*host
	sandbox *llmsandbox.Sandbox
}

// open opens a sandbox with the working directory that SDKs take for the home.
func (h *host) open(o llmsandbox.Options) *box {
	h.t.Helper()
	if o.Language == "" {
		o.Language = "bash"
	}
	o.Workdir = "/home/user"
	sb, err := h.service.Create(testContext(h.t), testProject, o)
	if err != nil {
		h.t.Fatal(err)
	}
	return &box{h, sb}
}

// sign gives a request the headers by which SDKs reach a port of the sandbox, and its token.
func (b *box) sign(r *http.Request, port string) {
	r.Header.Set(sandboxHeader, outerID(b.sandbox.ID()))
	r.Header.Set(portHeader, port)
	r.Header.Set(tokenHeader, b.server.accessToken(b.sandbox.ID()))
}

// client makes requests to a port of the sandbox: "49983" or "49999".
func (b *box) client(port string) *http.Client {
	return &http.Client{Transport: signer(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		b.sign(r, port)
		return http.DefaultTransport.RoundTrip(r)
	})}
}

type signer func(*http.Request) (*http.Response, error)

func (s signer) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// do makes a request to a port of the sandbox, and returns status and body of the answer.
func (b *box) do(port, method, path, contentType, body string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(testContext(b.t), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	res, err := b.client(port).Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestSandboxIsReached: by headers and by name, with its token, and no other is.
func TestSandboxIsReached(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	id, token := outerID(b.sandbox.ID()), b.server.accessToken(b.sandbox.ID())
	for name, test := range map[string]struct {
		host, id, port, token, path string
		status                      int
		says                        string
	}{
		"control plane":  {id: id, port: "49983", path: "/sandboxes/" + id, status: http.StatusUnauthorized, says: "X-API-KEY"},
		"token alone":    {token: token, path: "/health", status: http.StatusNoContent},
		"unknown token":  {token: token[1:] + "0", path: "/health", status: http.StatusBadGateway, says: `"message":"The sandbox was not found"`},
		"health":         {id: id, port: "49983", path: "/health", status: http.StatusNoContent},
		"older id":       {id: id + "-client", path: "/health", status: http.StatusNoContent},
		"name":           {host: "49983-" + id + ".sandboxes.test", path: "/health", status: http.StatusNoContent},
		"name and id":    {host: "49983-" + id + ".sandboxes.test", id: id, port: "49999", path: "/health", status: http.StatusBadRequest, says: "different"},
		"no token":       {id: id, path: "/x", status: http.StatusUnauthorized, says: "token"},
		"wrong token":    {id: id, token: token[1:] + "0", path: "/x", status: http.StatusUnauthorized, says: "token"},
		"token":          {id: id, token: token, path: "/x", status: http.StatusNotFound, says: "no such route"},
		"unknown":        {id: strings.Repeat("a", len(id)), token: token, path: "/health", status: http.StatusBadGateway, says: `"message":"The sandbox was not found"`},
		"none of ours":   {id: "x/..", path: "/health", status: http.StatusBadGateway, says: "was not found"},
		"port of a user": {id: id, port: "8000", token: token, path: "/", status: http.StatusBadRequest, says: "by its name only"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(testContext(t), http.MethodGet, b.url+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = test.host
			for name, value := range map[string]string{sandboxHeader: test.id, portHeader: test.port, tokenHeader: test.token} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close() //nolint:errcheck // it was read
			text, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != test.status || !strings.Contains(string(text), test.says) {
				t.Errorf("status %d, body %s, error %v; want status %d and %q", res.StatusCode, text, err, test.status, test.says)
			}
		})
	}
}

// TestSandboxIsCounted: requests with the sandbox's token are counted, each once, and are told in their own form that there are too many.
func TestSandboxIsCounted(t *testing.T) {
	var counted, left atomic.Int64
	count := func(project string) error {
		if counted.Add(1); project != testProject {
			t.Errorf("a request of project %q is counted, want that of the sandbox", project)
		}
		if left.Add(-1) < 0 {
			return &Refusal{http.StatusTooManyRequests, "too soon", http.Header{"Retry-After": {"7"}}}
		}
		return nil
	}
	b := serveWith(t, func(_ *service.Config, cfg *Config) { cfg.Count = count }).open(llmsandbox.Options{})
	counts := func(what string, want int64) {
		t.Helper()
		if n := counted.Swap(0); n != want {
			t.Errorf("%s: counted %d times, want %d", what, n, want)
		}
	}
	left.Store(3)
	programs := b.programs()
	stream, err := programs.Start(testContext(t), connect.NewRequest(&process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", "echo 1; echo 2"}}}))
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
		continue
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Error(err)
	}
	counts("a stream", 1)
	if status, text := b.do("49983", http.MethodGet, "/files?path=none", "", ""); status != http.StatusNotFound {
		t.Errorf("%d %s, want 404", status, text)
	}
	counts("a file", 1)

	left.Store(0)
	var limited *connect.Error
	_, err = programs.List(testContext(t), connect.NewRequest(&process.ListRequest{}))
	if !errors.As(err, &limited) || limited.Code() != connect.CodeResourceExhausted || limited.Message() != "too soon" || limited.Meta().Get("Retry-After") != "7" {
		t.Errorf("a call: %v, want that there are too many, and when to come again", err)
	}
	if stream, err = programs.Start(testContext(t), connect.NewRequest(&process.StartRequest{})); err != nil {
		t.Fatal(err)
	}
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeResourceExhausted || stream.ResponseHeader().Get("Retry-After") != "7" {
		t.Errorf("a stream: %v, %v, want that there are too many", stream.Err(), stream.ResponseHeader())
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ port, method, path, says string }{
		{"49983", http.MethodPost, "/files?path=a", `{"code":429,"message":"too soon"}`}, {"49983", http.MethodPost, "/process.Process/List", `{"code":"resource_exhausted","message":"too soon"}`},
		{"49999", http.MethodPost, "/execute", "too soon\n"}, {"49999", http.MethodGet, "/contexts", "too soon\n"},
	} {
		if status, text := b.do(c.port, c.method, c.path, "application/json", "{}"); status != http.StatusTooManyRequests || text != c.says {
			t.Errorf("%s %s: %d %q, want 429 %q", c.method, c.path, status, text, c.says)
		}
	}
	counts("what is refused", 6)

	for path, want := range map[string]int{"/health": http.StatusNoContent, "/files?path=none": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(testContext(t), http.MethodGet, b.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(sandboxHeader, outerID(b.sandbox.ID()))
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != want {
			t.Errorf("%s without a token: %d, %v, want %d", path, res.StatusCode, err, want)
		}
	}
	if status, text := b.do("49983", http.MethodGet, "/health", "", ""); status != http.StatusNoContent {
		t.Errorf("health: %d %s, want 204", status, text)
	}
	counts("what needs no token, or has none", 0)
}
