package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/sessions"
)

type createArgs struct {
	Language  string   `json:"language,omitempty" jsonschema:"its language"`
	Libraries []string `json:"libraries,omitempty" jsonschema:"packages to install first"`
	TTL       int      `json:"ttl,omitempty" jsonschema:"seconds until the session closes"`
}

type created struct {
	SessionID string   `json:"session_id"`
	Language  string   `json:"language"`
	Stateful  bool     `json:"stateful" jsonschema:"variables are kept"`
	Workdir   string   `json:"workdir"`
	TTL       int      `json:"ttl"`
	IdleTTL   int      `json:"idle_ttl"`
	Notes     []string `json:"notes,omitempty"`
}

type sessionArgs struct {
	SessionID string `json:"session_id"`
}

type closedSession struct {
	Closed bool `json:"closed"`
}

func (s *Server) addSessions() {
	add(s, tool{
		name: "create_session", title: "Open a session",
		description: "Open a sandbox that keeps files and, in most languages, variables between calls of run_in_session. " +
			"Network and limits are those of execute_code. Close it with close_session when you are done.",
		hints: hints{openWorld: s.openWorld()},
		bounds: func(p properties) {
			s.boundLanguage(p)
			p["ttl"].Minimum = new(1.0)
		},
	}, s.createSession)
	add(s, tool{
		name: "run_in_session", title: "Run code in a session",
		description: "Run code in a session, like a notebook cell. Returns what execute_code returns, and the value of the last expression. " +
			"With another language, the code runs as a program that shares the session's files: use bash for shell commands.",
		hints: hints{destructive: true, openWorld: s.openWorld()},
		bounds: func(p properties) {
			s.boundCode(p)
			s.listLanguages(p)
		},
	}, running(s, s.runInSession))
	add(s, tool{
		name: "install_libraries", title: "Install libraries in a session",
		description: "Install packages for the session's language. An empty list does nothing.",
		hints:       hints{idempotent: true, openWorld: true},
		bounds:      boundLibraries,
	}, s.installLibraries)
	add(s, tool{
		name: "close_session", title: "Close a session",
		description: "Close a session. Its code is killed and its files are deleted.",
		hints:       hints{destructive: true, idempotent: true},
	}, func(_ context.Context, c *call, in sessionArgs) (*sdk.CallToolResult, closedSession, error) {
		if _, done, err := s.use(c, in.SessionID); err == nil { // for its sandbox
			done()
		}
		if err := s.sessions.Close(c.owner, in.SessionID); err != nil {
			return nil, closedSession{}, s.sessionError(err)
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
		s.sessions.Watch(c.owner, func() { _ = c.owner.connection.Wait() }) // why it ended does not matter
	}
	one, err := s.sessions.Create(c.owner, ttl, s.cfg.SessionIdle, func() (*workspace, error) {
		w, err := s.openWorkspace(ctx, l, in.Libraries, ttl, c.progress)
		if err == nil {
			w.left = s.using(c, w.sandbox)
		}
		return w, err
	})
	if err != nil {
		return nil, created{}, s.sessionError(err)
	}
	w := one.Value
	c.became.SandboxID = w.sandbox.ID()
	if w.kernel == nil {
		notes = append(notes, "only files are kept, not variables: "+w.why)
	}
	return nil, created{
		SessionID: one.ID, Language: l.Name, Stateful: w.kernel != nil, Workdir: w.sandbox.Workdir(),
		TTL: int(ttl / time.Second), IdleTTL: int(min(s.cfg.SessionIdle, ttl) / time.Second), Notes: notes,
	}, nil
}

// use returns what a session of the caller's holds. done must be called at the end.
func (s *Server) use(c *call, id string) (w *workspace, done func(), err error) {
	one, done, err := s.sessions.Use(c.owner, id)
	if err != nil {
		return nil, nil, s.sessionError(err)
	}
	c.became.SandboxID = one.Value.sandbox.ID()
	return one.Value, done, nil
}

// sessionError tells a client what to do about a session that it does not get.
func (s *Server) sessionError(err error) error {
	switch {
	case errors.Is(err, sessions.ErrNone):
		return errNoSession
	case errors.Is(err, sessions.ErrEnded):
		return fmt.Errorf("the session's sandbox has ended: %w", errNoSession)
	case errors.Is(err, sessions.ErrFull):
		return fmt.Errorf("%s open, which is the maximum: close one with close_session, or wait until one expires", count(s.cfg.MaxSessions, "session"))
	case errors.Is(err, sessions.ErrClosed):
		return errClosing
	}
	return err
}

type runArgs struct {
	SessionID string `json:"session_id"`
	Code      string `json:"code" jsonschema:"what to run"`
	Language  string `json:"language,omitempty" jsonschema:"the session's by default"`
	Timeout   int    `json:"timeout,omitempty" jsonschema:"seconds"`
}

func (s *Server) runInSession(ctx context.Context, c *call, in runArgs) (*sdk.CallToolResult, outcome, error) {
	w, done, err := s.use(c, in.SessionID)
	if err != nil {
		return nil, outcome{}, err
	}
	defer done()
	l := w.language
	if in.Language != "" {
		if l, err = s.catalog.find(in.Language); err != nil {
			return nil, outcome{}, err
		}
	}
	timeout, notes := s.timeout(in.Timeout)
	c.say("running")
	if w.kernel == nil || l != w.language {
		return s.runProgram(ctx, c, w.sandbox, l.Name, in.Code, timeout, func(out *outcome) { out.Notes = append(out.Notes, notes...) })
	}
	w.used.Store(true)
	return s.runCell(ctx, c, w, in.Code, timeout, notes)
}

func (s *Server) runCell(ctx context.Context, c *call, w *workspace, code string, timeout time.Duration, notes []string) (*sdk.CallToolResult, outcome, error) {
	cell, err := w.kernel.Run(ctx, code, &llmsandbox.CellOptions{Timeout: timeout})
	if err != nil {
		return nil, outcome{}, err
	}
	c.became.Network, c.became.NetworkDropped = cell.Network, cell.NetworkDropped
	o := &llmsandbox.Result{
		Status: cell.Status, ExitCode: cell.ExitCode, Signal: cell.Signal, Reason: cell.Reason, Duration: cell.Duration,
		Stdout: cell.Stdout, Stderr: cell.Stderr, StdoutTruncated: cell.StdoutTruncated, StderrTruncated: cell.StderrTruncated,
		Network: cell.Network, Findings: cell.Findings, Hints: cell.Hints, Capabilities: w.sandbox.Capabilities(),
	}
	if o.ExitCode == -1 {
		o.ExitCode = cellCode(cell.Status)
	}
	if cell.Error != nil {
		o.Stderr = strings.TrimSuffix(o.Stderr, "\n")
		if o.Stderr != "" {
			o.Stderr += "\n"
		}
		o.Stderr += traceback(cell.Error)
	}
	out := s.cfg.outcome(o)
	out.Value = out.text("value", cell.Value["text/plain"], false, s.cfg.MaxText)
	out.StateLost = cell.StateLost
	if cell.StateLost {
		out.note("the interpreter ended: variables of earlier calls are lost, and the next call starts a new one")
	}
	if cell.Restarted {
		out.note("the interpreter had ended since the previous call, so this call started without its variables")
	}
	out.Notes = append(out.Notes, notes...)
	return s.cfg.result(&out, cell.Artifacts, cell.ArtifactsDropped), out, nil
}

// cellCode is the exit code of a cell that has none of its own.
func cellCode(status llmsandbox.Status) int {
	if status == llmsandbox.StatusOK {
		return 0
	}
	return 1
}

func traceback(e *llmsandbox.CellError) string {
	if e.Traceback != "" {
		return e.Traceback
	}
	return fmt.Sprintf("%s: %s\n", e.Name, e.Message)
}

type installArgs struct {
	SessionID string   `json:"session_id"`
	Libraries []string `json:"libraries" jsonschema:"as in execute_code"`
}

type installed struct {
	Installed []string `json:"installed"`
	StateLost bool     `json:"state_lost" jsonschema:"variables are lost"`
}

// installLibraries installs, and has the session's interpreter find what was installed.
func (s *Server) installLibraries(ctx context.Context, c *call, in installArgs) (*sdk.CallToolResult, installed, error) {
	w, done, err := s.use(c, in.SessionID)
	if err != nil {
		return nil, installed{}, err
	}
	defer done()
	if err := s.mayInstall(in.Libraries); err != nil {
		return nil, installed{}, err
	}
	if len(in.Libraries) == 0 {
		return nil, installed{Installed: []string{}}, nil
	}
	c.say("installing")
	lost, err := w.install(ctx, in.Libraries, c.progress)
	if err != nil {
		return nil, installed{}, err
	}
	return nil, installed{Installed: append([]string{}, in.Libraries...), StateLost: lost}, nil
}

// lifetimeSlack is how much later than the session its sandbox ends by itself, if
// no server is left to end it.
const lifetimeSlack = time.Minute

// A workspace is what a session holds: a sandbox, and an interpreter in it that keeps what
// code defines.
type workspace struct {
	language *language.Language
	sandbox  *llmsandbox.Sandbox
	left     func()             // called before the sandbox is removed
	kernel   *llmsandbox.Kernel // nil where the sandbox has none for the language
	why      string             // there is no kernel

	installing ctxlock.Mutex
	steps      atomic.Pointer[progress] // of the call that may take long
	used       atomic.Bool              // the interpreter has state
}

// openWorkspace opens a sandbox for so long, and its interpreter where there is one.
func (s *Server) openWorkspace(ctx context.Context, l *language.Language, libraries []string, ttl time.Duration, steps *progress) (*workspace, error) {
	w := &workspace{language: l, installing: ctxlock.New()}
	w.steps.Store(steps)
	defer w.steps.Store(nil)
	o := s.sandboxes.options(l.Name, libraries)
	o.Progress = w.tell
	o.Lifetime = ttl + lifetimeSlack
	var err error
	if w.sandbox, err = llmsandbox.Open(ctx, &o); err != nil {
		return nil, err
	}
	// What a cell may install is what install_libraries may. The plain shell opens at once.
	w.kernel, err = w.sandbox.Kernel(ctx, l.Name, &llmsandbox.KernelOptions{Plain: true, AllowInstall: !s.cfg.NoLibraries})
	switch {
	case err == nil:
	case errors.Is(err, llmsandbox.ErrToolchain), errors.Is(err, llmsandbox.ErrUnsupported):
		w.why = s.message(err)
	default:
		s.sandboxes.remove(w.sandbox)
		return nil, fmt.Errorf("start the interpreter: %w", err)
	}
	return w, nil
}

// using tells that a sandbox is for who calls. What it returns is called before the sandbox is removed.
func (s *Server) using(c *call, sb *llmsandbox.Sandbox) (left func()) {
	if s.cfg.Use == nil {
		return func() {}
	}
	return s.cfg.Use(c.via, sb)
}

// ended reports whether the sandbox has ended by itself.
func (w *workspace) ended() bool {
	return ctxend.Closed(w.sandbox.Done())
}

func (w *workspace) tell(step backend.Progress) {
	if steps := w.steps.Load(); steps != nil {
		steps.tell(step)
	}
}

// install installs libraries, and has the interpreter find them. lost means that it had to
// begin anew for that.
func (w *workspace) install(ctx context.Context, libraries []string, steps *progress) (lost bool, err error) {
	if err := w.installing.Lock(ctx); err != nil {
		return false, err
	}
	defer w.installing.Unlock()
	w.steps.Store(steps)
	defer w.steps.Store(nil)
	if err := w.sandbox.Install(ctx, libraries, nil); err != nil || w.kernel == nil {
		return false, err
	}
	if w.language.Name == "python" {
		// It asks for what is there already, and learns where that is.
		cell, err := w.kernel.Run(ctx, "%pip install -q "+strings.Join(libraries, " "), nil)
		if err != nil || cell.OK() {
			return false, err
		}
	}
	return w.used.Load(), w.kernel.Restart(ctx)
}
