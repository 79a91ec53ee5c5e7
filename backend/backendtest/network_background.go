package backendtest

import (
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// backgroundServer: a server that one run starts is reached by the next, and from outside.
func (s *suite) backgroundServer(t *testing.T) {
	s.has(t, Servers)
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{})
	res := run(t, sb, `import subprocess, sys
server = '''
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"served " + self.path.encode())
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 8123), H)
print("listens", flush=True)
s.serve_forever()
'''
p = subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.PIPE, text=True)
print(p.stdout.readline(), end="")
`, &llmsandbox.RunOptions{KeepChildren: true})
	wantStdout(t, res, "listens\n")
	wantStdout(t, run(t, sb, `import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8123/next").read())`, nil), "b'served /next'\n")
	want := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8123")}
	if got, err := sb.Ports(ctx); err != nil || !slices.Equal(got, want) {
		t.Errorf("ports: %v, %v, want %v", got, err, want)
	}
	for range 3 {
		conn, err := sb.Dial(ctx, 8123)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(conn, "GET /outside HTTP/1.0\r\n\r\n")
		b, err := io.ReadAll(conn)
		if err != nil || !strings.HasSuffix(string(b), "served /outside") {
			t.Errorf("%q, %v, want no error, b ending in \"served /outside\"", b, err)
		}
	}
	if _, err := sb.Dial(ctx, 8124); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where no process listens: %v, want fs.ErrNotExist", err)
	}
	// 67: another sandbox's loopback is another one.
	other := s.shared(t)
	if got, err := other.Ports(ctx); err != nil || slices.Contains(got, want[0]) {
		t.Errorf("ports of another sandbox: %v, %v, want others than %v", got, err, want)
	}
	if _, err := other.Dial(ctx, 8123); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another sandbox reaches it: %v, want fs.ErrNotExist", err)
	}
	wantStdout(t, run(t, other, `import socket
try:
    socket.create_connection(("127.0.0.1", 8123), 20)
    print("REACHED")
except ConnectionRefusedError:
    print("refused")`, nil), "refused\n")
}
