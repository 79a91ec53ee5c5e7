// Package dial reaches a container engine's API: over a Unix socket, a Windows
// named pipe, TCP with and without TLS and through an HTTP proxy, or SSH.
//
// What an engine's own command reads to find its engine (environment, contexts,
// connections) is the business of that engine's backend; it ends in an [Endpoint].
// Every kind of connection is made by a single function that opens a byte stream, and
// requests and hijacked streams (attach, exec) take the same one. A failure of it is
// an [*Error], which says what is wrong and what to do.
package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
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

// Kind is what kept an engine from being reached.
type Kind string

// The kinds of an Error.
const (
	NoSocket   Kind = "no socket"     // there is no such socket or pipe
	Permission Kind = "no permission" // this user may not open it
	NoAnswer   Kind = "no answer"     // nothing listens, or it does not answer
	NoHost     Kind = "no host"       // the name does not resolve, or there is no route to it
	TLS        Kind = "TLS"           // certificates or protocol do not fit
	Proxy      Kind = "proxy"         // the HTTP proxy did not let it through
	SSHFailed  Kind = "ssh"           // the ssh program failed
)

// An Error is an engine that cannot be reached. It wraps backend.ErrUnsupported, and not
// the error below: the API's client replaces what wraps a file system or timeout error by a
// sentence of its own, and the reason would be lost.
type Error struct {
	Kind   Kind
	Engine string // "Docker"
	Host   string // as in Endpoint.Host
	Why    string
	Fix    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot reach %s at %s: %s; %s", e.Engine, e.Host, e.Why, e.Fix)
}

// Unwrap returns backend.ErrUnsupported.
func (e *Error) Unwrap() error { return backend.ErrUnsupported }

// Explain returns the *Error that err wraps, without what the API's client put
// around it, and err itself when there is none.
func Explain(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return err
}

// reworded replaces the text by which the API's client takes an error for one that it
// replaces altogether.
var reworded = strings.NewReplacer("connection refused", "connection was refused", "dial unix", "dialing unix")

func (e Endpoint) fail(kind Kind, why, fix string) *Error {
	return &Error{Kind: kind, Engine: e.Hints.Engine, Host: e.Host, Why: reworded.Replace(why), Fix: fix}
}

// explain turns what opening a socket failed with into an Error. A context that
// ended stays what it is.
func (e Endpoint) explain(ctx context.Context, err error) error {
	if ctxend.Ended(ctx) {
		return ctx.Err()
	}
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return e.fail(NoHost, fmt.Sprintf("the name %q does not resolve", dns.Name),
			"check the name, and that this machine can look names up")
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.fail(NoAnswer, "nothing listens there", e.Hints.Start)
	case errors.Is(err, os.ErrNotExist):
		return e.fail(NoSocket, "there is no such socket: the engine is not running, or listens elsewhere", e.Hints.Start)
	case errors.Is(err, os.ErrPermission):
		return e.fail(Permission, "this user may not open it", e.Hints.Access)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return e.fail(NoHost, "there is no way to that host from here", "check the address and this machine's network")
	case errors.As(err, &timeout) && timeout.Timeout():
		return e.fail(NoAnswer, fmt.Sprintf("no answer within %v", connectTimeout),
			"check the address, and that no firewall drops the connection")
	}
	return e.fail(NoAnswer, err.Error(), e.Hints.Start)
}

// maxSocketPath is what fits into a socket address, with its final NUL.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

func (e Endpoint) unix(path string) (opener, string, error) {
	if len(path) > maxSocketPath {
		return nil, "", e.badHost("the socket's path is too long for a socket address; use a shorter path, or a link to it")
	}
	return func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: connectTimeout}
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		explained := e.explain(ctx, err)
		if failed, ok := errors.AsType[*Error](explained); ok {
			e.aboutSocket(failed, path)
		}
		return nil, explained
	}, e.Host, nil
}

// aboutSocket adds to failed what the socket's file shows.
func (e Endpoint) aboutSocket(failed *Error, path string) {
	info, err := os.Stat(path)
	switch failed.Kind {
	case Permission:
		if err == nil {
			failed.Why = "this user may not open it: " + ownership(info)
		}
	case NoAnswer:
		if err == nil && info.Mode()&os.ModeSocket == 0 {
			failed.Kind, failed.Why = NoSocket, "it is a file, but no socket"
		} else if err == nil {
			failed.Why = "the socket is there, but nothing listens: the engine has ended or has not started yet"
		}
	}
}
