package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestHTTPAndHTTPS(t *testing.T) {
	for _, policy := range []struct {
		mode  string
		allow []string
	}{{"full", nil}, {"allow", []string{"site.test"}}} {
		for _, proxy := range []string{"http", "socks5"} {
			r := newRig(t, policy.mode, policy.allow, nil)
			r.name("site.test", public)
			r.web(public+":80", hello200)
			r.web(public+":8080", hello200)
			r.webTLS(public+":443", "site.test", hello200)
			for address, want := range map[string]string{
				"http://site.test/a": "hello from site.test/a", "http://SITE.test:8080/b": "hello from site.test:8080/b", "https://site.test/c": "hello from site.test/c",
			} {
				status, _, body := get(t, r.client(proxy), address)
				if status != 200 || !strings.EqualFold(body, want) {
					t.Errorf("%s by %s: %d %s, want status = 200, strings.EqualFold(body, want) = true", address, proxy, status, body)
				}
			}
		}
	}
}

func TestIPv6(t *testing.T) {
	r := newRig(t, "allow", []string{"[2606:2800::1]:80", "six.test"}, nil)
	r.name("six.test", "2606:2800::2")
	r.web("[2606:2800::1]:80", hello200)
	r.web("[2606:2800::2]:80", hello200)
	if status, _, body := get(t, r.client("http"), "http://[2606:2800::1]/"); status != 200 || !strings.Contains(body, "[2606:2800::1]") {
		t.Errorf("status = %v, body = %v, want status = 200, body containing \"[2606:2800::1]\"", status, body)
	}
	if status, _, body := get(t, r.client("socks5"), "http://six.test/"); status != 200 {
		t.Errorf("status = %v, body = %v, want status = 200", status, body)
	}
}

// The first address that answers is used, and one that does not is not waited for.
func TestDeadAddressesAreNotWaitedFor(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	dial := r.proxy.cfg.Dial
	r.proxy.cfg.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		if addr.Addr().Is6() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return dial(ctx, addr)
	}
	r.name("two.test", "2606:2800::1", "2606:2800::2", public)
	r.web(public+":80", hello200)
	if status, _, body := get(t, r.client("http"), "http://two.test/"); status != 200 {
		t.Errorf("status = %v, body = %v, want status = 200", status, body)
	}
	if a := r.next(); a.Address != netip.MustParseAddr(public) {
		t.Errorf("%+v, want a.Address = netip.MustParseAddr(public)", a)
	}
}

func TestServerSpeaksFirst(t *testing.T) {
	r := newRig(t, "allow", []string{"mail.test:25"}, nil)
	r.name("mail.test", public)
	r.raw(public+":25", func(c net.Conn) {
		fmt.Fprint(c, "220 welcome\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprint(c, "250 "+line)
	})
	c, code := r.socks(socksConnect, "mail.test", 25)
	if code != socksOK {
		t.Fatalf("code = %v, want code = %v", code, socksOK)
	}
	if line, _ := c.r.ReadString('\n'); line != "220 welcome\r\n" {
		t.Fatalf("%q, want \"220 welcome\\r\\n\"", line)
	}
	fmt.Fprint(c, "EHLO me\r\n")
	if got := ends(t, c); got != "250 EHLO me\r\n" {
		t.Errorf("%q, want \"250 EHLO me\\r\\n\"", got)
	}
	_ = c.Close()
	if a := r.next(); a.Protocol != "socks5" || a.Name != "mail.test" || a.Sent != int64(len("EHLO me\r\n")) || a.Received != int64(len("220 welcome\r\n250 EHLO me\r\n")) {
		t.Errorf("logged %+v, want Protocol = \"socks5\", Name = \"mail.test\", Sent = %v, Received = %v", a, int64(len("EHLO me\r\n")), int64(len("220 welcome\r\n250 EHLO me\r\n")))
	}
}

// What a client sends at once after its request is that of the tunnel, and counted.
func TestWhatIsSentAhead(t *testing.T) {
	var total Total
	r := newRig(t, "full", nil, func(c *Config) { c.Total = &total })
	r.raw(public+":7", func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprint(c, line)
	})
	c := r.open()
	request := append([]byte{5, 1, 0, 5, socksConnect, 0, socksIPv4}, netip.MustParseAddr(public).AsSlice()...)
	request = append(request, "\x00\x07ahead\n"...)
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, c); len(got) != 12+len("ahead\n") || got[12:] != "ahead\n" {
		t.Errorf("%q, want a reply of 12 bytes and \"ahead\\n\"", got)
	}
	_ = c.Close()
	if a := r.next(); a.Sent != int64(len("ahead\n")) || a.Received != a.Sent {
		t.Errorf("logged %+v, want Sent = %d, Received = %[2]d", a, len("ahead\n"))
	}
	if sent, received := total.Bytes(); sent != int64(len(request)) || received != int64(12+len("ahead\n")) {
		t.Errorf("in all %d bytes sent and %d received, want %d and %d: what is for the proxy itself counts, too", sent, received, len(request), 12+len("ahead\n"))
	}
}

// The end of what one side sends is passed on to the other, which may still answer.
func TestHalfClose(t *testing.T) {
	for _, mode := range []string{"full", "allow"} {
		var allow []string
		if mode == "allow" {
			allow = []string{"a.test"}
		}
		r := newRig(t, mode, allow, nil)
		r.name("a.test", public)
		r.raw(public+":7", func(c net.Conn) {
			b, _ := io.ReadAll(c)
			fmt.Fprintf(c, "%d bytes", len(b))
		})
		c, _, _ := r.connect("a.test:7")
		fmt.Fprint(c, strings.Repeat("\x00", 1<<20))
		if got := ends(t, half(c)); got != "1048576 bytes" {
			t.Errorf("%s: %q, want \"1048576 bytes\"", mode, got)
		}
	}
}

// upgrade answers a request by talking something else: what WebSocket does.
func upgrade(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		key := r.Header.Get("X-Key")
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nyou are %s;", key)
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		_ = rw.Flush()
	}
}

func TestWebSocket(t *testing.T) {
	for _, way := range []string{"absolute", "connect", "secret"} {
		r := newRig(t, "allow", []string{"ws.test"}, func(c *Config) {
			if way == "secret" {
				c.Secrets = []Secret{{Name: "A", Value: realValue, Hosts: []string{"ws.test"}}}
			}
		})
		r.name("ws.test", public)
		r.web(public+":80", upgrade(t))
		var c *peeked
		target := "http://ws.test/"
		if way == "absolute" {
			c = r.open()
		} else {
			target = "/"
			c, _, _ = r.connect("ws.test:80")
		}
		key := "me"
		if way == "secret" {
			key = r.proxy.Placeholder("A")
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: ws.test\r\nX-Key: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", target, key)
		response, err := http.ReadResponse(c.r, nil)
		if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %v %v, want no error, StatusCode = %d", way, response, err, http.StatusSwitchingProtocols)
		}
		if got, _ := c.r.ReadString(';'); got != "you are "+key+";" {
			t.Errorf("%s: %q, want %q", way, got, "you are "+key+";")
		}
		fmt.Fprint(c, "ping\n")
		if got, _ := c.r.ReadString('\n'); got != "echo ping\n" {
			t.Errorf("%s: %q, want \"echo ping\\n\"", way, got)
		}
		_ = c.Close()
		if a := r.next(); !a.Allowed || a.Sent == 0 || a.Received == 0 {
			t.Errorf("%s: logged %+v, want Allowed true, Sent != 0, Received != 0", way, a)
		}
	}
}

// HTTP/2 without TLS inside a tunnel is looked at like HTTP/1.
func TestHTTP2WithoutTLS(t *testing.T) {
	r := newRig(t, "allow", []string{"h2.test"}, nil)
	r.name("h2.test", public)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, r.Host) }), Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	r.server(public+":80", l.Addr().String())
	// A transport may connect once more than it needs to, and after the test has ended.
	tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
		c, err := r.dialProxy()
		if err != nil {
			return nil, err
		}
		if _, _, err := askForTunnel(c, "h2.test:80"); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Transport: tr}
	if status, _, body := get(t, c, "http://h2.test/"); status != 200 || body != "HTTP/2.0h2.test" {
		t.Errorf("status = %v, body = %v, want status = 200, body = \"HTTP/2.0h2.test\"", status, body)
	}
	q, err := http.NewRequest(http.MethodGet, "http://h2.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = "evil.test"
	response, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("Status = %v, want StatusCode = %d", response.Status, http.StatusForbidden)
	}
}

func TestWhatIsNoProxyRequest(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT a.test:0 HTTP/1.1\r\nHost: a.test\r\n\r\n", "CONNECT a.test:99999 HTTP/1.1\r\nHost: a.test:99999\r\n\r\n",
		"CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "nonsense\r\n\r\n", "\x16\x03\x01\x00\x05", "\x04\x01\x00\x50\x01\x01\x01\x01\x00",
		"\x05\x00", "\x05\x01\x02", "\x05\x01\x00\x05\x01\x00\x09\x00\x00", "\x05\x01\x00\x04\x01\x00\x01\x00\x00\x00\x00\x00\x00",
		"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n",
	} {
		c := r.open()
		fmt.Fprint(c, request)
		if got := ends(t, half(c)); strings.Contains(got, " 200 ") {
			t.Errorf("%.60q: %q, want it not to contain \" 200 \"", request, got)
		}
	}
	if len(r.dialled)+len(r.lookups) != 0 {
		t.Errorf("dialled %v, looked up %v, want len(r.dialled)+len(r.lookups) = 0", r.dialled, r.lookups)
	}
}

// A connection ends with its context, and Close waits for all that is left.
func TestConnectionsEnd(t *testing.T) {
	r := newRig(t, "full", nil, nil)
	r.name("a.test", public)
	hold := make(chan struct{})
	r.raw(public+":7", func(net.Conn) { <-hold })
	defer close(hold)
	inside, outside := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); r.proxy.Serve(ctx, outside) }()
	fmt.Fprint(inside, "CONNECT a.test:7 HTTP/1.1\r\nHost: a.test:7\r\n\r\n")
	_ = inside.SetReadDeadline(time.Now().Add(time.Minute))
	if line, _ := bufio.NewReader(inside).ReadString('\n'); !strings.Contains(line, "200") {
		t.Fatalf("line = %v, want line containing \"200\"", line)
	}
	if open := r.proxy.Open(); len(open) != 1 || open[0].Name != "a.test" || !open[0].Allowed || open[0].Duration != 0 {
		t.Errorf("open: %+v, want len(open) = 1, Name = \"a.test\", Allowed true, Duration = 0", open)
	}
	cancel()
	<-served
	if a := r.next(); a.Name != "a.test" || a.Duration == 0 {
		t.Errorf("logged %+v, want Name = \"a.test\", Duration != 0", a)
	}
	_, _, _ = r.connect("a.test:7")
	r.proxy.Close()
	if a := r.next(); a.Name != "a.test" {
		t.Errorf("logged %+v, want Name = \"a.test\"", a)
	}
	if open := r.proxy.Open(); len(open) != 0 {
		t.Errorf("open: %+v, want none", open)
	}
	r.proxy.Close() // again is nothing
}

// Only what the operator configured goes through the proxy of this process's
// environment.
func TestOperatorsProxy(t *testing.T) {
	r := newRig(t, "allow", []string{"site.test"}, nil)
	r.name("site.test", public)
	r.web(public+":80", hello200)
	asked := make(chan string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			q, err := http.ReadRequest(bufio.NewReader(c))
			if err == nil {
				asked <- q.Method + " " + q.Host + " " + q.Header.Get("Proxy-Authorization")
				if q.Host == "closed.corp:80" {
					fmt.Fprint(c, "HTTP/1.1 407 No\r\n\r\n")
				} else {
					fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n")
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	r.proxy.operator = func(target, uint16) *url.URL {
		return &url.URL{Scheme: "http", Host: l.Addr().String(), User: url.UserPassword("me", "pw")}
	}
	policy, err := ParsePolicy("allow", []string{"site.test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"mirror.corp", "closed.corp"} {
		if err := policy.AllowRegistry(host, 80); err != nil {
			t.Fatal(err)
		}
	}
	r.proxy.SetPolicy(policy)
	if status, _, body := get(t, r.client("http"), "http://site.test/"); status != 200 {
		t.Errorf("status = %v, body = %v, want status = 200", status, body)
	}
	c, status, _ := r.connect("mirror.corp:80")
	if line, _ := c.r.ReadString('\n'); status != 200 || line != "SSH-2.0-x\r\n" {
		t.Errorf("status = %v, line = %v, want status = 200, line = \"SSH-2.0-x\\r\\n\"", status, line)
	}
	if got := <-asked; got != "CONNECT mirror.corp:80 Basic bWU6cHc=" {
		t.Errorf("got = %v, want got = \"CONNECT mirror.corp:80 Basic bWU6cHc=\"", got)
	}
	_, status, body := r.connect("closed.corp:80")
	if <-asked; status != http.StatusBadGateway || !strings.Contains(body, "answered 407") {
		t.Errorf("status = %v, body = %v, want status = %d, body containing \"answered 407\"", status, body, http.StatusBadGateway)
	}
	for _, name := range r.lookups {
		if name != "site.test" {
			t.Errorf("%s was looked up here, want \"site.test\"", name)
		}
	}
}

func TestHiddenNameOfECH(t *testing.T) {
	raw := clientHello(t, &tls.Config{ServerName: "good.test"})
	if l, h := beginning(t, raw); l != speaksTLS || h.name != "good.test" || h.ech {
		t.Fatalf("%d %+v, want %d, name = \"good.test\", ech false", l, h, speaksTLS)
	}
	withECH := addExtension(raw, extensionECH, []byte{0, 1, 2, 3})
	for _, body := range [][]byte{nil, {0, 1, 2, 3}, {1}} {
		if l, h := beginning(t, addExtension(raw, extensionECH, body)); l != speaksTLS || !h.ech || h.name != "good.test" {
			t.Fatalf("%d %+v, want %d, name = \"good.test\", ech true", l, h, speaksTLS)
		}
	}
	r := newRig(t, "allow", []string{"good.test"}, nil)
	r.name("good.test", public)
	r.webTLS(public+":443", "good.test", hello200)
	c, _, _ := r.connect("good.test:443")
	_, _ = c.Write(withECH)
	if got := ends(t, c); got != "\x15\x03\x03\x00\x02\x02\x31" {
		t.Errorf("%q, want \"\\x15\\x03\\x03\\x00\\x02\\x021\"", got)
	}
	if a := r.next(); a.Allowed || !strings.Contains(a.Reason, "Encrypted ClientHello") {
		t.Errorf("%+v, want Allowed false, Reason containing \"Encrypted ClientHello\"", a)
	}
}

// An answer may begin before the request has ended, and both go on.
func TestAnswerDuringRequest(t *testing.T) {
	r := newRig(t, "allow", []string{"a.test"}, nil)
	r.name("a.test", public)
	r.web(public+":80", func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		n, err := io.Copy(io.Discard, q.Body)
		fmt.Fprintf(w, "%d %v", n, err)
	})
	body, more := io.Pipe()
	q, err := http.NewRequest(http.MethodPost, "http://a.test/", body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := r.client("http").Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for range 100 {
		if _, err := more.Write(make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	_ = more.Close()
	if b, err := io.ReadAll(response.Body); err != nil || string(b) != "1000000 <nil>" {
		t.Errorf("%q, %v, want no error, b = \"1000000 <nil>\"", b, err)
	}
}

// A client that half closes its side has said all it has to, and still gets the reason.
func TestResolveForWhoHasGone(t *testing.T) {
	r := newRig(t, "allow", []string{"nowhere.test"}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	target := target{name: "nowhere.test"}
	if _, err := r.proxy.resolve(ctx, r.proxy.policy.Load(), target, 443); err == nil || err.Error() != "there is no such name" {
		t.Errorf("resolve for a client that has gone: %v, want \"there is no such name\"", err)
	}
}

// Programs show of the answer to a CONNECT only its status line, so that has the reason, harmless.
func TestReasonInStatusLine(t *testing.T) {
	r := newRig(t, "allow", []string{"good.test", "nowhere.test"}, nil)
	for at, want := range map[string]string{
		"evil.test:443":       "403 not-allowed: evil.test:443: it is not on the list of what this sandbox may reach",
		"nowhere.test:443":    "502 unknown-name: nowhere.test:443: there is no such name",
		"a\x1bb.test:443":     "",
		"evil\u202e.test:443": "",
	} {
		c := r.open()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at)
		line, _, _ := strings.Cut(ends(t, half(c)), "\r\n")
		if want != "" && line != "HTTP/1.1 "+want || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) || len(line) > maxPhrase+20 {
			t.Errorf("CONNECT %q: %q, want %q", at, line, want)
		}
	}
}
