package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcert"
)

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
