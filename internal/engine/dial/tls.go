package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// handshake makes conn a TLS session with the server called name.
func (e Endpoint) handshake(ctx context.Context, conn net.Conn, name string) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.TLS != nil {
		config = e.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = name
	}
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
		return e.fail(TLS, err, "it does not speak TLS there", "leave TLS away, or use the port it offers TLS on (2376 by custom)")
	case errors.As(err, &unknown):
		return e.fail(TLS, err, "its certificate is not signed by an authority that is trusted here", e.Hints.TLS)
	case errors.As(err, &hostname):
		return e.fail(TLS, err, fmt.Sprintf("its certificate is not for the name %q", config.ServerName),
			"use a name that is in the certificate, or have one made for this name")
	case errors.As(err, &invalid):
		return e.fail(TLS, err, "its certificate is not valid: "+invalid.Error(), "have a new one made, and check this machine's clock")
	case isAlert(err) && len(config.Certificates) == 0:
		return e.fail(TLS, err, "it wants a client certificate, and none is configured", e.Hints.TLS)
	case isAlert(err):
		return e.fail(TLS, err, "it refused the client certificate ("+lastWords(err)+")", e.Hints.TLS)
	}
	return e.fail(TLS, err, "the TLS session could not be made: "+err.Error(), e.Hints.TLS)
}

// lastWords is the alert's own text, without what Go puts before it.
func lastWords(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "tls: "); i >= 0 {
		text = text[i+len("tls: "):]
	}
	return text
}
