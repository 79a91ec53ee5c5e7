package dial

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

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
		return nil, e.fail(Proxy, err, "the proxy's address cannot be used: "+err.Error(), "correct HTTP_PROXY or HTTPS_PROXY, or name the host in NO_PROXY")
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
	return nil, e.fail(Proxy, err, fmt.Sprintf("the proxy %s did not let it through: %v", via.Redacted(), err),
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
