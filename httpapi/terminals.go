package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// How a terminal's connection is watched.
const (
	pingTime = 20 * time.Second // between two questions whether the client is there
	pongTime = time.Minute      // for it to answer one, or to send anything
	byeTime  = 5 * time.Second  // for it to close the connection, once all is said
)

// shell is what a terminal runs where nothing else is asked for.
var shell = []string{"/bin/sh", "-c", "command -v bash >/dev/null && exec bash; exec sh"}

type newTerminal struct {
	ID      string   `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Cols    uint16   `query:"cols" minimum:"1" maximum:"1000" doc:"Its width in characters; 80, or what it was, where it is left out"`
	Rows    uint16   `query:"rows" minimum:"1" maximum:"1000" doc:"Its height in characters; 24, or what it was, where it is left out"`
	Command []string `query:"command,explode" maxItems:"1000" doc:"A program and its arguments, one a parameter; the sandbox's shell where it is left out"`
	Process uint64   `query:"process" minimum:"1" doc:"Attach to the terminal of this process, in place of opening one; it takes over from a client that is attached"`
}

type terminalPath struct {
	ID      string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Process uint64 `path:"process" doc:"The number of its process"`
}

// A heldTerminal names a terminal that a client is attached to.
type heldTerminal struct {
	sandbox string
	process uint64
}

func (s *Server) terminalRoutes() {
	const tag, path = "Terminals", "/v1/sandboxes/{id}/terminals"
	onSandbox(s, operation{
		id: "open-terminal", method: http.MethodGet, path: path, tag: tag, status: http.StatusSwitchingProtocols, write: true,
		summary: "Open a terminal, or attach to one, over a WebSocket",
		doc: "Binary messages are what is typed and shown. Text messages are JSON: {\"resize\":{\"cols\":80,\"rows\":24}} from the client; {\"process\":N} first from the server, and {\"result\":{…}} or " +
			"{\"problem\":{…}} last. The program goes on when the connection ends without one of these, and process=N attaches to it again. The subprotocol is llmsandbox.terminal. " +
			"Clients that cannot set headers offer llmsandbox.key.KEY beside it.",
	}, s.openTerminal).Responses["101"].Description = "The connection is a WebSocket"
	onSandbox(s, operation{
		id: "end-terminal", method: http.MethodDelete, path: path + "/{process}", tag: tag, status: http.StatusNoContent, write: true,
		summary: "End the program of a terminal with all that it has started",
	}, s.endTerminal)
}

func (s *Server) openTerminal(ctx context.Context, sb *llmsandbox.Sandbox, in *newTerminal) (*huma.StreamResponse, error) {
	switch {
	case (in.Cols == 0) != (in.Rows == 0):
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid", "cols and rows belong together: give both, or neither")
	case in.Process != 0 && len(in.Command) > 0:
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid", "process and command exclude each other: a terminal that there is has its program")
	}
	if err := s.noProgram(ctx, in.ID, in.Process); err != nil {
		return nil, err
	}
	if in.Process == 0 {
		if err := s.service.Admit(ctx, s.caller(ctx).Project); err != nil {
			return nil, err
		}
	}
	ctx, leave, err := s.sockets.enter(ctx, s.caller(ctx).Project)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer leave()
		r, w := humago.Unwrap(c)
		if !websocket.IsWebSocketUpgrade(r) || r.ProtoMajor != 1 {
			c.SetHeader("Upgrade", "websocket")
			s.write(c, s.problem(ctx, newProblem(http.StatusUpgradeRequired, "upgrade_required", "this is a WebSocket: ask for it with the headers of RFC 6455, over HTTP/1.1")))
			return
		}
		upgrader := websocket.Upgrader{
			Subprotocols: []string{apitypes.TerminalProtocol},
			CheckOrigin:  func(*http.Request) bool { return true }, // the gate has
			Error: func(_ http.ResponseWriter, _ *http.Request, status int, reason error) {
				s.write(c, s.problem(ctx, newProblem(status, "invalid", reason.Error())))
			},
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		c.SetStatus(http.StatusSwitchingProtocols) // it was sent: this is for those who count
		s.follow(ctx, conn, sb, in)
	}}, nil
}

// noProgram fails for a program that goes on without a client, since who attaches to it takes it from those who follow it.
func (s *Server) noProgram(ctx context.Context, id string, process uint64) error {
	if process == 0 {
		return nil
	}
	_, err := s.service.Program(ctx, s.caller(ctx).Project, id, process)
	switch {
	case errors.Is(err, llmsandbox.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("process %d has no terminal: it was started at processes, where its output is read and it is killed", process))
}

// endTerminal kills by the handle of the client that is attached, which thus learns of it, and otherwise attaches to the process itself.
func (s *Server) endTerminal(ctx context.Context, sb *llmsandbox.Sandbox, in *terminalPath) (*struct{}, error) {
	if err := s.noProgram(ctx, in.ID, in.Process); err != nil {
		return nil, err
	}
	s.terminalsMu.Lock()
	p := s.terminals[heldTerminal{in.ID, in.Process}]
	s.terminalsMu.Unlock()
	if p == nil {
		var err error
		p, err = sb.AttachProcess(ctx, in.Process, nil)
		if errors.Is(err, llmsandbox.ErrLost) && !runs(ctx, sb, in.Process) {
			err = fmt.Errorf("process %d: %w: it has just ended", in.Process, fs.ErrNotExist)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := p.Kill(ctx); err != nil {
		return nil, err
	}
	// What became of it is told to whom it was started for.
	if _, err := p.Wait(ctx); ctx.Err() != nil {
		return nil, err
	}
	return nil, nil
}

// runs reports whether a process may run: it does not if the sandbox can be asked, and says so. What became of one that has ended is told once.
func runs(ctx context.Context, sb *llmsandbox.Sandbox, process uint64) bool {
	list, err := sb.Processes(ctx)
	return err != nil || slices.ContainsFunc(list, func(p llmsandbox.ProcessInfo) bool { return p.ID == process && p.Running })
}

// holdTerminal notes that a client is attached to a terminal, until release is called.
func (s *Server) holdTerminal(name heldTerminal, p *llmsandbox.Process) (release func()) {
	s.terminalsMu.Lock()
	defer s.terminalsMu.Unlock()
	s.terminals[name] = p
	return func() {
		s.terminalsMu.Lock()
		defer s.terminalsMu.Unlock()
		if s.terminals[name] == p { // and no other client has taken over
			delete(s.terminals, name)
		}
	}
}

// A terminal is the connection of one client with a process. What the process writes is written to it.
type terminal struct {
	conn  *websocket.Conn
	ctx   context.Context //nolint:containedctx // it ends with the connection
	end   context.CancelFunc
	begun chan struct{} // closed once the client knows of what process it is shown the output
	mu    sync.Mutex    // of writing
}

// Write implements io.Writer: it sends what the process shows. It waits for the client as long as the gate lets it. After that the connection is ended,
// and the process goes on without it.
func (t *terminal) Write(p []byte) (int, error) {
	select {
	case <-t.begun:
	case <-t.ctx.Done():
		return 0, context.Cause(t.ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.conn.WriteMessage(websocket.BinaryMessage, p); err != nil {
		t.end()
		return 0, err
	}
	return len(p), nil
}

// send sends an event. A client that has gone away misses nothing.
func (t *terminal) send(e *apitypes.TerminalEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.conn.WriteJSON(e); err != nil {
		t.end()
	}
}

// follow has a client use a terminal until one of both ends.
func (s *Server) follow(ctx context.Context, conn *websocket.Conn, sb *llmsandbox.Sandbox, in *newTerminal) {
	t := &terminal{conn: conn, begun: make(chan struct{})}
	t.ctx, t.end = context.WithCancel(ctx)
	defer t.end()
	stdin, typed := io.Pipe()
	gone := make(chan struct{}) // closed once nothing is read from the connection any more
	p, err := start(t.ctx, sb, in, stdin, t)
	release := func() {}
	if err == nil {
		release = s.holdTerminal(heldTerminal{in.ID, p.ID()}, p)
		t.send(&apitypes.TerminalEvent{Process: p.ID()})
		close(t.begun)
		if in.Process != 0 && in.Cols != 0 {
			if err = p.Resize(t.ctx, llmsandbox.WinSize{Rows: in.Rows, Cols: in.Cols}); err != nil {
				p.Detach()
			}
		}
	}
	if err != nil {
		release()
		_ = stdin.Close() // what is typed meanwhile is for nobody
		go t.read(nil, typed, gone)
		t.bye(&apitypes.TerminalEvent{Problem: &s.problem(ctx, err).Problem}, websocket.CloseNormalClosure, gone)
		return
	}
	go t.read(p, typed, gone)
	defer t.ping()()
	select {
	case <-p.Done():
	case <-gone:
		p.Detach()
	case <-t.ctx.Done():
		_ = conn.NetConn().SetWriteDeadline(time.Now()) // a client that does not read is not waited for
		p.Detach()
	}
	_ = stdin.Close()
	res, err := p.Wait(context.WithoutCancel(ctx)) // it has ended, or was let go of
	release()
	trail, last := trailOf(ctx), apitypes.TerminalEvent{}
	trail.network, trail.dropped = res.Network, res.NetworkDropped // also of one that goes on
	if err == nil || settles(err) {
		s.metrics.ended(res.Status)
		s.service.Ran(s.caller(ctx).Project, in.ID)
		trail.outcome = string(res.Status)
		shown := *res
		shown.StdoutTruncated, shown.Stdout = shown.StdoutTruncated || shown.Stdout != "", "" // it was shown already
		last.Result, err = json.Marshal(shown)
	}
	if err != nil {
		last.Problem = &s.problem(ctx, err).Problem
	}
	if ctx.Err() != nil { // the server ends, and the program need not
		t.bye(nil, websocket.CloseGoingAway, gone)
		return
	}
	t.bye(&last, websocket.CloseNormalClosure, gone)
}

func start(ctx context.Context, sb *llmsandbox.Sandbox, in *newTerminal, stdin io.Reader, t *terminal) (*llmsandbox.Process, error) {
	if in.Process != 0 {
		return sb.AttachProcess(ctx, in.Process, &llmsandbox.AttachOutput{Stdin: stdin, Stdout: t})
	}
	argv := in.Command
	if len(argv) == 0 {
		argv = shell
	}
	return sb.Start(ctx, argv, &llmsandbox.ExecOptions{
		Terminal: &llmsandbox.WinSize{Rows: cmp.Or(in.Rows, 24), Cols: cmp.Or(in.Cols, 80)}, Stdin: stdin, Stdout: t, Timeout: llmsandbox.Unlimited,
		Env: map[string]string{"TERM": "xterm-256color"},
	})
}

// bye says the last of a terminal, if anything, and ends the connection: soon after the client does.
func (t *terminal) bye(last *apitypes.TerminalEvent, code int, gone <-chan struct{}) {
	if last != nil {
		t.send(last)
	}
	_ = t.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(byeTime))
	// Were it closed at once, what the client is sending would have its system forget what we have sent.
	late := time.AfterFunc(byeTime, func() { _ = t.conn.Close() })
	<-gone
	late.Stop()
}

// ping asks the client from time to time whether it is there.
func (t *terminal) ping() (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(pingTime)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				if err := t.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime)); err != nil {
					t.end()
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-stopped
	}
}

// read hands on what the client types and does what it says, until the connection ends. A program that does not read has the client wait. After the
// program's end, or without one, what comes is for nobody.
func (t *terminal) read(p *llmsandbox.Process, typed *io.PipeWriter, gone chan<- struct{}) {
	defer close(gone)
	defer t.conn.Close() //nolint:errcheck // it is not used any more
	t.conn.SetReadLimit(apitypes.MaxTerminalMessage)
	alive := func(string) error { return t.conn.SetReadDeadline(time.Now().Add(pongTime)) }
	t.conn.SetPongHandler(alive)
	for {
		if err := alive(""); err != nil {
			return
		}
		kind, message, err := t.conn.ReadMessage()
		switch {
		case err != nil:
			return
		case kind == websocket.BinaryMessage:
			// It fails where nobody reads it any more.
			_, _ = typed.Write(message)
			continue
		case p == nil:
			continue
		}
		input, err := apitypes.ParseTerminalInput(message)
		if err != nil {
			t.send(&apitypes.TerminalEvent{Problem: &newProblem(http.StatusUnprocessableEntity, "invalid", err.Error()).Problem})
			_ = t.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.ClosePolicyViolation, ""), time.Now().Add(byeTime))
			return
		}
		// Where it fails, the process has ended or is lost, which is told anyway.
		_ = p.Resize(t.ctx, llmsandbox.WinSize{Rows: input.Resize.Rows, Cols: input.Resize.Cols})
	}
}
