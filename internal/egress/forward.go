package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strconv"
)

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
