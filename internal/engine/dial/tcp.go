package dial

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

func (e Endpoint) tcp(scheme, rest string) (opener, string, error) {
	u, err := url.Parse("tcp://" + rest)
	if err != nil || u.Hostname() == "" || u.Port() == "" {
		return nil, "", e.badHost("it needs a host and a port: tcp://HOST:PORT")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", e.badHost("a user, a query or a fragment has no meaning in it")
	}
	secure := e.TLS != nil || scheme == "https"
	proxy := e.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := e.throughProxy(ctx, proxy, u.Host, secure)
		if err != nil {
			return nil, err
		}
		if secure {
			return e.handshake(ctx, conn, u.Hostname())
		}
		return &plainConn{Conn: conn, e: e}, nil
	}, "tcp://" + u.Host + strings.TrimSuffix(u.Path, "/"), nil
}

// plainConn is a connection without TLS that notices when the engine wanted some.
type plainConn struct {
	net.Conn
	e      Endpoint
	looked atomic.Bool
}

// A server that speaks TLS answers a plain request with an alert or, in Go, with a
// sentence.
var (
	tlsAlert  = []byte{0x15, 0x03}
	tlsWanted = []byte("Client sent an HTTP request to an HTTPS server")
)

func (c *plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.looked.CompareAndSwap(false, true) {
		if bytes.HasPrefix(p[:n], tlsAlert) || bytes.Contains(p[:n], tlsWanted) {
			return 0, c.e.fail(TLS, "it wants TLS, and none is configured", c.e.Hints.TLS)
		}
	}
	return n, err
}

// CloseWrite ends the sending direction.
func (c *plainConn) CloseWrite() error {
	return closeWrite(c.Conn)
}

// closeWrite ends the sending direction of a connection that can do so.
func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// handshake makes conn a TLS session with the server called name.
func (e Endpoint) handshake(ctx context.Context, conn net.Conn, name string) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.TLS != nil {
		config = e.TLS.Clone()
	}
	config.ServerName = cmp.Or(config.ServerName, name)
	within, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	session := tls.Client(conn, config)
	if err := session.HandshakeContext(within); err != nil {
		if cerr := conn.Close(); cerr != nil {
			err = errors.Join(err, cerr)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, e.explainTLS(err, config)
	}
	return &tlsConn{Conn: session, e: e, config: config}, nil
}

// tlsConn is a session that explains the server's alerts: with TLS 1.3 the refusal of
// a client certificate arrives only when the client reads.
type tlsConn struct {
	*tls.Conn
	e      Endpoint
	config *tls.Config
}

func (c *tlsConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.alert(err)
}

func (c *tlsConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.alert(err)
}

func (c *tlsConn) alert(err error) error {
	if isAlert(err) {
		return c.e.explainTLS(err, c.config)
	}
	return err
}

// isAlert reports whether the other side ended the session with an alert.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

func (e Endpoint) explainTLS(err error, config *tls.Config) *Error {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &record):
		return e.fail(TLS, "it does not speak TLS there", "leave TLS away, or use the port it offers TLS on (2376 by custom)")
	case errors.As(err, &unknown):
		return e.fail(TLS, "its certificate is not signed by an authority that is trusted here", e.Hints.TLS)
	case errors.As(err, &hostname):
		return e.fail(TLS, fmt.Sprintf("its certificate is not for the name %q", config.ServerName),
			"use a name that is in the certificate, or have one made for this name")
	case errors.As(err, &invalid):
		return e.fail(TLS, "its certificate is not valid: "+invalid.Error(), "have a new one made, and check this machine's clock")
	case isAlert(err) && len(config.Certificates) == 0:
		return e.fail(TLS, "it wants a client certificate, and none is configured", e.Hints.TLS)
	case isAlert(err):
		return e.fail(TLS, "it refused the client certificate ("+lastWords(err)+")", e.Hints.TLS)
	}
	return e.fail(TLS, "the TLS session could not be made: "+err.Error(), e.Hints.TLS)
}

// lastWords is the alert's own text, without what Go puts before it.
func lastWords(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "tls: "); i >= 0 {
		text = text[i+len("tls: "):]
	}
	return text
}

// maxProxyAnswer bounds the head of a proxy's answer, in bytes.
const maxProxyAnswer = 64 << 10

// throughProxy opens a TCP connection to addr, through the proxy that proxy names
// for it. It always asks for a tunnel, because streams of attach and exec need one.
func (e Endpoint) throughProxy(ctx context.Context, proxy func(*http.Request) (*url.URL, error), addr string, secure bool) (net.Conn, error) {
	target := &url.URL{Scheme: "http", Host: addr}
	if secure {
		target.Scheme = "https"
	}
	via, err := proxy(&http.Request{URL: target})
	if err != nil {
		return nil, e.fail(Proxy, "the proxy's address cannot be used: "+err.Error(), "correct HTTP_PROXY or HTTPS_PROXY, or name the host in NO_PROXY")
	}
	d := net.Dialer{Timeout: connectTimeout}
	if via == nil {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, e.explain(ctx, err)
		}
		return conn, nil
	}
	conn, err := e.tunnel(ctx, d, via, addr)
	if err == nil {
		return conn, nil
	}
	if ctxend.Ended(ctx) {
		return nil, ctx.Err()
	}
	return nil, e.fail(Proxy, fmt.Sprintf("the proxy %s did not let it through: %v", via.Redacted(), err),
		"allow CONNECT to that port on the proxy, name the host in NO_PROXY, or use ssh://")
}

func (e Endpoint) tunnel(ctx context.Context, d net.Dialer, via *url.URL, addr string) (_ net.Conn, err error) {
	port := via.Port()
	switch {
	case via.Scheme != "http" && via.Scheme != "https":
		return nil, fmt.Errorf("a %s proxy cannot be used for an engine, only http and https", via.Scheme)
	case port == "" && via.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if via.Scheme == "https" {
		session := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
		if err := session.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		return session, ask(ctx, session, via, addr)
	}
	return conn, ask(ctx, conn, via, addr)
}

// ask asks the proxy at the other end of conn for a tunnel to addr.
func ask(ctx context.Context, conn net.Conn, via *url.URL, addr string) error {
	if err := conn.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err := exchange(conn, via, addr)
	if !stop() {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

func exchange(conn net.Conn, via *url.URL, addr string) error {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	answer := bufio.NewReader(io.LimitReader(conn, maxProxyAnswer))
	resp, err := http.ReadResponse(answer, req)
	if err != nil {
		return fmt.Errorf("no answer that is understood: %w", err)
	}
	// The body of a tunnel's answer is the tunnel, which outlives it.
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %q", resp.Status)
	}
	if answer.Buffered() > 0 {
		return errors.New("it sent data before it was asked for any")
	}
	return nil
}
