package backendtest

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// safeByDefault looks from inside at what nobody asked for, and nobody may get: the rights
// of root, a network, the caller's environment, more than one place to write.
func (s *suite) safeByDefault(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFORMANCE_SECRET", "not to be inherited")
	sb := s.shared(t)
	res := run(t, sb, `
import os, socket
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"): print(name, int(status[name], 16))
print("NoNewPrivs", status["NoNewPrivs"])
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
	if control(sb, "seccomp").Enforced {
		wantStdout(t, run(t, sb, "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')])", nil), "['2']\n")
	}
}

// noNetwork: a sandbox has its own loopback, and nothing else.
func (s *suite) noNetwork(t *testing.T) {
	sb := s.shared(t)
	needs(t, sb, "network")
	res := run(t, sb, attempts+`
import socket
print("interfaces", sorted(name for _, name in socket.if_nameindex() if name not in ("tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0")))
def connect(family, kind, address):
    with socket.socket(family, kind) as c:
        c.settimeout(5)
        c.connect(address)
        return c.getsockname()
for address in ("192.0.2.1", "169.254.169.254", "10.0.0.1", "172.17.0.1", "198.51.100.1"):
    attempt(address, lambda: connect(socket.AF_INET, socket.SOCK_STREAM, (address, 80)))
    attempt("udp " + address, lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, (address, 53)))
attempt("v6", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)))
attempt("name", lambda: socket.getaddrinfo("example.org", 80))
print("end")`, &llmsandbox.RunOptions{})
	wantNothingReached(t, res)
	if !strings.Contains(res.Stdout, "interfaces ['lo']\n") {
		t.Errorf("more than a loopback:\n%s", res.Stdout)
	}
}
