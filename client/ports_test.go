package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
)

// inside is a server that tells what it was sent.
const inside = `import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        if self.path in ("/here", "/there"):
            self.send_response(307)
            self.send_header("Location", {"/here": "/to?q=1", "/there": "https://example.org/"}[self.path])
        else:
            self.send_response(418)
        self.end_headers()
        self.wfile.write(f"{self.path} {body} {self.headers['Authorization']} {self.headers['X-Own']}".encode())
    do_GET = do_POST
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 8123), H)
print("listens", flush=True)
s.serve_forever()
`

// TestPorts: a server inside is reached as one that the transport had connected to, and nothing of the key comes to it.
func TestPorts(t *testing.T) {
	ctx := testContext(t)
	c := connect(t, serve(t, httpapi.Config{PortsDomain: "ports.example.org"}), key, client.Options{})
	sb := open(t, c, llmsandbox.Options{Language: "python"})
	listens := make(chan struct{})
	if _, err := sb.StartRun(ctx, inside, &llmsandbox.RunOptions{Stdout: &onFirst{do: func() { close(listens) }}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-listens:
	case <-ctx.Done():
		t.Fatal("it does not listen")
	}
	ask := func(sb *client.Sandbox, port uint16, method, url, body string) (int, string, error) {
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Own", "kept")
		r.Header.Set("Authorization", "Bearer another")
		res, err := (&http.Client{Transport: sb.PortTransport(port)}).Do(r)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res.StatusCode, string(text), err
	}
	for _, test := range []struct {
		port              uint16
		method, url, body string
		status            int
		text              string
	}{
		{8123, http.MethodGet, "http://any.example", "", 418, "/  None kept"},
		{8123, http.MethodPost, "https://any.example/a%2Fb/%C3%A9?q=a%20b", "body", 418, "/a%2Fb/%C3%A9?q=a%20b body None kept"},
		{8123, http.MethodPost, "http://any.example/here", "body", 418, "/to?q=1 body None kept"},
		{8123, http.MethodGet, "http://any.example/there", "", 307, "/there  None kept"},
		{8124, http.MethodGet, "http://any.example/", "", 404, "nothing listens"},
	} {
		if status, text, err := ask(sb, test.port, test.method, test.url, test.body); err != nil || status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s %d %s: got %d %q, %v, want %d %q", test.method, test.port, test.url, status, text, err, test.status, test.text)
		}
	}
	if _, _, err := ask(sb, 0, http.MethodGet, "http://any.example/", ""); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("port 0: got %v, want ErrInvalid", err)
	}
	address, until, err := sb.Share(ctx, 8123, time.Minute)
	if left := time.Until(until); err != nil || left < 0 || left > time.Minute || !strings.HasPrefix(address, "http://8123-"+sb.ID()+".ports.example.org") {
		t.Errorf("got %s, %v, %v, want an address for a minute", address, until, err)
	}
	if _, _, err := sb.Share(ctx, 8123, 48*time.Hour); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("for two days: got %v, want ErrInvalid", err)
	}
	ended := open(t, c, llmsandbox.Options{})
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(ended, 8123, http.MethodGet, "http://any.example/", ""); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("of a closed sandbox: got %v, want ErrClosed", err)
	}
}

// TestShareUnsupported: a server without a domain for ports shares none.
func TestShareUnsupported(t *testing.T) {
	if _, _, err := open(t, use(t), llmsandbox.Options{}).Share(testContext(t), 8123, 0); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}
