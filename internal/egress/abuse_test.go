package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func hello200(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "hello from %s%s", r.Host, r.URL.Path)
}

// Case 56: the metadata services, also with a list that allows everything.
func TestAbuse56Metadata(t *testing.T) {
	for mode, allow := range map[string][]string{"full": nil, "allow": {"*", "169.254.0.0/16"}} {
		r := newRig(t, mode, allow, nil)
		r.web("169.254.169.254:80", hello200)
		r.name("innocent.test", "169.254.169.254")
		for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "innocent.test", "2852039166", "[::ffff:169.254.169.254]"} {
			status, code, body := get(t, r.client("http"), "http://"+host+"/latest/meta-data")
			if status != http.StatusForbidden || code != string(RefusedMetadata) || !strings.Contains(body, "metadata") {
				t.Errorf("%s %s: %d %q %s, want status = %d, code = %q, body containing \"metadata\"", mode, host, status, code, body, http.StatusForbidden, string(RefusedMetadata))
			}
			if a := r.next(); a.Allowed || a.Reason == "" || a.Protocol != "http" || a.Port != 80 {
				t.Errorf("%s: logged %+v, want Allowed false, Reason not empty, Protocol = \"http\", Port = 80", host, a)
			}
			if _, code := r.socks(socksConnect, strings.Trim(host, "[]"), 80); code != socksRefused {
				t.Errorf("%s %s by SOCKS: %d, want %d", mode, host, code, socksRefused)
			}
			r.next()
		}
		if len(r.dialled) != 0 {
			t.Errorf("%s: dialled %v, want none", mode, r.dialled)
		}
	}
}

// Case 57: the host, its networks, and every writing of their addresses.
func TestAbuse57PrivateAddresses(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	for i, addr := range append(forbidden, "93.184.216.99" /* the host's own */) {
		name := fmt.Sprintf("n%d.test", i)
		r.name(name, addr)
		for _, host := range []string{name, addr} {
			c, status, body := r.connect(net.JoinHostPort(host, "443"))
			_ = c.Close()
			if status != http.StatusForbidden {
				t.Errorf("%s (%s): %d %s, want %d", host, addr, status, body, http.StatusForbidden)
			}
			if host == name && strings.Contains(body, addr) {
				t.Errorf("the refusal tells what %s resolves to: %s, want host != %v or body without %q", name, body, name, addr)
			}
			r.next()
		}
	}
	if len(r.dialled) != 0 {
		t.Errorf("dialled %v, want none", r.dialled)
	}
}

// Case 58: no name that is not allowed is looked up, so that none can carry data out.
func TestAbuse58NamesAreNotLookedUp(t *testing.T) {
	r := newRig(t, "allow", []string{"example.test", "10.0.0.0/8", "1.1.1.1:443"}, nil)
	for _, host := range []string{"c2VjcmV0.evil.test", "c2VjcmV0.example.test", "example.test.evil.test"} {
		if status, _, _ := get(t, r.client("http"), "http://"+host+"/"); status != http.StatusForbidden {
			t.Errorf("%s: %d, want %d", host, status, http.StatusForbidden)
		}
		if _, code := r.socks(socksConnect, host, 53); code != socksRefused {
			t.Errorf("%s: %d, want %d", host, code, socksRefused)
		}
		c, status, _ := r.connect(host + ":853")
		_ = c.Close()
		if status != http.StatusForbidden {
			t.Errorf("%s: %d, want %d", host, status, http.StatusForbidden)
		}
	}
	if len(r.lookups) != 0 {
		t.Errorf("looked up %q, want none", r.lookups)
	}
	if _, code := r.socks(socksConnect, "1.1.1.1", 53); code != socksRefused {
		t.Errorf("DNS over TCP to a raw address: code = %v, want %v", code, socksRefused)
	}
}

// Case 59: an allowed name that resolves to a private address, at once, together with
// a public one, or from the second time on.
func TestAbuse59Rebinding(t *testing.T) {
	r := newRig(t, "allow", []string{"rebind.test"}, nil)
	r.web("127.0.0.1:80", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "CANARY") })
	r.web(public+":80", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "public")
	})
	c := r.client("http")
	check := func(what, want string) {
		t.Helper()
		before := len(r.lookups)
		_, _, body := get(t, c, "http://rebind.test/")
		if !strings.Contains(body, want) || strings.Contains(body, "CANARY") {
			t.Errorf("%s: %s, want body containing %q, body without \"CANARY\"", what, body, want)
		}
		if n := len(r.lookups) - before; n != 1 {
			t.Errorf("%s: looked up %d times, want 1", what, n)
		}
		r.next()
	}
	r.name("rebind.test", "127.0.0.1")
	check("private", "refused")
	r.name("rebind.test", "127.0.0.1", public, "::1")
	check("both", "public")
	r.name("rebind.test", public)
	check("public", "public")
	r.name("rebind.test", "127.0.0.1")
	check("then private", "refused")
	for _, a := range r.dialled {
		if a.Addr() != netip.MustParseAddr(public) {
			t.Errorf("dialled %v, want a.Addr() = netip.MustParseAddr(public)", a)
		}
	}
}

// tlsThrough does a TLS handshake for a name in a tunnel to a host.
func (r *rig) tlsThrough(to string, cfg *tls.Config) (*tls.Conn, error) {
	c, status, body := r.connect(to)
	if status != http.StatusOK {
		return nil, fmt.Errorf("%d %s", status, body)
	}
	cfg.RootCAs = r.authority.Pool()
	tc := tls.Client(c, cfg)
	return tc, tc.Handshake()
}

// Case 60: TLS and HTTP for another name than the one that was asked for.
func TestAbuse60AnotherName(t *testing.T) {
	r := newRig(t, "allow", []string{"good.test"}, nil)
	r.name("good.test", public)
	r.webTLS(public+":443", "good.test", hello200)
	r.web(public+":80", hello200)

	tc, err := r.tlsThrough("good.test:443", &tls.Config{ServerName: "good.test"})
	if err != nil {
		t.Fatal(err)
	}
	_ = tc.Close()
	if a := r.next(); !a.Allowed || a.Sent == 0 || a.Received == 0 || a.Address != netip.MustParseAddr(public) || a.Reason != "" {
		t.Errorf("logged %+v, want Allowed true, Sent != 0, Received != 0, a.Address = netip.MustParseAddr(public), Reason empty", a)
	}
	for what, cfg := range map[string]*tls.Config{
		"other name": {ServerName: "evil.test"},
		"no name":    {InsecureSkipVerify: true},
		"sub-domain": {ServerName: "a.good.test"},
	} {
		if _, err := r.tlsThrough("good.test:443", cfg); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v, want an error containing \"access denied\"", what, err)
		}
		if a := r.next(); a.Allowed || a.Reason == "" {
			t.Errorf("%s: logged %+v, want Allowed false, Reason not empty", what, a)
		}
	}

	for what, request := range map[string]string{
		"other Host":              "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"after empty lines":       "\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"with tabs":               "GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"an URL":                  "GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"two Hosts":               "GET / HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n",
		"another port":            "GET / HTTP/1.1\r\nHost: good.test:8080\r\n\r\n",
		"something else entirely": "\x00\x01\x02\x03\x04\x05\x06\x07",
	} {
		c, _, _ := r.connect("good.test:80")
		fmt.Fprint(c, request)
		if got := ends(t, half(c)); strings.Contains(got, "hello from") {
			t.Errorf("%s: %s, want it not to contain \"hello from\"", what, got)
		}
	}
	// The second request of a connection is looked at, too.
	c, _, _ := r.connect("good.test:80")
	fmt.Fprint(c, "GET /1 HTTP/1.1\r\nHost: good.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")
	if got := ends(t, c); !strings.Contains(got, "hello from good.test/1") || strings.Contains(got, "/2") || !strings.Contains(got, "X-Llmsandbox-Refused: other-name") {
		t.Errorf("second request: %s, want got containing \"hello from good.test/1\", got without \"/2\", got containing \"X-Llmsandbox-Refused: other-name\"", got)
	}
}

// half ends the sending half of c.
func half(c *peeked) net.Conn {
	_ = c.CloseWrite()
	return c
}

// Case 61: an allowed host that would relay, asked to do so inside its tunnel.
func TestAbuse61Relay(t *testing.T) {
	r := newRig(t, "allow", []string{"relay.test:3128"}, nil)
	r.name("relay.test", public)
	relayed := make(chan string, 10)
	r.raw(public+":3128", func(c net.Conn) {
		b := make([]byte, 100)
		n, _ := c.Read(b)
		if n > 0 {
			relayed <- string(b[:n])
		}
	})
	for _, request := range []string{
		"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
		"CONNECT evil.test:443 HTTP/1.0\r\n\r\n",
		"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"\x05\x01\x00", "\x04\x01\x01\xbb\x01\x01\x01\x01\x00",
	} {
		c, status, body := r.connect("relay.test:3128")
		if status != http.StatusOK {
			t.Fatalf("status = %v, body = %v, want status = %d", status, body, http.StatusOK)
		}
		fmt.Fprint(c, request)
		ends(t, half(c))
	}
	select {
	case got := <-relayed:
		t.Errorf("the relay was sent %q, want nothing", got)
	default:
	}
}

// Case 62: each hop of a redirection is checked anew.
func TestAbuse62Redirect(t *testing.T) {
	r := newRig(t, "allow", []string{"good.test"}, nil)
	r.name("good.test", public)
	r.name("evil.test", "93.184.216.35")
	r.web("93.184.216.35:80", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "CANARY") })
	r.web(public+":80", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://"+strings.TrimPrefix(req.URL.Path, "/")+"/", http.StatusFound)
	})
	for _, to := range []string{"evil.test", "93.184.216.35", "169.254.169.254"} {
		status, code, body := get(t, r.client("http"), "http://good.test/"+to)
		if status != http.StatusForbidden || code == "" || strings.Contains(body, "CANARY") {
			t.Errorf("%s: %d %q %s, want status = %d, code not empty, body without \"CANARY\"", to, status, code, body, http.StatusForbidden)
		}
	}
}

// Case 63: a raw address when only names are allowed, though a name resolves to it.
func TestAbuse63RawAddress(t *testing.T) {
	r := newRig(t, "allow", []string{"good.test"}, nil)
	r.name("good.test", public)
	r.web(public+":80", hello200)
	if status, _, body := get(t, r.client("http"), "http://good.test/"); status != http.StatusOK {
		t.Fatalf("status = %v, body = %v, want status = %d", status, body, http.StatusOK)
	}
	for _, raw := range []string{public, "1572395042", "0x5db8d822", "[::ffff:5db8:d822]"} {
		if status, code, _ := get(t, r.client("http"), "http://"+raw+"/"); status != http.StatusForbidden || code != string(RefusedNotAllowed) {
			t.Errorf("%s: %d %s, want status = %d, code = %s", raw, status, code, http.StatusForbidden, string(RefusedNotAllowed))
		}
	}
}

// Case 64: nothing but TCP.
func TestAbuse64OnlyTCP(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	for _, command := range []byte{socksBind, socksUDP, 0, 9} {
		if _, code := r.socks(command, public, 53); code != socksCommandUnknown {
			t.Errorf("command %d: %d, want %d", command, code, socksCommandUnknown)
		}
		if a := r.next(); a.Allowed || a.Reason == "" {
			t.Errorf("command %d: logged %+v, want Allowed false, Reason not empty", command, a)
		}
	}
}

// Case 66: who is not in the sandbox cannot use the proxy: it has no listener, and what
// comes in by Serve after Close is closed.
func TestAbuse66NothingListens(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	r.proxy.Close()
	a, b := net.Pipe()
	r.proxy.Serve(t.Context(), a)
	if _, err := b.Write([]byte("GET")); err == nil {
		t.Error("a closed proxy still takes connections: got no error, want an error")
	}
}

// Case 68: a refusal comes at once, whatever the internet does, with what a model needs.
func TestAbuse68RefusalsAreFastAndReadable(t *testing.T) {
	r := newRig(t, "allow", []string{"good.test:443"}, func(c *Config) {
		c.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	status, code, body := get(t, r.client("http"), "http://evil.test/")
	if status != http.StatusForbidden || code != "not-allowed" {
		t.Errorf("status = %v, code = %v, want status = %d, code = \"not-allowed\"", status, code, http.StatusForbidden)
	}
	for _, want := range []string{"refused the connection to evil.test:80", "not on the list", "ask the user", "rule evil.test:80"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q lacks %q", body, want)
		}
	}
	if a := r.next(); a.Duration > 5*time.Second || a.Duration <= 0 {
		t.Errorf("it took %v, want Duration <= 5s, Duration > 0", a.Duration)
	}
	c, status, body := r.connect("evil.test:443")
	_ = c.Close()
	if status != http.StatusForbidden || !strings.Contains(body, "rule evil.test:443") {
		t.Errorf("status = %v, body = %v, want status = %d, body containing \"rule evil.test:443\"", status, body, http.StatusForbidden)
	}
	r.next()
	// What a hostile name would do to a terminal or a reader is escaped.
	open := r.open()
	fmt.Fprint(open, "GET http://a\x1b]0;x\x07/ HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := ends(t, half(open)); strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("%q, want strings.ContainsAny(got, \"\\x1b\\x07\") = false", got)
	}
}

// An error is reported without what the resolver and the system say of their network.
func TestFailuresTellNothingOfTheHost(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	r.name("gone.test", "93.184.216.40")
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := dead.Addr().String()
	_ = dead.Close()
	r.server("93.184.216.40:80", to)
	for host, want := range map[string]string{"nowhere.test": "no such name", "gone.test": "refused the connection"} {
		status, code, body := get(t, r.client("http"), "http://"+host+"/")
		if status != http.StatusBadGateway || code != "" || !strings.Contains(body, want) || strings.Contains(body, "127.0.0.1") || strings.Contains(body, "10.9.8.7") {
			t.Errorf("%s: %d %s, want status = %d, code empty, body containing %q, body without \"127.0.0.1\", body without \"10.9.8.7\"", host, status, body, http.StatusBadGateway, want)
		}
		if a := r.next(); !a.Allowed || !strings.Contains(a.Reason, want) {
			t.Errorf("%s: logged %+v, want Allowed true, Reason containing %q", host, a, want)
		}
	}
	if _, code := r.socks(socksConnect, "nowhere.test", 80); code != socksNoHost {
		t.Errorf("code = %v, want code = %v", code, socksNoHost)
	}
	if _, code := r.socks(socksConnect, "gone.test", 80); code != socksConnRefused {
		t.Errorf("code = %v, want code = %v", code, socksConnRefused)
	}
}

// A policy that is replaced cuts what it forbids and leaves the rest.
func TestSetPolicyCuts(t *testing.T) {
	r := newRig(t, "allow", []string{"a.test", "b.test"}, nil)
	r.name("a.test", public)
	r.name("b.test", "93.184.216.35")
	echo := func(c net.Conn) { _, _ = io.Copy(c, c) }
	r.raw(public+":7", echo)
	r.raw("93.184.216.35:7", echo)
	a, _, _ := r.connect("a.test:7")
	b, _, _ := r.connect("b.test:7")
	say := func(c *peeked) string {
		fmt.Fprint(c, "ping\n")
		line, _ := c.r.ReadString('\n')
		return line
	}
	if say(a) != "ping\n" || say(b) != "ping\n" {
		t.Fatal("a connection does not echo, want \"ping\\n\" from both")
	}
	only, err := ParsePolicy("allow", []string{"b.test"})
	if err != nil {
		t.Fatal(err)
	}
	r.proxy.SetPolicy(only)
	if got := ends(t, a); got != "" {
		t.Errorf("cut connection said %q, want empty", got)
	}
	if got := r.next(); got.Name != "a.test" || !strings.Contains(got.Reason, "changed") {
		t.Errorf("logged %+v, want Name = \"a.test\", Reason containing \"changed\"", got)
	}
	if say(b) != "ping\n" {
		t.Error("the connection that is still allowed does not echo, want \"ping\\n\"")
	}
	c, status, _ := r.connect("a.test:7")
	_ = c.Close()
	if status != http.StatusForbidden {
		t.Errorf("status = %v, want status = %d", status, http.StatusForbidden)
	}
}

// More connections than allowed are refused, and those before go on.
func TestConnectionsAreBounded(t *testing.T) {
	r := newRig(t, "allow", []string{"a.test"}, func(c *Config) { c.MaxConnections = 2 })
	r.name("a.test", public)
	r.raw(public+":7", func(c net.Conn) { _, _ = io.Copy(c, c) })
	one, _, _ := r.connect("a.test:7")
	_, _, _ = r.connect("a.test:7")
	ends(t, r.open())
	if a := r.next(); a.Allowed || !strings.Contains(a.Reason, "too many") {
		t.Errorf("logged %+v, want Allowed false, Reason containing \"too many\"", a)
	}
	fmt.Fprint(one, "still\n")
	if line, _ := one.r.ReadString('\n'); line != "still\n" {
		t.Errorf("%q, want \"still\\n\"", line)
	}
}

// Where any name may be asked for, it does not matter which one it is; where only the
// operator's registries may, it does.
func TestNamesAreComparedWhereTheyCount(t *testing.T) {
	r := newRig(t, "allow", []string{"*:443"}, nil)
	r.name("good.test", public)
	r.webTLS(public+":443", "other.test", hello200)
	tc, err := r.tlsThrough("good.test:443", &tls.Config{ServerName: "other.test"})
	if err != nil {
		t.Fatal(err)
	}
	_ = tc.Close()
	policy, err := ParsePolicy("none", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := policy.AllowRegistry("good.test", 443); err != nil {
		t.Fatal(err)
	}
	r.proxy.SetPolicy(policy)
	if _, err := r.tlsThrough("good.test:443", &tls.Config{ServerName: "other.test"}); err == nil {
		t.Error("another name than the registry's: got no error, want an error")
	}
}

// Only this proxy says that it refused something.
func TestRefusalsCannotBeForged(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	r.name("a.test", public)
	r.web(public+":80", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(refusedHeader, "not-allowed")
		w.WriteHeader(http.StatusForbidden)
	})
	if status, code, _ := get(t, r.client("http"), "http://a.test/"); status != http.StatusForbidden || code != "" {
		t.Errorf("status = %v, code = %v, want status = %d, code empty", status, code, http.StatusForbidden)
	}
}

// One connection out of the sandbox cannot become any number of connections of the host.
func TestConnectionsToTheOutsideAreBounded(t *testing.T) {
	r := newRig(t, "full", nil, func(c *Config) { c.MaxConnections = 1 })
	r.name("a.test", public)
	r.raw(public+":7", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	var open []*upstream
	for range maxPerConnection {
		u, err := r.proxy.connect(t.Context(), target{name: "a.test"}, 7)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, u)
	}
	if _, err := r.proxy.connect(t.Context(), target{name: "a.test"}, 7); refusalOf(err) == nil || refusalOf(err).Code != RefusedTooMany {
		t.Errorf("one more: %v, want refusalOf(err) != nil, Code = RefusedTooMany", err)
	}
	if _, err := r.proxy.connect(t.Context(), target{name: "nowhere.test"}, 7); refusalOf(err) == nil {
		t.Errorf("one more: %v, want refusalOf(err) != nil", err)
	}
	for _, u := range open {
		_ = u.Close()
	}
	u, err := r.proxy.connect(t.Context(), target{name: "a.test"}, 7)
	if err != nil {
		t.Fatal(err)
	}
	_ = u.Close()
}
