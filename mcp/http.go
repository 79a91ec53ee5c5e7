package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// What a client may take of the server before it has done anything.
const (
	maxBody    = 4 << 20
	maxClients = 64               // sessions of the protocol
	clientIdle = time.Hour        // a client without a request for so long counts as disconnected
	pieceTime  = 30 * time.Second // for a request's body, and for each piece of a response
)

// HTTPOptions say who may use a server over HTTP. The zero value lets everyone on the
// machine use it.
type HTTPOptions struct {
	// Authenticate returns the principal that a bearer token
	// stands for; where it is nil, no token is asked for. What one principal makes, another cannot use. It fails with ErrUnknownToken, and with
	// ErrForbiddenToken for a token that may not use the tools; any other error is a failure of the server. It is called
	// with each request, also of a client that is connected, and must be safe for concurrent use.
	Authenticate func(ctx context.Context, token string) (Principal, error)
	// Origins are the web origins, such as https://app.example.org, whose pages may use
	// the server, beside those of the loopback that come over the loopback.
	Origins []string
	// Hosts are names that the server is reached by, beside its address and localhost.
	// A request for another name is refused: its page may have been rebound to us.
	Hosts []string
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

// Handler serves the protocol over streamable HTTP, for servers that the
// caller runs. It relies on http.LocalAddrContextKey, which net/http sets, to tell what
// came over the loopback. The caller's server should bound the time of headers, and must
// not bound the time of a response, which can be a stream. A request has at most 4 MiB, and at most 64 clients are connected at once.
func (s *Server) Handler(opts *HTTPOptions) (http.Handler, error) {
	return s.handler(opts, maxClients, clientIdle)
}

func (s *Server) handler(opts *HTTPOptions, most int, idle time.Duration) (http.Handler, error) {
	o := cmp.Or(opts, &HTTPOptions{})
	gate, err := httpgate.New(httpgate.Options{
		Identify: o.identify(s.cfg.Log), Origins: o.Origins, Hosts: o.Hosts,
		MaxBody: maxBody, BodyTimeout: pieceTime, WriteTimeout: pieceTime,
		Methods:         "GET, POST, DELETE",
		RequestHeaders:  "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, X-API-Key",
		ResponseHeaders: "Mcp-Protocol-Version, Mcp-Session-Id, WWW-Authenticate",
		Refuse:          writeFault,
	})
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	var next http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.mcp }, &sdk.StreamableHTTPOptions{
		Logger: s.cfg.Log, SessionTimeout: idle, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // the gate looks at hosts on every address
	})
	if o.Authenticate != nil {
		next = checkedToken(auth.RequireBearerToken(caller, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next))
	}
	return gate.Wrap(&entrance{most: most, server: s.mcp, gate: gate, next: next}), nil
}

// principalKey is of the Principal of a request in its context.
type principalKey struct{}

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
		return context.WithValue(ctx, principalKey{}, principal), nil
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

// viaName is of a Principal's Via in what the protocol's library hands on.
const viaName = "via"

// caller tells the protocol's handlers who calls, so that no caller can go on with
// another's session.
func caller(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	principal, _ := ctx.Value(principalKey{}).(Principal)
	if principal.Name == "" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: principal.Name, Extra: map[string]any{viaName: principal.Via}}, nil
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
