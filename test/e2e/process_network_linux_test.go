package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestInPlaceNetwork: code without namespaces reaches what its rules allow through its own proxy, nothing else, and nobody else gets
// through that proxy: neither other sandboxes nor other processes on the same loopback, whoever's they are.
func TestInPlaceNetwork(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Token") == "victim-canary") }))
	defer web.Close()
	hidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "REACHED hidden") }))
	defer hidden.Close()
	n, url, at := webNetwork(web)
	ctx := testContext(t)
	victim := openInPlace(t, llmsandbox.Options{Network: n,
		Secrets: []llmsandbox.Secret{{Name: "TOKEN", Value: "victim-canary", Hosts: []string{at}}}})
	const own = `import os, sys, urllib.request
print(os.environ["LLMSANDBOX_PROXY"].split(":")[1])
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Token": os.environ["TOKEN"]})).read().decode())`
	res := run(t, victim, own, &llmsandbox.RunOptions{Args: []string{url}})
	wantExit(t, res, 0)
	number, rest, _ := strings.Cut(res.Stdout, "\n")
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || rest != "true\n" || len(res.Network) != 1 || !res.Network[0].Allowed {
		t.Fatalf("the sandbox's own use of its proxy: %q, %v, attempts %+v, want a port, true and one attempt that was allowed", res.Stdout, err, res.Network)
	}
	heard := make(chan llmsandbox.NetworkAttempt, 100)
	n.Hook = func(a llmsandbox.NetworkAttempt) { heard <- a }
	if err := victim.SetNetwork(ctx, n); err != nil {
		t.Fatal(err)
	}

	for name, network := range map[string]llmsandbox.Network{
		"without a network": {}, "with another": {Mode: llmsandbox.NetworkAllow, Allow: []string{"other.example"}},
	} {
		t.Run("a sandbox "+name, func(t *testing.T) {
			sb := openInPlace(t, llmsandbox.Options{Network: network})
			_, hiddenPort, _ := net.SplitHostPort(strings.TrimPrefix(hidden.URL, "http://"))
			res := run(t, sb, inPlaceNetworkAttack, &llmsandbox.RunOptions{Args: []string{number, hiddenPort, url}})
			wantExit(t, res, 0)
			if !strings.HasSuffix(res.Stdout, "end\n") || strings.Contains(res.Stdout, "REACHED") {
				t.Errorf("want an end, and nothing reached:\n%s", res.Stdout)
			}
		})
	}
	request := fmt.Sprintf("GET %s/ HTTP/1.1\r\nHost: %s\r\nToken: x\r\nConnection: close\r\n\r\n", url, at)
	t.Run("this process", func(t *testing.T) {
		conn, err := net.Dial("tcp4", "127.0.0.1:"+number)
		if err != nil {
			t.Fatal(err)
		}
		wantNoAnswer(t, conn, request)
	})
	t.Run("the caller, by the agent", func(t *testing.T) {
		conn, err := victim.Dial(ctx, uint16(port))
		if err != nil {
			t.Fatal(err)
		}
		wantNoAnswer(t, conn, request)
	})
	t.Run("another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can be another user")
		}
		cmd := exec.Command("/usr/bin/python3", "-c", `import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
try: c.sendall(sys.argv[2].encode()); print(c.recv(100))
except OSError: print(b"")`, number, request)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "b''\n" {
			t.Errorf("%s, %v, want no byte", out, err)
		}
	})
	if len(heard) > 0 {
		t.Errorf("the proxy was asked: %+v, want that no connection of others came to it", <-heard)
	}
	if res := run(t, victim, own, &llmsandbox.RunOptions{Args: []string{url}}); res.Stdout != number+"\ntrue\n" {
		t.Errorf("afterwards: %q, %q, want what it was before", res.Stdout, res.Stderr)
	}
}

// webNetwork lets a sandbox reach a server of this machine by a name, since programs use no proxy for what they take for their own host.
func webNetwork(web *httptest.Server) (n llmsandbox.Network, url, at string) {
	_, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	at = "web.test:" + port
	resolve := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{at, "127.0.0.1:" + port}, Resolve: resolve}, "http://" + at, at
}

func wantNoAnswer(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, request) // it may be closed already
	if b, err := io.ReadAll(conn); len(b) > 0 || os.IsTimeout(err) {
		t.Errorf("%q, %v, want the connection closed without a byte", b, err)
	}
}

// TestInPlaceNetworkEnds: what a program has of the network ends with it, and other programs have none that start before or without it.
func TestInPlaceNetworkEnds(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "allowed") }))
	defer web.Close()
	ctx := testContext(t)
	n, url, _ := webNetwork(web)
	sb := openInPlace(t, llmsandbox.Options{Network: n})
	in, more := io.Pipe()
	out, says := io.Pipe()
	done, answers := make(chan *llmsandbox.Result, 1), bufio.NewReader(out)
	go func() {
		res, _ := sb.Run(ctx, `import sys, urllib.request
for line in sys.stdin:
    try: print(urllib.request.urlopen(line.strip()).read().decode(), flush=True)
    except OSError as e: print(e.reason.errno, flush=True)`, &llmsandbox.RunOptions{Stdin: in, Stdout: says})
		says.Close()
		done <- res
	}()
	ask := func(want string) {
		t.Helper()
		fmt.Fprintln(more, url)
		if got, err := answers.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("%q, %v, want %s", got, err, want)
		}
	}
	ask("allowed")
	if err := sb.SetNetwork(ctx, llmsandbox.Network{}); err != nil {
		t.Fatal(err)
	}
	ask("111") // ECONNREFUSED
	if err := sb.SetNetwork(ctx, n); err != nil {
		t.Fatal(err)
	}
	ask("allowed")
	more.Close()
	if res := <-done; res == nil || res.ExitCode != 0 {
		t.Errorf("%+v, want exit code 0", res)
	}
}

// inPlaceNetworkAttack gets the port of another sandbox's proxy, one of a server of this machine, and a URL that the other sandbox may reach.
const inPlaceNetworkAttack = `
import ctypes, errno, os, socket, struct, sys, urllib.request
victim, hidden, url = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, f):
    try:
        r = f()
    except OSError as e:
        print(what, errno.errorcode.get(e.errno, str(e)), flush=True)
    else:
        print(what, "REACHED", r, flush=True)
def connect(family, address, kind=socket.SOCK_STREAM, proto=0, again=False):
    def f():
        c = socket.socket(family, kind, proto)
        c.settimeout(20 if again else None)
        c.connect(address)
        return c.getsockname()
    return f
def fast(send):
    def f():
        c = socket.socket()
        return send(c)
    return f
def raw(family):
    def f():
        c = socket.socket()
        b = struct.pack("=H", family) + struct.pack(">H", victim) + socket.inet_aton("127.0.0.1") + bytes(8)
        if libc.connect(c.fileno(), b, len(b)) < 0:
            raise OSError(ctypes.get_errno(), "")
        return c.getpeername()
    return f
for port in (victim, hidden, 1, 22, 80):
    for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "169.254.169.254", "192.0.2.1"):
        attempt("connect %s %d" % (address, port), connect(socket.AF_INET, (address, port)))
        attempt("connect in time %s %d" % (address, port), connect(socket.AF_INET, (address, port), again=True))
        attempt("udp %s %d" % (address, port), connect(socket.AF_INET, (address, port), socket.SOCK_DGRAM))
    for address in ("::1", "::ffff:127.0.0.1", "::", "::ffff:0.0.0.0", "2001:db8::1"):
        attempt("connect %s %d" % (address, port), connect(socket.AF_INET6, (address, port)))
for port in (victim, hidden):
    to = ("127.0.0.1", port)
    attempt("fast open by sendto", fast(lambda c: c.sendto(b"x", socket.MSG_FASTOPEN, to)))
    attempt("fast open by sendmsg", fast(lambda c: c.sendmsg([b"x"], [], socket.MSG_FASTOPEN, to)))
    attempt("send to an address", fast(lambda c: c.sendto(b"x", to)))
    attempt("fast open by connect", fast(lambda c: (c.setsockopt(socket.IPPROTO_TCP, 30, 1), c.connect(to), c.send(b"x"))))
    attempt("multipath", connect(socket.AF_INET, to, proto=262))
    attempt("sctp", connect(socket.AF_INET, to, proto=132))
for family in (0, 2, 3, 10, 43):
    attempt("connect family %d" % family, raw(family))
for f in (socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, 40, 43, 44):
    attempt("socket %d" % f, lambda: socket.socket(f, socket.SOCK_STREAM))
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
    attempt("kind %d" % kind, lambda: socket.socket(socket.AF_INET, kind))
attempt("bind", fast(lambda c: c.bind(("127.0.0.1", 0))))
attempt("bind its port", fast(lambda c: (c.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), c.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1), c.bind(("127.0.0.1", victim)))))
attempt("listen", fast(lambda c: c.listen(1)))
def uring():
    if libc.syscall(425, 8, ctypes.create_string_buffer(256)) < 0:
        raise OSError(ctypes.get_errno(), "")
attempt("io_uring", uring)
for proxy in ("http://127.0.0.1:%d" % victim, os.environ.get("HTTP_PROXY", "http://127.0.0.1:1")):
    attempt("through " + proxy, lambda: urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy})).open(url, timeout=20).read())
def own(family=0):
    "the sandbox's own proxy, after which the socket is to lead elsewhere"
    host, port = os.environ["LLMSANDBOX_PROXY"].split(":")
    c = socket.create_connection((host, int(port)))
    b = struct.pack("=H", family) + struct.pack(">H", victim) + socket.inet_aton("127.0.0.1") + bytes(8)
    if libc.connect(c.fileno(), b, len(b)) < 0:
        raise OSError(ctypes.get_errno(), "")
    return c.getpeername()
if "LLMSANDBOX_PROXY" in os.environ:
    attempt("disconnect", own)
    attempt("connect again", lambda: own(2))
    own_port = int(os.environ["LLMSANDBOX_PROXY"].split(":")[1])
    for address in ("127.0.0.2", "0.0.0.0"):
        attempt("the own port at " + address, connect(socket.AF_INET, (address, own_port)))
    attempt("the own port at ::1", connect(socket.AF_INET6, ("::1", own_port)))
    attempt("bind the own port", fast(lambda c: c.bind(("127.0.0.1", own_port))))
print("end")
`
