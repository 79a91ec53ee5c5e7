// Package mcp is a Model Context Protocol server whose tools run code in sandboxes.
//
// What a sandbox may do is the operator's to say, in [Config]: its limits, network, image
// and policy. Arguments of a tool can ask for less and never for more. Everything that
// comes from inside a sandbox is data: text is stripped of control sequences and bounded,
// pictures are counted and weighed.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
	s.sandboxes = &sandboxes{cfg: cfg, places: sessions.NewQueue(cfg.MaxCalls, 8, patience)}
	s.catalog = newCatalog(cfg.Languages, s.sandboxes)
	s.sessions = sessions.New[owner](cfg.MaxSessions, (*workspace).ended, func(w *workspace) { w.left(); s.sandboxes.remove(w.sandbox) })
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: "llm-sandbox", Title: "LLM Sandbox", Version: cfg.Version}, &sdk.ServerOptions{
		Logger:       cfg.Log,
		GetSessionID: cfg.NewClientID,
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

// viaOf is the Via of who calls; nil where no token is asked for.
func viaOf(req *sdk.CallToolRequest) any {
	if req.Extra == nil || req.Extra.TokenInfo == nil {
		return nil
	}
	return req.Extra.TokenInfo.Extra[viaName]
}

// A lasting transport keeps a connection whose client has nothing more to say until all
// that it asked for is answered. So a shell can write requests into a pipe.
type lasting struct{ sdk.Transport }

func (l lasting) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lastingConnection{Connection: c, pending: map[jsonrpc.ID]bool{}, changed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type lastingConnection struct {
	sdk.Connection
	mu      sync.Mutex
	pending map[jsonrpc.ID]bool // requests without an answer
	changed chan struct{}       // one of them got it
	once    sync.Once
	closed  chan struct{}
}

func (c *lastingConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.wait(ctx)
	}
	if req, ok := m.(*jsonrpc.Request); ok && err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if req.IsCall() {
			c.pending[req.ID] = true
		} else if req.Method == "notifications/cancelled" {
			delete(c.pending, cancelled(req.Params)) // it may get no answer
		}
	}
	return m, err
}

// cancelled is the request that a notification takes back.
func cancelled(params json.RawMessage) jsonrpc.ID {
	var p struct {
		ID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(p.ID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// wait returns when nothing is pending.
func (c *lastingConnection) wait(ctx context.Context) {
	for {
		c.mu.Lock()
		left := len(c.pending)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.changed:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *lastingConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if res, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.pending, res.ID)
		c.mu.Unlock()
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	return err
}

func (c *lastingConnection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
