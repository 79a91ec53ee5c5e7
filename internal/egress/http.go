package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
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

// serveConnect serves CONNECT host:port: a tunnel.
func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request, s *served) {
	host := r.URL.Hostname()
	a := p.begin("connect", host, 0)
	defer a.end()
	t, port, err := parseAuthority(r.Host, 0)
	if err == nil {
		a.Port = port
	}
	var up *upstream
	if err == nil {
		up, err = p.connect(r.Context(), t, port)
	}
	if err != nil {
		a.failed(err)
	}
	conn, rw, taken := http.NewResponseController(w).Hijack()
	if taken != nil {
		if err == nil {
			_ = up.Close()
			a.failed(&failure{what: "the connection could not be taken over", err: taken})
		}
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		answerLine(conn, host, a.Port, err)
		return
	}
	a.opened(up)
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = up.Close()
		a.note("the sandbox went away")
		return
	}
	client := &peeked{conn, bufio.NewReaderSize(rw.Reader, maxLine)}
	(&tunnel{p: p, a: a, ctx: s.ctx, client: client, stream: s.stream, up: up}).run()
}

// forward sends one request on and its response back.
type forward struct {
	p         *Proxy
	a         *attempt
	scheme    string
	host      target
	port      uint16
	transport http.RoundTripper
}

// authority is what the Host header says: without the scheme's own port.
func (f *forward) authority() string {
	if f.scheme == "http" && f.port == 80 || f.scheme == "https" && f.port == 443 {
		at := ruleFor(f.host.String(), f.port)
		return at[:len(at)-len(strconv.Itoa(int(f.port)))-1]
	}
	return ruleFor(f.host.String(), f.port)
}

func (f *forward) serve(w http.ResponseWriter, r *http.Request) {
	f.a.Allowed = true
	// Else net/http would take the rest of the request's body away from the transport as
	// soon as the answer begins. Only HTTP/2 does not know it, which never does that.
	_ = http.NewResponseController(w).EnableFullDuplex()
	counted := &counter{ResponseWriter: w, a: f.a}
	if r.Body != nil {
		r.Body = &countedBody{r.Body, f.a}
	}
	(&httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme = f.scheme
			pr.Out.URL.Host = ruleFor(f.host.String(), f.port)
			pr.Out.URL.User = nil
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery // also what net/url cannot parse
			pr.Out.Host = f.authority()
		},
		Transport: f,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			err = f.plain(err)
			f.a.failed(err)
			answer(w, f.a.Name, f.a.Port, err)
		},
	}).ServeHTTP(counted, r)
}

// plain says what went wrong in a text of its own: those of net/http may hold addresses, or
// parts of a request with secrets.
func (f *forward) plain(err error) error {
	var known *failure
	var certificate *tls.CertificateVerificationError
	switch {
	case refusalOf(err) != nil:
		return refusalOf(err)
	case errors.As(err, &known):
		return known
	case errors.As(err, &certificate):
		return &failure{what: "its certificate is not valid for it, or not signed by an authority that the host of the sandbox trusts", err: err}
	}
	return &failure{what: "the connection broke off, or the answer was not understood", err: err}
}

// RoundTrip puts secrets into the request and takes them out of the response. It
// leaves out the hooks that the context may hold, for they would pass on answers that
// have not been looked at.
func (f *forward) RoundTrip(r *http.Request) (*http.Response, error) {
	echoes, err := f.p.vault.substitute(f.a, r, f.host, f.port)
	if err != nil {
		return nil, err
	}
	ctx := httptrace.WithClientTrace(bare{r.Context()}, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if u, ok := info.Conn.(*upstream); ok {
				f.a.Address = u.addr
			}
		},
	})
	response, err := f.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	response.Header.Del(refusedHeader) // it is ours to say
	if len(echoes) == 0 {
		return response, nil
	}
	if err := redact(response, echoes); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// bare is a context without values.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }
