// Package httpapi serves sandboxes over HTTP: an API with JSON bodies, described by an OpenAPI 3.1 document that it serves at /openapi.json.
//
// Who calls belongs to a project, by the key of the request, and sees the sandboxes of that project only. What sandboxes may have is
// the operator's to say; a request can ask for less and never for more.
package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/netutil"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/e2b"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
	"github.com/llmsandbox/llmsandbox/internal/service"
	"github.com/llmsandbox/llmsandbox/mcp"
	"github.com/llmsandbox/llmsandbox/pool"
	"github.com/llmsandbox/llmsandbox/pool/poolotel"
	"github.com/llmsandbox/llmsandbox/pool/poolprom"
)

// What a client may take of the server before it has done anything.
const (
	maxHeader      = 128 << 10 // two paths of 4096 characters take 96 KiB in a query
	maxConnections = 1024      // TCP
	stopTime       = 20 * time.Second
)

// How long a client may take for each step.
const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	writeTime  = 30 * time.Second // of each piece of a response
	idleTime   = 2 * time.Minute  // between requests of one TCP connection
)

// Config says what a server offers, and to whom. The zero value is a server on the default backend with the default limits and no network, which lets
// everyone on the machine in; its sandboxes end with it.
type Config struct {
	// Version is the server's, as clients see it.
	Version string
	// Sandbox is what each sandbox is opened with where a request says nothing else: backend, image, policy and so on. Its Limits and Network are the
	// most that a request may ask for; without asking, a program has the default timeout and no network. Language, Libraries, ID, Lifetime,
	// Supervisor and Progress must be zero. Limits.Timeout is five minutes where it is zero.
	Sandbox llmsandbox.Options
	// Images are those that requests may name, beside Sandbox.Image; a * at the end of one stands for any ending.
	Images []string
	// Supervisor owns the sandboxes that are created, so that they outlive the server: see llmsandbox.Supervisor. nil: they end with it.
	Supervisor *llmsandbox.Supervisor
	// MaxLifetime bounds how long a created sandbox may live, and DefaultLifetime is how long it does where the request does not
	// say; 0 means a day and an hour.
	MaxLifetime, DefaultLifetime time.Duration
	// MaxSandboxes is how many created sandboxes a project may have at a time; 0 means 64.
	MaxSandboxes int
	// MaxMemory and MaxDisk bound the limits of a project's created sandboxes together, in bytes; 0: only MaxSandboxes does.
	MaxMemory, MaxDisk int64
	// MaxVolumes is how many volumes a project may have; 0: projects have none. What is in them is bounded by the file system that they are on only.
	MaxVolumes int
	// MaxImages is how many images a project may have of its sandboxes; 0: projects have none. They are kept in ImageDir, each with at most the disk limit of its
	// sandbox beside what that was opened from. They need the local backend, and exclude Replicas.
	MaxImages int
	ImageDir  string
	// Usage, where it is set, keeps what projects use. What is counted is written soon after, some of it at a time.
	Usage metering.Store
	// MaxDayCPU is how much CPU time a project may use in a day, in UTC, and MaxDaySent how many bytes its sandboxes may send over their networks. A project
	// that has used that is told to come back on the next day where it asks for a sandbox, program, cell or terminal; what runs goes on. 0 bounds nothing. They
	// need Usage.
	MaxDayCPU  time.Duration
	MaxDaySent int64
	// MaxRuns is how many programs may run at a time; 0 means 16. A request beyond that waits for a while, and is then told to come back.
	MaxRuns int
	// Memory, where it is set, tells how many bytes of memory sandboxes can still take, and how many there are in all. Where less than a twentieth of it is
	// left, or 64 MiB, requests that begin something are told to come back. Where it fails, that does not bound anything.
	Memory func() (available, total int64, err error)
	// MaxRequestRate is how many requests each key may send in a second, and at once; 0 means as many as it likes. Those that need no key
	// are not counted; those with a signed URL are of the key that signed it. Of MCP, calls of tools are requests. Those with tokens of sandboxes of E2B's SDKs
	// count together for the project of these, as those of one key.
	MaxRequestRate int
	// Warm is how many sandboxes are kept ready for each of WarmLanguages; 0 means two, negative none. No WarmLanguages means Python.
	Warm          int
	WarmLanguages []string
	// Zygote opens Python's sandboxes for one program each from one interpreter: see [llmsandbox.Zygote], and there what that shares, which programs of
	// different projects share, too, and which options it excludes.
	Zygote bool
	// Authenticate returns who a key belongs to. It fails with ErrUnknownKey; any other error is a failure of the server. It is called with
	// each request and must be safe for concurrent use. nil asks for no key, which only a listener on the loopback may do: all callers are one project.
	Authenticate func(ctx context.Context, key string) (Caller, error)
	// Audit, where it is set, gets the events of the audit log, soon after their requests are answered, some at a time and in their order. It is
	// called by one goroutine until Close returns, and again with the same events where it fails. What a server that is killed has not handed on yet is lost.
	Audit func(context.Context, []AuditEvent) error
	// AuditLog, where it is set, reads what Audit was given, for keys with the scope audit. It may be called concurrently.
	AuditLog func(context.Context, database.AuditQuery) ([]AuditEvent, error)
	// Secret, of at least 32 random bytes, is what the server seals tokens with: signed URLs, shares of ports, logins with an issuer that have begun, and where lists go
	// on. Servers that have the same take each other's, also one that is started later. Who knows it can make such tokens for every project. nil: a random one, with
	// which they end.
	Secret []byte
	// Keys, where it is set, manages the keys of projects, for keys with the scope admin.
	Keys database.Keys
	// Records keep what becomes of programs that go on without their client; nil: that is forgotten when the server ends.
	Records database.Records
	// Replicas, where it is set, is the database of several servers that share the backend, the keys and Records, too: a request may come to any of them, and is
	// forwarded to the one that holds its sandbox. Where a server dies, another takes its sandboxes, if the backend lets them outlive it. There must be a
	// Supervisor. ReplicaURL is where the others reach this server, such as http://10.0.0.7:8321.
	Replicas   database.Replicas
	ReplicaURL string
	// Ready, where it is set, fails where something that the server needs besides the backend does not answer: /readyz asks it.
	Ready func(context.Context) error
	// MCP has the server serve the tools of package mcp at /mcp, to keys that may write. Their sandboxes have what those of the API have where a
	// request says nothing. They end with the server, and with Serve.
	MCP bool
	// E2B has the server speak the protocol of the E2B SDKs, too. It needs Authenticate. With PortsDomain, anyone who knows the name of a port of a sandbox that
	// such an SDK makes may use the server there, unless the SDK asks for a token.
	E2B bool
	// Console has the server show its console to browsers, at /. They have sessions there in place of keys: see Server.LoginToken.
	Console bool
	// Sessions keep the sessions of browsers whose callers have a KeyID; others, and nil: they end with the server.
	Sessions database.Sessions
	// OIDC, where it is set, has people log in to the console with an OpenID Connect issuer.
	OIDC *OIDC
	// TLS, where it is set, has Serve speak HTTPS with these certificates.
	TLS *tls.Config
	// BehindProxy says that a proxy before the server speaks HTTPS with clients, so that keys do not go over a network in the clear.
	BehindProxy bool
	// Hosts are names that the server is reached by, beside its address and localhost. A request for another name is refused: its page may have been rebound to us.
	Hosts []string
	// Origins are the web origins, such as https://app.example.org, whose pages may use the server, beside those of the loopback that come over the loopback.
	Origins []string
	// PortsDomain is a domain such as ports.example.org. A server on a port of a sandbox is then also reached at PORT-ID.DOMAIN, where its pages have an
	// origin of their own, with a key of the sandbox's project or an address that was shared. Names below the domain must lead to this server. Nothing
	// else may be below it, since code in sandboxes can set cookies for all of it. Empty: ports are reached by their paths only.
	PortsDomain string
	// Tracers, where it is set, gets spans of requests for operations that need a key: of the request, below that of its traceparent header, of the wait for a
	// place, of taking a sandbox, and of the run. They have names of operations and ids of sandboxes, and neither code nor output. MCP has none.
	Tracers trace.TracerProvider
	// Log gets what is no answer to a client; nil logs nothing.
	Log *slog.Logger
}

// ErrUnknownKey is what Config.Authenticate returns for a key that it does not know.
var ErrUnknownKey = httpgate.ErrUnknown

// Caller identifies who sends a request. AuditEvent records what a caller, or one of its programs, did.
type (
	Caller     = database.Caller
	AuditEvent = database.AuditEvent
)

// everyone is who calls where no key is asked for.
var everyone = Caller{Project: "local", Scopes: []string{database.ScopeRead, database.ScopeWrite, database.ScopeAudit}}

type callerKey struct{}

// caller is who sends a request. Where a key is needed and none was looked at, it may do nothing.
func (s *Server) caller(ctx context.Context) Caller {
	if s.cfg.Authenticate == nil {
		return everyone
	}
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// A Server serves the API. It is safe for concurrent use.
type Server struct {
	cfg     Config
	service *service.Service
	api     huma.API
	metrics *metrics
	auditor *auditor
	gate    *httpgate.Gate
	sealer  sealer
	handler http.Handler

	stopping  context.Context // ends when requests that have no end of their own are to end
	stop      context.CancelFunc
	sessions  *sessions
	issuer    *issuer // nil: nobody logs in with one
	relay     *relay  // nil: the server is alone
	sockets   *sockets
	rates     rates
	artifacts artifacts

	tools    *mcp.Server // nil: there is no /mcp
	sdks     *e2b.Server // nil: E2B's SDKs are not served
	learning sync.WaitGroup

	terminalsMu sync.Mutex
	terminals   map[heldTerminal]*llmsandbox.Process // to which clients are attached
}

// New makes a server, which begins to open the sandboxes that are kept ready. Close ends it. It fails with llmsandbox.ErrInvalid for a
// configuration that makes no sense.
func New(config *Config) (*Server, error) {
	cfg := *cmp.Or(config, &Config{})
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxRequestRate < 0 {
		return nil, fmt.Errorf("httpapi: Config.MaxRequestRate is %d: %w: use a number of requests, or 0 for no bound", cfg.MaxRequestRate, llmsandbox.ErrInvalid)
	}
	issuer, err := newIssuer(&cfg)
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(cfg.Secret)
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	s := &Server{cfg: cfg, metrics: newMetrics(), sealer: sealer, rates: rates{most: cfg.MaxRequestRate}, sessions: newSessions(&cfg), issuer: issuer, terminals: map[heldTerminal]*llmsandbox.Process{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.sockets = newSockets(s.stopping)
	identify := s.identify
	if cfg.Authenticate == nil {
		identify = nil
	}
	gated := httpgate.Options{
		Identify: identify, Origins: cfg.Origins, Hosts: cfg.Hosts, HTTPS: s.sessions.secure,
		Open:    func(r *http.Request) bool { return isOpen(r.URL.Path) || cfg.Console && isConsole(r.URL.Path) },
		MaxBody: apitypes.MaxBody, BodyTimeout: bodyTime, WriteTimeout: writeTime, Stream: func(r *http.Request) bool { return isUpload(r) || isPort(r) },
		Methods:         "GET, HEAD, POST, PUT, PATCH, DELETE",
		RequestHeaders:  "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, X-API-Key",
		ResponseHeaders: "Accept-Ranges, Content-Range, Retry-After, WWW-Authenticate",
		Refuse:          refuse,
	}
	if cfg.Replicas != nil {
		gated.Relayed = forwarded
	}
	if cfg.Console {
		// Before anybody has logged in, no body is kept in memory: login reads a little of it.
		gated.Stream = func(r *http.Request) bool { return isUpload(r) || isPort(r) || isConsole(r.URL.Path) }
		gated.Session = s.ofSession
	}
	if s.gate, err = httpgate.New(gated); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	counted, err := poolprom.New(s.metrics.registry, nil)
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	hooks := []pool.Hooks{counted}
	if cfg.Tracers != nil {
		traced, err := poolotel.New(cfg.Tracers, noop.NewMeterProvider()) // poolprom has the metrics
		if err != nil {
			return nil, fmt.Errorf("httpapi: %w", err)
		}
		hooks = append(hooks, traced)
	}
	if err := cfg.checkPortsDomain(); err != nil {
		return nil, err
	}
	replica, err := newMember(&cfg)
	if err != nil {
		return nil, err
	}
	s.relay = s.newRelay(replica)
	s.artifacts.newName = s.newName
	s.service, err = service.New(&service.Config{
		Sandbox: cfg.Sandbox, Images: cfg.Images, Supervisor: cfg.Supervisor, MaxLifetime: cfg.MaxLifetime, DefaultLifetime: cfg.DefaultLifetime,
		MaxSandboxes: cfg.MaxSandboxes, MaxMemory: cfg.MaxMemory, MaxDisk: cfg.MaxDisk, MaxVolumes: cfg.MaxVolumes, MaxImages: cfg.MaxImages, ImageDir: cfg.ImageDir, Usage: cfg.Usage, MaxDayCPU: cfg.MaxDayCPU, MaxDaySent: cfg.MaxDaySent, MaxRuns: cfg.MaxRuns, Memory: cfg.Memory, Warm: cfg.Warm, WarmLanguages: cfg.WarmLanguages, Zygote: cfg.Zygote, Log: cfg.Log,
		Hooks: hooks, Records: cfg.Records, Replica: replica, Ended: s.processEnded,
	})
	if err != nil {
		return nil, err
	}
	s.metrics.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "llmsandbox_programs_waiting", Help: "Programs that wait because as many run as may.",
	}, func() float64 { return float64(s.service.Waiting()) }))
	if cfg.Usage != nil {
		s.countUsage()
	}
	s.auditor = newAuditor(cfg.Audit, cfg.Log)
	mux := http.NewServeMux()
	s.api = humago.New(mux, s.document())
	s.api.OpenAPI().Components.Schemas.RegisterTypeAlias(reflect.TypeFor[apitypes.File](), reflect.TypeFor[file]())
	s.api.OpenAPI().Components.Schemas.RegisterTypeAlias(reflect.TypeFor[llmsandbox.Result](), reflect.TypeFor[result]())
	s.api.UseMiddleware(s.trace, s.metrics.count, s.limitRate, s.audit, s.allow, s.name)
	s.routes()
	api := s.forward(known(mux))
	inner := s.signed(api)
	if cfg.Console {
		inner = s.console(inner)
	}
	handler, err := s.byHost(s.gate.Wrap(recovered(cfg.Log, inner)), recovered(cfg.Log, api))
	if err != nil {
		return nil, errors.Join(err, s.service.Close(context.Background()))
	}
	s.handler = withSocketKey(handler)
	if cfg.MCP {
		if err := s.addTools(); err != nil {
			return nil, errors.Join(err, s.Close(context.Background()))
		}
	}
	if cfg.E2B {
		if err := s.addSDKs(); err != nil {
			return nil, errors.Join(err, s.Close(context.Background()))
		}
	}
	return s, nil
}

func isOpen(path string) bool {
	return strings.HasPrefix(path, signedPath) || path == "/healthz" || path == "/readyz" || path == "/openapi.json" || path == "/openapi.yaml"
}

// isUpload reports whether a body is the content of a file, or an archive.
func isUpload(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodPut && (strings.HasSuffix(path, "/files") || strings.HasSuffix(path, "/files/archive") || isVolumeArchive(path) || strings.HasPrefix(path, signedPath))
}

func (s *Server) identify(ctx context.Context, key string) (context.Context, error) {
	caller, err := s.cfg.Authenticate(ctx, key)
	if err != nil {
		if !errors.Is(err, ErrUnknownKey) {
			s.cfg.Log.ErrorContext(ctx, "a key could not be checked", "error", err)
		}
		return nil, err
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// Check opens a sandbox and closes it again. Its error is why the server could serve nothing.
func (s *Server) Check(ctx context.Context) error { return s.service.Check(ctx) }

// Serve serves clients on a listener until ctx ends. Then it takes no more requests, gives those under way 20 seconds to
// end, and closes the listener. It fails with llmsandbox.ErrInvalid on an address that others reach where no key is asked for, or where keys would go
// over the network in the clear.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !httpgate.Address(l.Addr()).IsLoopback() {
		missing := ""
		switch {
		case s.cfg.Authenticate == nil:
			missing = "a key is needed"
		case s.cfg.TLS == nil && !s.cfg.BehindProxy:
			missing = "TLS is needed, or a proxy that has it"
		}
		if missing != "" {
			return errors.Join(l.Close(), fmt.Errorf("httpapi: serve on %s: %w: others reach that address, so %s", l.Addr(), llmsandbox.ErrInvalid, missing))
		}
	}
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug), TLSConfig: s.cfg.TLS,
	}
	if s.tools != nil {
		s.learning.Go(func() { s.learn(ctx) })
	}
	served := make(chan error, 1)
	go func() {
		limited := netutil.LimitListener(l, maxConnections)
		if s.cfg.TLS != nil {
			served <- server.ServeTLS(limited, "", "")
			return
		}
		served <- server.Serve(limited)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("httpapi: serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.stop()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	toolsEnded := make(chan error, 1)
	go func() { toolsEnded <- s.closeTools(stop) }() // or the streams of its clients would have no end
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) { // what still runs is ended
		err = server.Close()
	}
	<-served
	return errors.Join(err, <-toolsEnded)
}

// Close lets go of all sandboxes. Those that have a supervisor live on, and another server of the same backend serves them.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	s.sockets.wait() // which lets their programs go on
	if s.sdks != nil {
		s.sdks.Close()
	}
	err := errors.Join(s.closeTools(ctx), s.service.Close(ctx))
	s.auditor.close()
	s.relay.close()
	s.issuer.close()
	return err
}

// known answers requests for what there is not as a problem.
func known(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		answer := &statusOnly{ResponseWriter: w}
		handler.ServeHTTP(answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			refuse(w, answer.status, "there is no such method at this path: /openapi.json describes what there is")
			return
		}
		writeProblem(w, newProblem(answer.status, "no_such_path", "there is nothing at this path: /openapi.json describes what there is"))
	})
}

// A statusOnly takes an answer's headers and status, and not its body.
type statusOnly struct {
	http.ResponseWriter
	status int
}

func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }

// recovered answers a request whose handler panics as a failure of the server, and logs why.
func recovered(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler { //nolint:errorlint,err113 // it is this very value
					panic(v)
				}
				log.ErrorContext(r.Context(), "a request failed", "method", r.Method, "path", r.URL.Path, "panic", v)
				refuse(w, http.StatusInternalServerError, "the server failed: its log says why")
			}
		}()
		next.ServeHTTP(w, r)
	})
}
