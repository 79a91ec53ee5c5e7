package backendtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// pythonNetwork is put before Python programs that use a network.
const pythonNetwork = `import os, ssl, socket, struct, sys, time, urllib.error, urllib.request
web, tls, echo = os.environ["WEB"], os.environ["TLS"], int(os.environ["ECHO_PORT"])
unverified = ssl._create_unverified_context()
def get(url, data=None):
    try:
        return urllib.request.urlopen(url, data=data, context=unverified).read().decode()
    except urllib.error.HTTPError as e:
        return f"{e.code} {e.read().decode()}"
    except OSError as e:
        return f"failed {e}"
def exactly(c, n):
    b = b""
    while len(b) < n:
        part = c.recv(n - len(b))
        if not part:
            raise EOFError(b)
        b += part
    return b
def proxy():
    host, port = os.environ["LLMSANDBOX_PROXY"].split(":")
    return socket.create_connection((host, int(port)))
def socks(host, port):
    c = proxy()
    c.sendall(b"\x05\x01\x00")
    assert exactly(c, 2) == b"\x05\x00"
    c.sendall(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    code = exactly(c, 4)[1]
    exactly(c, 6)
    return code, c
`

// networkProtocols: HTTP, HTTPS, WebSocket, any TCP, names that only the host's side
// knows, and IPv6 beyond it; each is in the result's log.
func (s *suite) networkProtocols(t *testing.T) {
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	res := run(t, sb, pythonNetwork+`
print("http", get(web + "/hello"))
print("upload", get(web + "/length", b"x" * 3_000_000))
print("large", len(get(web + "/large")))
print("https", get(tls + "/hello"))
if "V6" in os.environ:
    print("v6", get(os.environ["V6"] + "/hello"))
code, c = socks("echo.test", echo)
c.sendall(b"\0any byte")
c.shutdown(socket.SHUT_WR)
print("socks", code, exactly(c, 9), c.recv(1))
port = web.rsplit(":", 1)[1]
c = proxy()
c.sendall(f"GET {web}/socket HTTP/1.1\r\nHost: web.test:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
head = b""
while not head.endswith(b"\r\n\r\n"):
    head += exactly(c, 1)
c.sendall(b"\x81\x85\0\0\0\0hello")
print("websocket", head.split()[1], b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, exactly(c, 7))
try:
    print("REACHED", socket.getaddrinfo("web.test", 80))
except OSError:
    print("no name is known inside")
`, nil)
	wantExit(t, res, 0)
	webPort, tlsPort := h.env(t)["WEB_PORT"], port(t, h.tls.Listener)
	for _, line := range []string{
		"http hello from web.test:" + webPort, "upload 3000000", "large 8388608", "https hello from tls.test:" + tlsPort,
		`socks 0 b'\x00any byte' b''`, `websocket b'101' True b'\x81\x05hello'`, "no name is known inside",
	} {
		if !strings.Contains(res.Stdout, line+"\n") {
			t.Errorf("%q is missing in, want it to contain %q\n%s%s", line, line+"\n", res.Stdout, res.Stderr)
		}
	}
	if h.v6 != nil && !strings.Contains(res.Stdout, "v6 hello from v6.test") {
		t.Errorf("IPv6, want v6 = nil or Stdout containing \"v6 hello from v6.test\":\n%s", res.Stdout)
	}
	for _, c := range []struct{ name, protocol string }{{"web.test", "http"}, {"tls.test", "connect"}, {"echo.test", "socks5"}} {
		a := attempted(t, res.Network, c.name, c.protocol)
		if !a.Allowed || a.Address.String() != "127.0.0.1" || a.Time.IsZero() {
			t.Errorf("%+v: want allowed, with the address that was dialled", a)
		}
	}
	if a := attempted(t, res.Network, "echo.test", "socks5"); a.Sent != 9 || a.Received != 9 || a.Port != toPort(t, h.env(t)["ECHO_PORT"]) {
		t.Errorf("%+v: want 9 bytes both ways", a)
	}
	settles(t, func() error {
		if got := len(h.hooked()); got < len(res.Network) {
			return errors.New("the hook did not get every attempt")
		}
		return nil
	})
	if detail := control(sb, "network").Detail; !strings.Contains(detail, "what the rules name") {
		t.Errorf("the network is declared as %q, without its rules, want it to contain \"what the rules name\"", detail)
	}
	if again := run(t, sb, "print(1)", nil); len(again.Network) != 0 {
		t.Errorf("a run that reached for nothing: %+v, want none", again.Network)
	}
}
