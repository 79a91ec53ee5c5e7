package backendtest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// safeByDefault looks from inside at what was not asked for and must not be there: the rights
// of root, a network, the caller's environment, more than one place to write.
func (s *suite) safeByDefault(t *testing.T) {
	s.has(t, ReadOnlyRoot)
	t.Setenv("LLMSANDBOX_CONFORMANCE_SECRET", "not to be inherited")
	sb := s.shared(t)
	res := run(t, sb, `
import ctypes, os, socket
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
for name in ("CapInh", "CapPrm", "CapEff"): print(name, int(status[name], 16))
print("CapAmb", int(status.get("CapAmb", "0"), 16)) # a kernel without them does not tell
print("NoNewPrivs", ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))
print("root", os.getuid() == 0 or os.getgid() == 0 or 0 in os.getgroups())
print("secret", "LLMSANDBOX_CONFORMANCE_SECRET" in os.environ)
for name in ("PATH", "HOME", "TMPDIR"): print(name, name in os.environ)
print("text", "ü".encode() == os.fsencode("ü"))
for place in ("/", "/etc", "/usr", "/usr/bin", "/root", "/var", "/proc", "/sys", "/dev"):
    try: open(os.path.join(place, "written-by-conformance"), "w")
    except OSError: pass
    else: print("written to", place)
for place in (os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"], "/sandbox", "/tmp"):
    name = os.path.join(place, "written-by-conformance")
    open(name, "w").write("x"); os.unlink(name)
print("end")
`, nil)
	wantLines(t, res, "CapInh 0", "CapPrm 0", "CapEff 0", "CapAmb 0", "NoNewPrivs 1", "root False", "secret False",
		"PATH True", "HOME True", "TMPDIR True", "text True", "end")
	wantStdout(t, run(t, sb, "import os; print(os.environ['OMP_NUM_THREADS'])", nil), "1\n") // the limit of CPUs is 1
	if control(sb, "seccomp").Enforced {
		wantStdout(t, run(t, sb, "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')])", nil), "['2']\n")
	}
}

// noNetwork: a sandbox has its own loopback, and nothing else that leads anywhere.
func (s *suite) noNetwork(t *testing.T) {
	sb := s.shared(t)
	needs(t, sb, "network")
	w := newWitness(t)
	_, addressed := s.Lacks[OnlyLoopback]
	// Where there is a route, connecting a datagram socket sends nothing: only an answer shows it.
	res := run(t, sb, attempts+"addressed = "+python(addressed)+"\nhosts = "+python(w.addresses)+"\nport = "+strconv.Itoa(w.port)+`
import socket
from concurrent.futures import ThreadPoolExecutor
if not addressed: print("interfaces", sorted(name for _, name in socket.if_nameindex() if name not in ("tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0")))
def connect(kind, *address):
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, kind) as c:
        c.settimeout(5)
        c.connect(address)
        if kind == socket.SOCK_DGRAM and addressed:
            c.send(b"x")
            return c.recv(1)
        return c.getsockname()
with ThreadPoolExecutor(8) as pool:
    tried = []
    for address in ("192.0.2.1", "169.254.169.254", "10.0.0.1", "172.17.0.1", "198.51.100.1", "2001:db8::1"):
        tried.append((address, pool.submit(connect, socket.SOCK_STREAM, address, 80)))
        tried.append(("udp " + address, pool.submit(connect, socket.SOCK_DGRAM, address, 53)))
    for address in hosts:
        tried.append((address, pool.submit(connect, socket.SOCK_STREAM, address, port)))
        tried.append(("udp " + address, pool.submit(connect, socket.SOCK_DGRAM, address, port)))
    tried.append(("name", pool.submit(socket.getaddrinfo, "example.org", 80)))
    for what, outcome in tried:
        attempt(what, outcome.result)
print("end")`, &llmsandbox.RunOptions{})
	wantNothingReached(t, res)
	if !addressed && !strings.Contains(res.Stdout, "interfaces ['lo']\n") {
		t.Errorf("more than a loopback, want addressed = true or Stdout containing \"interfaces ['lo']\\n\":\n%s", res.Stdout)
	}
	if n := w.reached(); n != 0 {
		t.Errorf("this machine was reached %d times from inside, want 0", n)
	}
}
