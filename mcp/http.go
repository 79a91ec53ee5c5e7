package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/netutil"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// HTTPPath is where the protocol is served.
const HTTPPath = "/mcp"

// What a client may take of the server before it has done anything.
const (
	maxHeader      = 32 << 10
	maxConnections = 256 // TCP
	stopTime       = 10 * time.Second
)

// httpTimes are how long a client may take for each step.
type httpTimes struct {
	header, body time.Duration
	write        time.Duration // of each piece of a response
	idle         time.Duration // between requests of one TCP connection
}

// HTTPOptions say who may use a server over HTTP. The zero value lets everyone on the
// machine use it.
type HTTPOptions struct {
	// Tokens are the bearer tokens that are accepted, each of at least 16 characters and
	// a principal of its own: what one makes, another cannot use. None means that no
	// token is asked for, which only a listener on the loopback may do.
	Tokens []string
	// Authenticate, where it is set, takes the place of Tokens: it returns the principal that a token
	// stands for. What one principal makes, another cannot use. It fails with ErrUnknownToken, and with
	// ErrForbiddenToken for a token that may not use the tools; any other error is a failure of the server. It is called
	// with each request, also of a client that is connected, and must be safe for concurrent use.
	Authenticate func(ctx context.Context, token string) (Principal, error)
	// Origins are the web origins, such as https://app.example.org, whose pages may use
	// the server, beside those of the loopback that come over the loopback.
	Origins []string
	// Hosts are names that the server is reached by, beside its address and localhost.
	// A request for another name is refused: its page may have been rebound to us.
	Hosts []string
	// MaxBody bounds a request's body in bytes; 0 means 4 MiB.
	MaxBody int64
	// MaxClients is how many clients may be connected (sessions of the protocol); 0 means 64.
	MaxClients int
	// ClientIdle is after how long without a request a client counts as disconnected; 0 means an hour.
	ClientIdle time.Duration

	times httpTimes
}

// A Principal is who a token stands for.
type Principal struct {
	// Name is the same for all tokens of one principal. It is not empty.
	Name string
	// Via is what Config.Begin is told of who calls, such as which of the principal's tokens it is.
	Via any
}

// What HTTPOptions.Authenticate fails with.
var (
	// ErrUnknownToken: it does not know the token.
	ErrUnknownToken = httpgate.ErrUnknown
	// ErrForbiddenToken: it knows the token, which may not use the tools. The client is told the text of the error.
	ErrForbiddenToken = httpgate.ErrForbidden
)

// open reports whether no token is asked for.
func (o *HTTPOptions) open() bool { return len(o.Tokens) == 0 && o.Authenticate == nil }

func (o HTTPOptions) resolve() (HTTPOptions, error) {
	if len(o.Tokens) > 0 && o.Authenticate != nil {
		return o, fmt.Errorf("mcp: HTTPOptions: %w: Tokens and Authenticate exclude each other", llmsandbox.ErrInvalid)
	}
	if o.MaxBody < 0 || o.MaxClients < 0 || o.ClientIdle < 0 {
		return o, fmt.Errorf("mcp: HTTPOptions: %w: a bound is negative; leave it zero for the default", llmsandbox.ErrInvalid)
	}
	orDefault(&o.MaxBody, 4<<20)
	orDefault(&o.MaxClients, 64)
	orDefault(&o.ClientIdle, time.Hour)
	orDefault(&o.times, httpTimes{header: 10 * time.Second, body: 30 * time.Second, write: 30 * time.Second, idle: 2 * time.Minute})
	return o, nil
}

// Handler serves the protocol over streamable HTTP at HTTPPath, for servers that the
// caller runs. It relies on http.LocalAddrContextKey, which net/http sets, to tell what
// came over the loopback. The caller's server should bound the time of headers, and must
// not bound the time of a response, which can be a stream.
func (s *Server) Handler(opts *HTTPOptions) (http.Handler, error) {
	o, err := cmp.Or(opts, &HTTPOptions{}).resolve()
	if err != nil {
		return nil, err
	}
	gate, err := httpgate.New(httpgate.Options{
		Tokens: o.Tokens, Identify: o.identify(s.cfg.Log), Origins: o.Origins, Hosts: o.Hosts, Path: HTTPPath,
		MaxBody: o.MaxBody, BodyTimeout: o.times.body, WriteTimeout: o.times.write,
		Methods:         "GET, POST, DELETE",
		RequestHeaders:  "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, X-API-Key",
		ResponseHeaders: "Mcp-Protocol-Version, Mcp-Session-Id, WWW-Authenticate",
		Refuse:          writeFault,
	})
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	var next http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.mcp }, &sdk.StreamableHTTPOptions{
		Logger: s.cfg.Log, SessionTimeout: o.ClientIdle, MaxRequestBodyBytes: o.MaxBody,
		DisableLocalhostProtection: true, // the gate looks at hosts on every address
	})
	if !o.open() {
		next = checkedToken(auth.RequireBearerToken(caller, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next))
	}
	return gate.Wrap(&entrance{most: o.MaxClients, server: s.mcp, gate: gate, next: next}), nil
}

// identify is what Authenticate is to the gate; nil where there is none.
func (o *HTTPOptions) identify(log *slog.Logger) func(context.Context, string) (context.Context, error) {
	if o.Authenticate == nil {
		return nil
	}
	return func(ctx context.Context, token string) (context.Context, error) {
		principal, err := o.Authenticate(ctx, token)
		if err != nil {
			if !errors.Is(err, ErrUnknownToken) && !errors.Is(err, ErrForbiddenToken) {
				log.ErrorContext(ctx, "a token could not be checked", "error", err)
			}
			return nil, err
		}
		return context.WithValue(httpgate.WithCaller(ctx, principal.Name), viaKey{}, principal.Via), nil
	}
}

// checkedToken takes the token, which the gate has checked, out of a request. The protocol's library looks for one in a header
// that clients need not use.
func checkedToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Del("X-API-Key")
		r.Header.Set("Authorization", "Bearer checked")
		next.ServeHTTP(w, r)
	})
}

// viaKey is of a Principal's Via in the context of a request, and viaName in what the protocol's library hands on.
type viaKey struct{}

const viaName = "via"

// caller tells the protocol's handlers who calls, so that no caller can go on with
// another's session.
func caller(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	name := httpgate.Caller(ctx)
	if name == "" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: name, Extra: map[string]any{viaName: ctx.Value(viaKey{})}}, nil
}

// RunHTTP serves clients on a listener until ctx ends, and then closes the listener and
// the server, with all that runs. It fails with llmsandbox.ErrInvalid for options that
// make no sense, such as no token on an address that others reach.
func (s *Server) RunHTTP(ctx context.Context, l net.Listener, opts *HTTPOptions) error {
	o := *cmp.Or(opts, &HTTPOptions{})
	if o.open() && !httpgate.Address(l.Addr()).IsLoopback() {
		return errors.Join(l.Close(), fmt.Errorf("mcp: serve on %s: %w: others reach that address, so a token is needed", l.Addr(), llmsandbox.ErrInvalid))
	}
	o, err := o.resolve()
	if err != nil {
		return errors.Join(l.Close(), err)
	}
	handler, err := s.Handler(&o)
	if err != nil {
		return errors.Join(l.Close(), err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: o.times.header, IdleTimeout: o.times.idle, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(l, maxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("mcp: serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	// Streams end with the sessions they belong to, and only then their requests.
	err = s.Close(stop)
	if server.Shutdown(stop) != nil {
		err = errors.Join(err, server.Close())
	}
	<-served
	return err
}

// An entrance lets as many clients in as there may be.
type entrance struct {
	most   int
	server *sdk.Server
	gate   *httpgate.Gate
	next   http.Handler

	mu       sync.Mutex
	arriving int // requests that may become clients
}

func (e *entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
		if !e.arrive() {
			e.gate.Refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d clients are connected, which is as many as this server takes: end one, or try again later", e.most))
			return
		}
		defer e.arrived()
	}
	e.next.ServeHTTP(w, r)
}

// arrive makes room for one more client. The requests that may become one count while
// they are answered, so a burst may be turned away a little early and never too late.
func (e *entrance) arrive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.arriving
	for range e.server.Sessions() {
		n++
	}
	if n >= e.most {
		return false
	}
	e.arriving++
	return true
}

func (e *entrance) arrived() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arriving--
}

// faultCode is of the range that JSON-RPC leaves to servers.
const faultCode = -32000

// writeFault sends a refusal as a JSON-RPC error, which clients of the protocol can show.
func writeFault(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has disconnected misses nothing.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": faultCode, "message": message},
	})
}

// NewToken makes a bearer token of 256 random bits.
func NewToken() string { return httpgate.NewToken() }

// TokenFile returns the tokens of a file, one a line; empty lines and those from # on are
// left out. A file that does not exist is made, with a new token that only its owner can
// read. It fails with llmsandbox.ErrInvalid for a file that others can read, or without
// a token.
func TokenFile(path string) (tokens []string, made bool, err error) { return httpgate.TokenFile(path) }
