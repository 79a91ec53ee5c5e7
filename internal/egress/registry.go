package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// operatorProxy is the proxy that this process's environment names for t, or nil. A
// sandbox's own policy cannot be upheld through one, since it would resolve the name
// again: only what the operator configured goes there.
func operatorProxy(t target, port uint16) *url.URL {
	scheme := "https"
	if port == 80 {
		scheme = "http"
	}
	through, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: ruleFor(t.String(), port)}})
	if err != nil {
		return nil
	}
	return through
}

// dialThrough asks an HTTP proxy for a tunnel.
func dialThrough(ctx context.Context, through *url.URL, t target, port uint16) (net.Conn, error) {
	fail := func(what string, err error) (net.Conn, error) {
		return nil, &failure{what: "the proxy in the environment of the host " + what, err: err}
	}
	at := through.Host
	switch {
	case through.Scheme != "http" && through.Scheme != "https":
		return fail("is of a kind that is not supported here: use an HTTP proxy", nil)
	case through.Port() != "":
	case through.Scheme == "https":
		at = net.JoinHostPort(through.Hostname(), "443")
	default:
		at = net.JoinHostPort(through.Hostname(), "80")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return fail("could not be reached", err)
	}
	if through.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: through.Hostname(), MinVersion: tls.VersionTLS12})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	host := ruleFor(t.String(), port)
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	if u := through.User; u != nil {
		password, _ := u.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	c := newPeeked(conn)
	response, err := func() (*http.Response, error) {
		if err := request.Write(conn); err != nil {
			return nil, err
		}
		return http.ReadResponse(bufio.NewReader(&oneByte{c}), request)
	}()
	if err != nil {
		_ = conn.Close()
		return fail("did not answer properly", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = conn.Close()
		return fail(fmt.Sprintf("answered %d", response.StatusCode), nil)
	}
	return c, nil
}

// oneByte reads one byte at a time, so that nothing behind an answer is taken.
type oneByte struct{ c *peeked }

func (o *oneByte) Read(p []byte) (int, error) {
	if len(p) > 1 {
		p = p[:1]
	}
	return o.c.Read(p)
}
