package client_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
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
	key      = "key-that-writes"
	keyReads = "key-that-reads"
	keyAdmin = "key-that-makes-keys"
)

func authenticate(_ context.Context, k string) (httpapi.Caller, error) {
	switch k {
	case key:
		return httpapi.Caller{Project: "a", Scopes: []string{database.ScopeRead, database.ScopeWrite}}, nil
	case keyReads:
		return httpapi.Caller{Project: "a", Scopes: []string{database.ScopeRead}}, nil
	case keyAdmin:
		return httpapi.Caller{Project: "a", Scopes: []string{database.ScopeRead, database.ScopeAdmin}}, nil
	}
	return httpapi.Caller{}, httpapi.ErrUnknownKey
}

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T, cfg httpapi.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, cfg)
	return "http://" + l.Addr().String()
}

// serveOn runs a server on a listener until the test ends.
func serveOn(t *testing.T, l net.Listener, cfg httpapi.Config) {
	t.Helper()
	require(t, runtime.GOOS == "linux", "the local backend needs Linux")
	cfg.Sandbox.BestEffort = true
	if cfg.Sandbox.Backend == nil {
		cfg.Sandbox.Backend = local.New(&local.Options{StateDir: t.TempDir()})
	}
	cfg.Warm = -1
	cfg.Authenticate = authenticate
	s, err := httpapi.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	})
}

// connect makes a client of a server, whose connections end before the server does.
func connect(t *testing.T, address, key string, opts client.Options) *client.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	opts.HTTPClient = &http.Client{Transport: transport}
	c, err := client.NewWith(address, key, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// use makes a client of a server of the test's own.
func use(t *testing.T) *client.Client {
	t.Helper()
	return connect(t, serve(t, httpapi.Config{}), key, client.Options{})
}

// open opens a sandbox until the test ends.
func open(t *testing.T, c *client.Client, opts llmsandbox.Options) *client.Sandbox {
	t.Helper()
	if opts.Language == "" {
		opts.Language = "bash"
	}
	sb, err := c.Open(testContext(t), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Errorf("close: got %v, want no error", err)
		}
	})
	return sb
}
