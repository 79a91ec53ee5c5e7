package backendtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// networkRefuses: what is not allowed fails at once, with a reason that is in the program's
// hands and in the log, and what does not use the proxy reaches nothing.
func (s *suite) networkRefuses(t *testing.T) {
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	res := run(t, sb, pythonNetwork+`
start = time.monotonic()
print("name", get("http://other.example/"))
print("metadata", get("http://169.254.169.254/latest"))
print("port", get("http://web.test:1/"))
print("tls", get("https://other.example/"))
print("socks", socks("other.example", 443)[0])
print("direct", urllib.request.build_opener(urllib.request.ProxyHandler({})) is not None)
print("soon", time.monotonic() - start < 10)
for family, address in ((socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_INET, ("127.0.0.1", echo)), (socket.AF_INET6, ("2001:db8::1", 80))):
    try:
        with socket.socket(family) as c:
            c.settimeout(20)
            c.connect(address)
            print("REACHED", address)
    except TimeoutError:
        print("HANGS", address)
    except OSError:
        pass
print("all soon", time.monotonic() - start < 10)
`, nil)
	wantExit(t, res, 0)
	wanted := []string{"name 403 ", "metadata 403 ", "port 403 ", "tls failed ", "403 not-allowed: other.example:443: it is not on the list", "socks 2\n", "\nsoon True"}
	// An interface that leads nowhere may swallow what is sent to it.
	_, addressed := s.Lacks[OnlyLoopback]
	if !addressed {
		wanted = append(wanted, "all soon True")
	}
	for _, want := range wanted {
		if !strings.Contains(res.Stdout, want) {
			t.Errorf("%q is missing in\n%s%s", want, res.Stdout, res.Stderr)
		}
	}
	if !strings.Contains(res.Stdout, "other.example") || strings.Contains(res.Stdout, "REACHED") || !addressed && strings.Contains(res.Stdout, "HANGS") {
		t.Errorf("%s, want Stdout containing \"other.example\", Stdout without \"REACHED\", addressed = true or Stdout without \"HANGS\"", res.Stdout)
	}
	for _, name := range []string{"other.example", "169.254.169.254"} {
		if a := attempted(t, res.Network, name, "http"); a.Allowed || a.Reason == "" || a.Address.IsValid() {
			t.Errorf("%+v: want refused, with a reason, and nothing dialled", a)
		}
	}
}

// networkNone: without a network no process listens, and nothing is in the environment.
func (s *suite) networkNone(t *testing.T) {
	sb := s.shared(t)
	res := run(t, sb, `import errno, os, socket
print([k for k in os.environ if "proxy" in k.lower()])
try:
    socket.create_connection(("127.0.0.1", 28471), 20)
    print("REACHED")
except OSError as e: # some have no sockets
    print("refused" if e.errno in (errno.ECONNREFUSED, errno.EAFNOSUPPORT) else e)
`, nil)
	wantStdout(t, res, "[]\nrefused\n")
	if res.Network != nil {
		t.Errorf("attempts without a network: %+v, want nil", res.Network)
	}
}

// networkNonsense: what makes no sense fails before there is a sandbox.
func (s *suite) networkNonsense(t *testing.T) {
	for _, n := range []llmsandbox.Network{
		{Mode: "some"}, {Mode: llmsandbox.NetworkAllow}, {Allow: []string{"a.test"}}, {Mode: llmsandbox.NetworkNone, Allow: []string{"a.test"}},
		{Mode: llmsandbox.NetworkAllow, Allow: []string{"http://a.test/"}}, {Mode: llmsandbox.NetworkAllow, Allow: []string{"a.test:0"}},
	} {
		sb, err := llmsandbox.Open(testContext(t), new(s.options(llmsandbox.Options{Network: n})))
		if !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", n, err)
		}
		if err == nil {
			sb.Close()
		}
	}
}
