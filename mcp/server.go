package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/internal/sessions"
)

// maxMessage bounds a client's message, in bytes.
const maxMessage = 32 << 20

// patience is how long a call waits for others to end.
const patience = 30 * time.Second

// A Server answers MCP clients. It is safe for concurrent use.
type Server struct {
	cfg       Config
	mcp       *sdk.Server
	catalog   *catalog
	sandboxes *sandboxes
	sessions  *sessions.Store[owner, *workspace]
	private   []string // see privateDirectories
	checked   atomic.Pointer[checked]

	ctx    context.Context // of all calls
	cancel context.CancelCauseFunc
	mu     sync.Mutex // of closed, and of adding to calls
	closed bool
	calls  sync.WaitGroup

	offer func() // makes the tools; the first call counts
}

// New makes a server. It starts and contacts nothing: [Server.Check] does, or else the first
// client causes it. It fails with llmsandbox.ErrInvalid or ErrUnknownLanguage for a configuration
// that makes no sense.
func New(config *Config) (*Server, error) {
	cfg, err := cmp.Or(config, &Config{}).resolve()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, private: privateDirectories()}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.sandboxes = &sandboxes{cfg: cfg, limit: sessions.NewLimit(cfg.MaxCalls, patience)}
	s.catalog = newCatalog(cfg.Languages, s.sandboxes)
	s.sessions = sessions.New[owner](cfg.MaxSessions, (*workspace).ended, func(w *workspace) { s.sandboxes.remove(w.sandbox) })
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: "llm-sandbox", Title: "LLM Sandbox", Version: cfg.Version}, &sdk.ServerOptions{
		Logger:       cfg.Log,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	})
	s.offer = sync.OnceFunc(func() {
		s.addExecute()
		s.addLanguages()
		s.addSessions()
		s.addFiles()
	})
	s.mcp.AddReceivingMiddleware(s.prepare)
	return s, nil
}

// MCP is the protocol's server, to be served over HTTP. Sessions that create_session opens
// belong to the UserID of the request's auth.TokenInfo, and where there is none to the
// protocol's own session.
func (s *Server) MCP() *sdk.Server { return s.mcp }

// RunStdio serves one client over a stream of lines each way, and closes both. The end of
// in says that the client has nothing more to ask, not that it has disconnected, as where a shell
// writes requests into a pipe: calls under way come to their end, as their timeouts allow,
// and are answered before RunStdio returns nil. They are killed when ctx ends, and when
// out fails, with its error. Close is still to be called.
func (s *Server) RunStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	defer context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })()
	// Not by the library's Run, which logs it as an error that ctx has ended.
	session, err := s.mcp.Connect(ctx, lasting{&sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxMessage}}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		_ = session.Close()
		<-ended
		return context.Cause(ctx)
	}
}

// Close ends all connections and calls, and removes all sandboxes. It returns when nothing
// is left, or with an error that names what is. It may be called more than once.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(errClosing)
	for _, session := range slices.Collect(s.mcp.Sessions()) {
		_ = session.Close() // its connection goes in any case
	}
	s.calls.Wait()
	s.sessions.CloseAll()
	return s.sandboxes.close(ctx)
}

// begin counts a call in, and gives it a context that ends with the server.
func (s *Server) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errClosing
	}
	s.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { stop(); cancel(nil); s.calls.Done() }, nil
}

// prepare makes the tools, whose schemas take some milliseconds, and fills the pool, as soon
// as a client has been answered who it talks to. It adds to answers what Check has found.
func (s *Server) prepare(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method != "initialize" && method != "server/discover" && method != "ping" {
			s.offer()
			if _, err := s.sandboxes.warm(); err != nil && !errors.Is(err, errClosing) {
				s.cfg.Log.Error("no sandboxes can be kept ready", "error", err)
			}
		}
		res, err := next(ctx, method, req)
		switch res := res.(type) {
		case *sdk.InitializeResult:
			res.Instructions = s.instructions()
		case *sdk.DiscoverResult:
			res.Instructions = s.instructions()
		case *sdk.ListToolsResult:
			s.nameLibraries(ctx, res)
		}
		return res, err
	}
}

var (
	errClosing     = errors.New("the server is closing")
	errNoSession   = errors.New("no such session: it was never created, was closed, or has expired; open another with create_session")
	errNoLibraries = errors.New("the operator does not allow installing libraries: use those that get_language_details lists as preinstalled")
)

// message is what a client gets of an error: nothing that names this machine's directories.
// The log gets all of it.
func (s *Server) message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the call was cancelled and its code was killed"
	}
	s.cfg.Log.Warn("a call failed", "error", err)
	text := err.Error()
	for _, dir := range s.private {
		text = strings.ReplaceAll(text, dir, "…")
	}
	return line(text)
}

// privateDirectories are those whose names say who runs the server.
func privateDirectories() []string {
	var dirs []string
	for _, find := range []func() (string, error){os.UserCacheDir, os.UserConfigDir, os.UserHomeDir, os.Getwd} {
		if dir, err := find(); err == nil && len(dir) > 1 {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, strings.TrimSuffix(os.TempDir(), "/"))
}

// An owner is whom a session belongs to: an authenticated user, whatever connection it
// comes by, and else the connection itself.
type owner struct {
	user       string
	connection *sdk.ServerSession
}

func ownerOf(req *sdk.CallToolRequest) owner {
	if req.Extra != nil && req.Extra.TokenInfo != nil && req.Extra.TokenInfo.UserID != "" {
		return owner{user: req.Extra.TokenInfo.UserID}
	}
	return owner{connection: req.Session}
}
