package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/testcert"
)

// serveTCP serves an engine on loopback and returns its address.
func serveTCP(t *testing.T, config *tls.Config) string {
	t.Helper()
	s := httptest.NewUnstartedServer(engineAPI(t))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that are meant to fail
	if config == nil {
		s.Start()
	} else {
		s.TLS = config
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestTCP(t *testing.T) {
	e := Endpoint{Host: "tcp://" + serveTCP(t, nil), Hints: testHints}
	if err := ping(t, e); err != nil {
		t.Fatal(err)
	}
	echo(t, e)
}

func TestTCPThatFails(t *testing.T) {
	l := listen(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	e := Endpoint{Host: "tcp://" + l.Addr().String(), Hints: testHints}
	wantError(t, ping(t, e), NoAnswer, "nothing listens", "START")
	e.Host = "tcp://no-such-host.invalid:2375"
	wantError(t, ping(t, e), NoHost, "no-such-host.invalid", "does not resolve")
}

func TestTLS(t *testing.T) {
	authority, other := testcert.NewAuthority(t), testcert.NewAuthority(t)
	mine := authority.Issue(t, "client", nil).TLS(t)
	serve := func(edit func(*x509.Certificate), host string) string {
		return serveTCP(t, &tls.Config{
			Certificates: []tls.Certificate{authority.Issue(t, host, edit).TLS(t)},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool(),
		})
	}
	good := serve(nil, "127.0.0.1")
	expired := serve(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "127.0.0.1")
	misnamed := serve(nil, "elsewhere.example")
	plain := serveTCP(t, nil)

	for _, c := range []struct {
		name   string
		addr   string
		config *tls.Config
		words  []string // of the failure; none: it works
	}{
		{"fits", good, &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{mine}}, nil},
		{"not verified", misnamed, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{mine}}, nil},
		{"1.2", good, &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{mine}, MaxVersion: tls.VersionTLS12}, nil},
		{"wrong authority", good, &tls.Config{RootCAs: other.Pool(), Certificates: []tls.Certificate{mine}},
			[]string{"not signed by an authority that is trusted here", "TLSFILES"}},
		{"no client certificate", good, &tls.Config{RootCAs: authority.Pool()},
			[]string{"wants a client certificate, and none is configured", "TLSFILES"}},
		{"no client certificate, 1.2", good, &tls.Config{RootCAs: authority.Pool(), MaxVersion: tls.VersionTLS12},
			[]string{"wants a client certificate, and none is configured", "TLSFILES"}},
		{"another's client certificate", good, &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{other.Issue(t, "x", nil).TLS(t)},
			GetClientCertificate: always(other.Issue(t, "x", nil).TLS(t))},
			[]string{"refused the client certificate", "TLSFILES"}},
		{"expired", expired, &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{mine}}, []string{"not valid", "expired", "clock"}},
		{"another name", misnamed, &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{mine}}, []string{`not for the name "127.0.0.1"`}},
		{"plain server", plain, &tls.Config{RootCAs: authority.Pool()}, []string{"does not speak TLS"}},
		{"plain client", good, nil, []string{"it wants TLS, and none is configured", "TLSFILES"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Endpoint{Host: "tcp://" + c.addr, TLS: c.config, Hints: testHints}
			err := ping(t, e)
			if c.words != nil {
				wantError(t, err, TLS, c.words...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			echo(t, e)
		})
	}
}

// always presents a certificate even where the server names other authorities.
func always(c tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
}

// TestHTTPSHost: an https:// host speaks TLS without configured certificates.
func TestHTTPSHost(t *testing.T) {
	authority := testcert.NewAuthority(t)
	addr := serveTCP(t, &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, "127.0.0.1", nil).TLS(t)}})
	wantError(t, ping(t, Endpoint{Host: "https://" + addr, Hints: testHints}), TLS, "not signed by an authority")
}

// TestCancelDuringHandshake: a server that never answers does not hold up a caller
// who has given up.
func TestCancelDuringHandshake(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	var conn net.Conn
	accepted := make(chan error, 1)
	go func() {
		var err error
		conn, err = l.Accept()
		cancel()
		accepted <- err
	}()
	e := Endpoint{Host: "tcp://" + l.Addr().String(), TLS: &tls.Config{}, Hints: testHints}
	if err := e.Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v, want context.Canceled", err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// connectProxy is a proxy that makes tunnels, for clients that know the password.
type connectProxy struct {
	mu   sync.Mutex
	seen []string
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host)
	p.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != "Basic bWU6c2VjcmV0" { // me:secret
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	there, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(there, here)
		_ = closeWrite(there)
	}()
	_, _ = io.Copy(here, there)
	_ = closeWrite(here)
	<-done
}

func TestProxy(t *testing.T) {
	p := &connectProxy{}
	s := httptest.NewServer(p)
	defer s.Close()
	via, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	authority := testcert.NewAuthority(t)
	plain := serveTCP(t, nil)
	secure := serveTCP(t, &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, "127.0.0.1", nil).TLS(t)}})
	through := func(scheme string) func(*http.Request) (*url.URL, error) {
		return func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != scheme {
				t.Errorf("the proxy for %q was asked for, want %q", r.URL.Scheme, scheme)
			}
			u := *via
			u.User = url.UserPassword("me", "secret")
			return &u, nil
		}
	}
	for _, e := range []Endpoint{
		{Host: "tcp://" + plain, Proxy: through("http"), Hints: testHints},
		{Host: "tcp://" + secure, Proxy: through("https"), TLS: &tls.Config{RootCAs: authority.Pool()}, Hints: testHints},
	} {
		if err := ping(t, e); err != nil {
			t.Fatal(err)
		}
		echo(t, e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, s := range p.seen {
		seen[s] = true
	}
	// All connections went through it: the requests' and the streams'.
	if len(p.seen) < 4 || !seen["CONNECT "+plain] || !seen["CONNECT "+secure] || len(seen) != 2 {
		t.Errorf("the proxy saw %q, want len(p.seen) >= 4, seen[\"CONNECT \"+plain] = true, seen[\"CONNECT \"+secure] = true, len(seen) = 2", p.seen)
	}
}

func TestProxyThatFails(t *testing.T) {
	p := httptest.NewServer(&connectProxy{})
	defer p.Close()
	garbage := listen(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 1))
			_, _ = io.WriteString(c, "SMTP what?\r\n\r\n")
			_ = c.Close()
		}
	}()
	for _, c := range []struct {
		name, proxy string
		err         error
		word        string
	}{
		{"password", p.URL, nil, "407"},
		{"protocol", "socks5://127.0.0.1:1", nil, "socks5"},
		{"no proxy listens", "http://127.0.0.1:1", nil, "refused"},
		{"garbage", "http://" + garbage.Addr().String(), nil, "no answer that is understood"},
		{"address", "", errors.New("bad proxy"), "bad proxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Endpoint{Host: "tcp://192.0.2.1:2375", Hints: testHints, Proxy: func(*http.Request) (*url.URL, error) {
				if c.err != nil {
					return nil, c.err
				}
				u, err := url.Parse(c.proxy)
				if err == nil {
					u.User = url.UserPassword("me", "hidden")
				}
				return u, err
			}}
			err := e.Connect(t.Context())
			wantError(t, err, Proxy, c.word)
			wantError(t, ping(t, e), Proxy, c.word)
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v shows the proxy's password, want an error without \"hidden\"", err)
			}
		})
	}
	if err := garbage.Close(); err != nil {
		t.Error(err)
	}
	<-served
}

// TestCancelDuringProxy: a proxy that never answers does not hold up a caller who has
// given up.
func TestCancelDuringProxy(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		cancel()
		_, err = io.Copy(io.Discard, c) // until the client has gone
		ended <- errors.Join(err, c.Close())
	}()
	e := Endpoint{Host: "tcp://192.0.2.1:2375", Hints: testHints, Proxy: func(*http.Request) (*url.URL, error) {
		return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
	}}
	if err := e.Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v, want context.Canceled", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
