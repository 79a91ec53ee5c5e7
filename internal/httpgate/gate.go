// Package httpgate lets through to an HTTP server only the requests that its operator
// allows: by the server's name that they ask for, the page that made a browser send them,
// their bearer token, and the size and time of their body.
package httpgate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"
)

// Options say which requests pass. The zero value of Identify, Origins and Hosts lets
// everyone on the machine in, and nobody else.
type Options struct {
	// Identify knows the tokens, and the context that it returns goes on with the request; nil: no token is asked for. It fails with
	// ErrUnknown for one that it does not know, and with ErrForbidden for one that may not send requests here.
	Identify func(ctx context.Context, token string) (context.Context, error)
	// Session, where it is set, knows the session of a request that bears no token: what it returns is as Identify, and nil where there is no cookie of
	// a session. Browsers send cookies whoever has them send a request, so they count only in requests of the server's own pages.
	Session func(r *http.Request) func(context.Context) (context.Context, error)
	HTTPS   bool // browsers reach the server by HTTPS
	// Open, where it is set, names requests that need no token.
	Open    func(*http.Request) bool
	Origins []string // web origins whose pages may send requests, beside those of the loopback over the loopback
	Hosts   []string // names of the server, beside its address and localhost
	// Relayed, where it is set, names requests that a server like this one has let through. They may be for any address, since it is that one's, and no
	// page can have an address for a name. Who says so without having been there gains nothing else.
	Relayed func(*http.Request) bool

	MaxBody int64 // bytes of a request's body
	// Stream, where it is set, names requests whose body is left to the handler to read: MaxBody does not bound it, and BodyTimeout
	// is that of each piece.
	Stream       func(*http.Request) bool
	BodyTimeout  time.Duration // of a request's body
	WriteTimeout time.Duration // of each piece of a response

	// What pages of allowed origins may send and read, as CORS headers list it.
	Methods, RequestHeaders, ResponseHeaders string

	// Refuse writes a refusal. Headers that belong to the status are set.
	Refuse func(w http.ResponseWriter, status int, message string)
}

// A Gate checks requests. It relies on http.LocalAddrContextKey, which net/http sets, to
// tell what came over the loopback.
type Gate struct {
	options Options
	hosts   []string
	origins []string
}

// New makes a gate. It fails with backend.ErrInvalid for options that make no sense.
func New(o Options) (*Gate, error) {
	g := &Gate{options: o}
	var err error
	if g.origins, err = parseOrigins(o.Origins); err != nil {
		return nil, err
	}
	g.hosts, err = parseHosts(o.Hosts)
	return g, err
}

// Wrap returns a handler that passes to next the requests that are in order, with their
// body read, so that a client that sends slowly or too much holds nothing but its connection.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		w := &timedWriter{ResponseWriter: response, control: http.NewResponseController(response), timeout: g.options.WriteTimeout}
		defer w.extend() // for what net/http still has to send
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r, err := g.check(w, r)
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			g.Refuse(w, refused.status, refused.message)
		case err != nil:
			g.Refuse(w, http.StatusInternalServerError, err.Error())
		case r.Method == http.MethodOptions: // a browser's question, answered by the headers
			w.WriteHeader(http.StatusNoContent)
		default:
			serve(next, w, r)
		}
	})
}

// Refuse answers a request that is not served.
func (g *Gate) Refuse(w http.ResponseWriter, status int, message string) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "10")
	}
	g.options.Refuse(w, status, message)
}

// A refusal is why a request is not served.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// check looks at where a request is for and where it comes from before anything else of it
// is believed, and reads its body last. It sets the headers that a browser wants. It returns the request with who sends it.
func (g *Gate) check(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	// The time counts also where net/http throws the body away after a refusal.
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(g.options.BodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return r, fmt.Errorf("bound the time of the body: %w", err)
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address := Address(local)
	if !g.allowHost(r.Host, address, g.options.Relayed != nil && g.options.Relayed(r)) {
		return r, refuse(http.StatusForbidden, "the Host header %.80q is none of this server's names: use its address, or name it with --allow-host", r.Host)
	}
	if err := g.checkOrigin(w.Header(), r, address); err != nil || r.Method == http.MethodOptions {
		return r, err
	}
	if g.options.Open == nil || !g.options.Open(r) {
		ctx, err := g.authenticate(r)
		if err != nil {
			return r, err
		}
		r = r.WithContext(ctx)
	}
	if g.options.Stream != nil && r.Body != http.NoBody && g.options.Stream(r) {
		r.Body = &timedReader{ReadCloser: r.Body, control: control, timeout: g.options.BodyTimeout}
		return r, nil
	}
	if err := g.readBody(w, r); err != nil {
		return r, err
	}
	// The connection is watched for its end while the answer is made, for however long.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return r, fmt.Errorf("unbound the time of the connection: %w", err)
	}
	return r, nil
}

func (g *Gate) readBody(w http.ResponseWriter, r *http.Request) error {
	most := g.options.MaxBody
	body, err := []byte(nil), error(&http.MaxBytesError{Limit: most})
	if r.ContentLength <= most {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than the %d bytes that this server takes", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not come in time")
	case err != nil:
		return refuse(http.StatusBadRequest, "read the body: it ended too early")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// A timedWriter gives a client so long to take each piece of a response, which as a whole
// may be a stream without end.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	// hijacked says that the connection is a handler's.
	hijacked bool
}

// WriteHeader does nothing once the connection is a handler's, which has sent what there was to send.
func (w *timedWriter) WriteHeader(status int) {
	if !w.hijacked {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Hijack is for http.ResponseController. What is written to the connection has its time as well.
func (w *timedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.hijacked = true
	return &timedConn{conn, w.timeout}, rw, nil
}

// A timedConn gives a client so long to take each piece that is written.
type timedConn struct {
	net.Conn
	timeout time.Duration
}

func (c *timedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *timedWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) extend() {
	// Where there are no deadlines, the caller's server has its own bounds.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
}

// Address is the IP address of a: that of the loopback for a Unix socket, which only this machine reaches as well; the zero Addr when it has none.
func Address(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	case *net.UnixAddr:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.Addr{}
}
