package egress

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

// newServer is the HTTP server of proxy requests and, within tunnels, of requests that
// must be looked at.
func (p *Proxy) newServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		Handler:           http.HandlerFunc(p.handle),
		ConnContext:       withServed,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // of hostile clients' mistakes
	}
}

// newTransport makes connections that the policy lets be.
func (p *Proxy) newTransport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, at string) (net.Conn, error) {
			t, port, err := parseAuthority(at, 0)
			if err != nil {
				return nil, err
			}
			return p.connect(ctx, t, port)
		},
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		ResponseHeaderTimeout:  idleTimeout,
		MaxResponseHeaderBytes: 4 * maxHeader,
	}
}

// handle serves one request, whichever way it came.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	s := servedBy(r.Context())
	if !s.begin() {
		return
	}
	defer s.handlers.Done()
	switch {
	case s.tunnel != nil:
		s.tunnel.handle(w, r)
	case r.ProtoMajor != 1:
		http.Error(w, "llmsandbox: proxies are spoken to in HTTP/1", http.StatusHTTPVersionNotSupported)
	case r.Method == http.MethodConnect:
		p.serveConnect(w, r, s)
	default:
		p.serveAbsolute(w, r)
	}
}

// parseAuthority reads HOST:PORT or HOST, whose port is then as given.
func parseAuthority(authority string, port uint16) (target, uint16, error) {
	host := authority
	if h, number, err := net.SplitHostPort(authority); err == nil {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return target{}, 0, &Refusal{Code: RefusedHost}
		}
		host, port = h, uint16(n)
	}
	t, err := normalise(host)
	if err != nil || port == 0 {
		return target{}, 0, &Refusal{Code: RefusedHost}
	}
	return t, port, nil
}

// serveAbsolute forwards a request to a proxy: GET http://host/path. The host is that of
// the URL; as HTTP wants it, the Host header of the client is not heeded but replaced.
func (p *Proxy) serveAbsolute(w http.ResponseWriter, r *http.Request) {
	a := p.begin("http", r.URL.Host, 80)
	defer a.end()
	refuse := func(err error) {
		a.failed(err)
		answer(w, a.Name, a.Port, err)
	}
	if r.URL.Host == "" {
		a.Name = printable(r.Host)
		refuse(&Refusal{Code: RefusedProtocol, what: "this is an HTTP and SOCKS5 proxy, and the request was not made as to one"})
		return
	}
	if r.URL.Scheme != "http" {
		refuse(&Refusal{Code: RefusedProtocol, what: "only http:// can be asked for this way; use CONNECT for all else"})
		return
	}
	t, port, err := parseAuthority(r.URL.Host, 80)
	if err != nil {
		refuse(err)
		return
	}
	a.Port = port
	a.Name = printable(r.URL.Hostname())
	// Asked before anything of the request is used: a connection may be left from before.
	if err := p.policy.Load().askable(t, port); err != nil {
		refuse(err)
		return
	}
	f := forward{p: p, a: a, scheme: "http", host: t, port: port, transport: p.plain}
	f.serve(w, r)
}
