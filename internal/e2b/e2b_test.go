package e2b

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
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
	otherKey    = "key-of-project-b"
	readKey     = "key-of-project-a-that-reads"
)

// A host is a server of a test's own.
type host struct {
	t       *testing.T
	server  *Server
	service *service.Service
	url     string
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
	if runtime.GOOS != "linux" {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal("cannot run here: the local backend needs Linux")
		}
		t.Skip("the local backend needs Linux")
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	svc, err := service.New(&service.Config{
		Sandbox: llmsandbox.Options{Backend: local.New(&local.Options{StateDir: t.TempDir()}), BestEffort: true}, Warm: -1, Usage: noUsage{}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Service: svc,
		Authenticate: func(_ context.Context, key string) (Caller, error) {
			switch key {
			case testKey:
				return Caller{Project: testProject, Read: true, Write: true}, nil
			case otherKey:
				return Caller{Project: "b", Read: true, Write: true}, nil
			case readKey:
				return Caller{Project: testProject, Read: true}, nil
			}
			return Caller{}, httpgate.ErrUnknown
		},
		Begin: func(context.Context, Caller, string, string, bool) (func(int, string), error) {
			return func(int, string) {}, nil
		},
		Secret: []byte(strings.Repeat("s", 32)), Domain: "sandboxes.test", Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		front.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := svc.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &host{t, s, svc, front.URL}
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
		"health":         {id: id, port: "49983", path: "/health", status: http.StatusNoContent},
		"older id":       {id: id + "-client", path: "/health", status: http.StatusNoContent},
		"name":           {host: "49983-" + id + ".sandboxes.test", path: "/health", status: http.StatusNoContent},
		"name and id":    {host: "49983-" + id + ".sandboxes.test", id: id, port: "49999", path: "/health", status: http.StatusBadRequest, says: "different"},
		"no token":       {id: id, path: "/x", status: http.StatusUnauthorized, says: "token"},
		"wrong token":    {id: id, token: token[1:] + "0", path: "/x", status: http.StatusUnauthorized, says: "token"},
		"token":          {id: id, token: token, path: "/x", status: http.StatusNotFound, says: "no such route"},
		"unknown":        {id: strings.Repeat("a", len(id)), token: token, path: "/health", status: http.StatusBadGateway, says: `"message":"The sandbox was not found"`},
		"none of ours":   {id: "x/..", path: "/health", status: http.StatusBadGateway, says: "was not found"},
		"port of a user": {id: id, port: "8000", path: "/", status: http.StatusNotImplemented, says: "8000"},
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
