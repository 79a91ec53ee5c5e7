package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
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

// An olderBackend has machines whose agents know nothing of sockets.
type olderBackend struct{ backend.Backend }

func (b olderBackend) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	m, err := b.Backend.Create(ctx, spec)
	return olderMachine{m}, err
}

type olderMachine struct{ backend.Machine }

func (m olderMachine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	stream, err := m.Machine.Dial(ctx)
	return &olderStream{ReadWriteCloser: stream}, err
}

// An olderStream turns calls for sockets into those of a method that no agent knows. Behind the hello, which is written first and at once, a frame begins
// with its length (4 bytes), its type, of which 2 is a call, and 5 bytes more; a call goes on with its method.
type olderStream struct {
	io.ReadWriteCloser
	greeted bool
	begun   []byte // of a frame
}

func (s *olderStream) Write(p []byte) (int, error) {
	if !s.greeted {
		s.greeted = true
		return s.ReadWriteCloser.Write(p)
	}
	const header, call = 10, 2
	s.begun = append(s.begun, p...)
	for len(s.begun) >= header {
		size := header + int(binary.LittleEndian.Uint32(s.begun))
		if len(s.begun) < size {
			break
		}
		if frame := s.begun[:size]; frame[4] == call && size > header && frame[header] == byte(agentproto.MethodSockets) {
			frame[header] = 0xff
		}
		if _, err := s.ReadWriteCloser.Write(s.begun[:size]); err != nil {
			return 0, err
		}
		s.begun = s.begun[size:]
	}
	return len(p), nil
}

// TestPortsUnsupported: a client gets ErrUnsupported for a sandbox without a loopback of its own, and for one whose agent is too old to list ports.
func TestPortsUnsupported(t *testing.T) {
	for want, b := range map[string]backend.Backend{
		"no loopback of its own":           local.New(&local.Options{StateDir: t.TempDir(), Isolation: "process"}),
		"agent is older than this program": olderBackend{local.New(&local.Options{StateDir: t.TempDir()})},
	} {
		sb := open(t, connect(t, serve(t, httpapi.Config{Sandbox: llmsandbox.Options{Backend: b}}), key, client.Options{}), llmsandbox.Options{})
		ports, err := sb.Ports(testContext(t))
		var refused *client.Error
		if !errors.Is(err, llmsandbox.ErrUnsupported) || !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Detail, want) {
			t.Errorf("got %v, %v, want that it is unsupported: %s", ports, err, want)
		}
		if res, err := sb.Run(testContext(t), "echo 1", nil); err != nil || res.Stdout != "1\n" {
			t.Errorf("got %+v, %v, want that all else works", res, err)
		}
	}
}

// TestPortWebSocket: the transport's requests become WebSockets, in which both sides send.
func TestPortWebSocket(t *testing.T) {
	code, err := os.ReadFile("../httpapi/testdata/port.py")
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	sb := open(t, use(t), llmsandbox.Options{Language: "python"})
	listens := make(chan struct{})
	if _, err := sb.StartRun(ctx, string(code), &llmsandbox.RunOptions{Stdout: &onFirst{do: func() { close(listens) }}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-listens:
	case <-ctx.Done():
		t.Fatal("it does not listen")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://any.example/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		r.Header.Set(name, value)
	}
	res, err := (&http.Client{Transport: sb.PortTransport(8000)}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	both, ok := res.Body.(io.ReadWriter)
	if !ok || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" || strings.Contains(res.Header.Get("X-Headers"), key) {
		t.Fatalf("got %d, %v and a %T, want a WebSocket, and nothing of the key inside", res.StatusCode, res.Header, res.Body)
	}
	for _, message := range [][]byte{[]byte("hello"), bytes.Repeat([]byte("x"), 60_000)} {
		head := []byte{0x81, byte(len(message))} // a text as a whole
		if len(message) > 125 {
			head = binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(message)))
		}
		sent := bytes.Clone(head)
		sent[1] |= 0x80 // clients mask what they send, here with nothing
		if _, err := both.Write(append(append(sent, 0, 0, 0, 0), message...)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(head)+len(message))
		if _, err := io.ReadFull(both, got); err != nil || !bytes.Equal(got, append(head, message...)) {
			t.Fatalf("got %.20q, %v, want what was sent", got, err)
		}
	}
	if err := res.Body.Close(); err != nil {
		t.Errorf("close: got %v, want no error", err)
	}
}
