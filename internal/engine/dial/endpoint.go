package dial

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

const (
	// maxIdle is how many connections to an engine are kept for the next request,
	// and idleFor for how long.
	maxIdle = 6
	idleFor = 30 * time.Second
	// connectTimeout bounds one attempt to open a socket or a TLS session.
	connectTimeout = 30 * time.Second
)

// An Endpoint is where an engine's API is, and how to get there.
type Endpoint struct {
	// Host is unix://PATH, npipe:////./pipe/NAME, tcp://HOST:PORT[/PATH] (also
	// http:// and https://), or ssh://[USER@]HOST[:PORT][/PATH-OF-SOCKET].
	Host string
	// TLS, when set, is used over TCP. An https:// host without it uses the
	// system's certificates.
	TLS *tls.Config
	// SSH says how to use the ssh program; needed for ssh:// hosts only.
	SSH SSH
	// Proxy returns the HTTP proxy that a TCP connection goes through, as
	// http.Transport.Proxy does. Nil means http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// Hints are what errors advise the user to do.
	Hints Hints
}

// Hints are the parts of an error message that differ between engines.
type Hints struct {
	Engine string // the engine's name: "Docker"
	Start  string // how to start it: "start it with ..."
	Access string // how a user gets access to its socket
	TLS    string // where its client certificates are looked for
}

// opener opens one byte stream to the engine.
type opener func(context.Context) (net.Conn, error)

// NewClient returns a client of the engine at e. It does not connect: the first
// request does, and agrees on the API's version. opts come after the endpoint's own;
// they must not set host, transport or dialer.
func (e Endpoint) NewClient(opts ...client.Opt) (*client.Client, error) {
	open, apiHost, err := e.opener()
	if err != nil {
		return nil, err
	}
	// TLS and proxies are the dialer's business and not the transport's: the
	// client's own way of opening hijacked streams ignores both the transport's proxy
	// and, under TLS, the context.
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return open(ctx)
		},
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     idleFor,
		DisableCompression:  strings.HasPrefix(e.Host, "unix:") || strings.HasPrefix(e.Host, "npipe:"),
	}
	all := append([]client.Opt{
		client.WithHost(apiHost), // first: it configures the transport it finds
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}),
		client.WithScheme("http"),
	}, opts...)
	c, err := client.New(all...)
	if err != nil {
		return nil, fmt.Errorf("%s's client for %s: %w", e.Hints.Engine, e.Host, err)
	}
	return c, nil
}

// Connect opens one byte stream to the engine and closes it: the quickest way to see
// whether something listens. A TLS client certificate that the engine refuses shows
// with the first request only.
func (e Endpoint) Connect(ctx context.Context) error {
	open, _, err := e.opener()
	if err != nil {
		return err
	}
	conn, err := open(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// opener returns how to open a stream to e, and the host that the API's client
// writes into its requests.
func (e Endpoint) opener() (open opener, apiHost string, err error) {
	scheme, rest, ok := strings.Cut(e.Host, "://")
	if !ok || rest == "" {
		return nil, "", e.badHost("it has no form like unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST")
	}
	switch scheme {
	case "unix":
		return e.unix(rest)
	case "npipe":
		return e.npipe(rest)
	case "tcp", "http", "https":
		return e.tcp(scheme, rest)
	case "ssh":
		return e.ssh()
	}
	return nil, "", e.badHost(fmt.Sprintf("%q is no way to reach an engine: use unix, npipe, tcp or ssh", scheme))
}

func (e Endpoint) badHost(why string) error {
	return fmt.Errorf("%s's host %q cannot be used: %s", e.Hints.Engine, withoutPassword(e.Host), why)
}

// withoutPassword hides the password in a host, which no scheme allows but a user
// may have written.
func withoutPassword(host string) string {
	scheme, rest, _ := strings.Cut(host, "://")
	user, after, found := strings.Cut(rest, "@")
	name, _, secret := strings.Cut(user, ":")
	if !found || !secret {
		return host
	}
	return scheme + "://" + name + ":...@" + after
}
