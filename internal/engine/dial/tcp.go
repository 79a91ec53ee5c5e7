package dial

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
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
			return 0, c.e.fail(TLS, nil, "it wants TLS, and none is configured", c.e.Hints.TLS)
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
