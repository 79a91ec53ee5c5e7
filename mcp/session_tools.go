package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type createArgs struct {
	Language  string   `json:"language,omitempty" jsonschema:"language of the session's code, as get_supported_languages lists them"`
	Libraries []string `json:"libraries,omitempty" jsonschema:"libraries to install first"`
	TTL       int      `json:"ttl,omitempty" jsonschema:"seconds after which the session is closed, whatever goes on in it; by default as long as the operator allows"`
}

type created struct {
	SessionID string   `json:"session_id" jsonschema:"names the session in other calls; keep it to yourself"`
	Language  string   `json:"language"`
	Stateful  bool     `json:"stateful" jsonschema:"variables are kept between calls; files always are"`
	Workdir   string   `json:"workdir" jsonschema:"the working folder, against which paths are resolved"`
	TTL       int      `json:"ttl" jsonschema:"seconds after which the session is closed"`
	IdleTTL   int      `json:"idle_ttl" jsonschema:"seconds without a call after which it is closed"`
	Notes     []string `json:"notes,omitempty"`
}

type sessionArgs struct {
	SessionID string `json:"session_id" jsonschema:"of create_session"`
}

type closedSession struct {
	Closed bool `json:"closed"`
}

func (s *Server) addSessions() {
	add(s, tool{
		name: "create_session", title: "Open a session",
		description: "Open a sandbox that keeps files and, in most languages, variables from one run_in_session to the next. " + s.place() +
			" Close it with close_session when it is no longer needed.",
		hints: hints{openWorld: s.openWorld()},
		bounds: func(p properties) {
			s.boundLanguage(p)
			p["ttl"].Minimum = atLeast(1)
		},
	}, s.createSession)
	add(s, tool{
		name: "run_in_session", title: "Run code in a session",
		description: "Run code in a session: what it defines is there for the next call. Returns the exit code, stdout, stderr and the last expression's value as JSON, and pictures.",
		hints:       hints{destructive: true, openWorld: s.openWorld()},
		bounds:      func(p properties) { s.boundCode(p); p["session_id"].MaxLength = atMost(maxName) },
	}, s.runInSession)
	add(s, tool{
		name: "install_libraries", title: "Install libraries in a session",
		description: "Install libraries of the session's language, for all that runs in it afterwards.",
		hints:       hints{idempotent: true, openWorld: true},
		bounds:      func(p properties) { boundLibraries(p); p["session_id"].MaxLength = atMost(maxName) },
	}, s.installLibraries)
	add(s, tool{
		name: "close_session", title: "Close a session",
		description: "Close a session and remove its sandbox with all files. What runs in it is killed.",
		hints:       hints{destructive: true, idempotent: true},
		bounds:      func(p properties) { p["session_id"].MaxLength = atMost(maxName) },
	}, func(_ context.Context, c *call, in sessionArgs) (*sdk.CallToolResult, closedSession, error) {
		if err := s.sessions.drop(c.owner, in.SessionID); err != nil {
			return nil, closedSession{}, err
		}
		return nil, closedSession{true}, nil
	})
}

func (s *Server) createSession(ctx context.Context, c *call, in createArgs) (*sdk.CallToolResult, created, error) {
	l, err := s.catalog.find(in.Language)
	if err != nil {
		return nil, created{}, err
	}
	if err := s.mayInstall(in.Libraries); err != nil {
		return nil, created{}, err
	}
	ttl, notes := s.cfg.SessionTTL, []string(nil)
	if in.TTL > 0 {
		ttl, notes = clamp("ttl", in.TTL, ttl)
	}
	c.say("opening a sandbox")
	if c.owner.connection != nil {
		s.sessions.watch(c.owner, func() { _ = c.owner.connection.Wait() }) // why it ended does not matter
	}
	one, err := s.sessions.create(c.owner, ttl, s.cfg.SessionIdle, func() (*workspace, error) {
		return s.openWorkspace(ctx, l, in.Libraries, ttl, c.progress)
	})
	if err != nil {
		return nil, created{}, err
	}
	w := one.Value
	if w.kernel == nil {
		notes = append(notes, "variables are not kept, only files: "+w.why)
	}
	return nil, created{
		SessionID: one.ID, Language: l.Name, Stateful: w.kernel != nil, Workdir: w.sandbox.Workdir(),
		TTL: int(ttl / time.Second), IdleTTL: int(min(s.cfg.SessionIdle, ttl) / time.Second), Notes: notes,
	}, nil
}
