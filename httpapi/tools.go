package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apierror"
	"github.com/llmsandbox/llmsandbox/mcp"
)

// mcpPath is where MCP is served.
const mcpPath = "/mcp"

// addTools has the server serve MCP beside the API. No tool can ask for more than sandboxes have where a request says nothing.
func (s *Server) addTools() error {
	c := s.cfg
	own := mcp.Config{
		Version: c.Version, Sandbox: c.Sandbox, Warm: c.Warm, WarmLanguages: c.WarmLanguages, Zygote: c.Zygote, MaxCalls: c.MaxRuns, MaxSessions: c.MaxSandboxes,
		SessionTTL: c.DefaultLifetime, Begin: s.beginTool, Use: s.countTool, NewClientID: s.newName, Log: slog.New(quieter{c.Log.Handler()}),
	}
	if c.MaxLifetime > 0 {
		own.SessionTTL = min(cmp.Or(c.DefaultLifetime, time.Hour), c.MaxLifetime)
	}
	own.Sandbox.Network, own.Sandbox.Secrets = llmsandbox.Network{}, nil // secrets are for a network
	tools, err := mcp.New(&own)
	if err != nil {
		return err
	}
	o := mcp.HTTPOptions{Origins: c.Origins, Hosts: c.Hosts}
	if c.Authenticate != nil {
		o.Authenticate = s.principal
	}
	handler, err := tools.Handler(&o)
	if err != nil {
		return err
	}
	s.tools = tools
	api, handler := s.handler, recovered(c.Log, s.forward(handler))
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == mcpPath {
			handler.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
	return nil
}

// principal is the project of a key, which may run code.
func (s *Server) principal(ctx context.Context, key string) (mcp.Principal, error) {
	caller, err := s.cfg.Authenticate(ctx, key)
	switch {
	case err != nil:
		return mcp.Principal{}, err
	case !caller.Has(database.ScopeWrite):
		s.note(by(caller, AuditEvent{Time: time.Now(), Operation: "mcp", Status: http.StatusForbidden, Outcome: "scope"}))
		return mcp.Principal{}, fmt.Errorf("%w: the key does not have the scope write: use one that has", mcp.ErrForbiddenToken)
	}
	return mcp.Principal{Name: caller.Project, Via: caller}, nil
}

// toolCaller is who calls a tool.
func (s *Server) toolCaller(via any) Caller {
	if s.cfg.Authenticate == nil {
		return everyone
	}
	caller, _ := via.(Caller)
	return caller
}

// countTool counts what a sandbox of a tool uses.
func (s *Server) countTool(via any, sb *llmsandbox.Sandbox) (end func()) {
	return s.service.Count(s.toolCaller(via).Project, sb)
}

// beginners are the tools that begin a sandbox or program.
var beginners = []string{"create_session", "execute_code", "install_libraries", "run_in_session"}

// beginTool counts a call of a tool as a request of its key, and notes what becomes of it.
func (s *Server) beginTool(ctx context.Context, via any, tool string, readOnly bool) (func(mcp.Call), error) {
	caller := s.toolCaller(via)
	p := s.tooMany(caller)
	if p == nil && slices.Contains(beginners, tool) {
		if err := s.service.Admit(ctx, caller.Project); err != nil {
			p = s.problem(ctx, err)
		}
	}
	if p != nil {
		s.metrics.tools.WithLabelValues(tool, p.Code).Inc()
		return nil, p
	}
	start := time.Now()
	return func(c mcp.Call) {
		outcome := toolOutcome(&c)
		s.metrics.tools.WithLabelValues(tool, outcome).Inc()
		s.metrics.toolTime.WithLabelValues(tool).Observe(time.Since(start).Seconds())
		if c.Status != "" {
			s.metrics.ended(c.Status)
			s.service.Ran(caller.Project, c.SandboxID)
		}
		if readOnly {
			return
		}
		e := by(caller, AuditEvent{Time: start, Operation: ToolPrefix + tool, Sandbox: c.SandboxID, Outcome: outcome})
		s.note(append((&trail{network: c.Network, dropped: c.NetworkDropped}).attempts(e), e)...)
	}, nil
}

// toolOutcome is what the audit log and the metrics say of a call: few different words.
func toolOutcome(c *mcp.Call) string {
	switch {
	case c.Status != "":
		return string(c.Status)
	case c.Err == nil:
		return "ok"
	case errors.Is(c.Err, context.Canceled):
		return "canceled"
	}
	if at := slices.IndexFunc(kinds, func(k apierror.Kind) bool { return errors.Is(c.Err, k.Err) }); at >= 0 {
		return kinds[at].Code
	}
	return "failed"
}

// learn has the tools' server find out which limits hold and which libraries there are, to tell its clients. They are served meanwhile.
func (s *Server) learn(ctx context.Context) {
	if _, err := s.tools.Check(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.WarnContext(ctx, "clients of MCP are not told which limits hold and which libraries there are", "error", err)
	}
}

// closeTools ends all that clients of MCP do and have.
func (s *Server) closeTools(ctx context.Context) error {
	if s.tools == nil {
		return nil
	}
	err := s.tools.Close(ctx)
	s.learning.Wait()
	return err
}

// A quieter handler takes what is information for details: for the MCP library, each client that comes or goes is information.
type quieter struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	if level < slog.LevelWarn {
		level -= slog.LevelInfo - slog.LevelDebug
	}
	return q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }
