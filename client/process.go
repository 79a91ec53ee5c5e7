package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

// How long a terminal's connection may be silent, on which the server asks three times a minute whether we are there, and how long a message may take.
const (
	silentTime = 90 * time.Second
	sendTime   = 30 * time.Second
)

// A Process is a program of the sandbox that [Sandbox.Start] or [Sandbox.StartRun] has started, or that [Sandbox.AttachProcess] has found. It goes on
// without its client. It is safe for concurrent use. One without a terminal has a connection to the server until it has ended, or Detach was called; when
// the connection ends, it is made again, for a minute, so that a server can be started again meanwhile.
type Process struct {
	sandbox *Sandbox
	id      uint64
	conn    *websocket.Conn // of a terminal; nil: it has none
	leave   func()          // ends the following of one without a terminal
	sending sync.Mutex

	detached sync.Once
	leaving  chan struct{} // closed by Detach
	done     chan struct{} // closed once result and err are set
	result   *llmsandbox.Result
	err      error
}

// Start starts a program with its arguments as [llmsandbox.Sandbox.Start] does, and returns once it runs. ctx bounds the start only: the process ends by
// itself, by Kill or with the sandbox, and goes on without this program. opts may be nil.
//
// The API has of opts what [Sandbox.Exec] has; or Terminal, Stdin and Stdout. Once the process has ended, reading from Stdin may go on until its Read
// returns. With Terminal, Stdin is what is typed, whose end says nothing to the program, and a server lets go of a process whose output is not taken for
// half a minute: see [Process.Wait]. Without it, output that a slow writer has missed is llmsandbox.ErrOutput.
func (s *Sandbox) Start(ctx context.Context, argv []string, opts *llmsandbox.ExecOptions) (*Process, error) {
	opts = cmp.Or(opts, &llmsandbox.ExecOptions{})
	switch {
	case len(argv) == 0 || argv[0] == "":
		return nil, fmt.Errorf("start: %w: give a program and its arguments", llmsandbox.ErrEmptyCommand)
	case opts.Terminal == nil:
		return s.startArgv(ctx, argv, *opts)
	}
	if err := only("ExecOptions", *opts, "Terminal", "Stdin", "Stdout"); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	p, err := s.terminal(ctx, url.Values{
		"command": argv, "cols": {strconv.Itoa(int(opts.Terminal.Cols))}, "rows": {strconv.Itoa(int(opts.Terminal.Rows))},
	}, opts.Stdin, opts.Stdout)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", cut(argv[0], maxLocation), err)
	}
	return p, nil
}

// AttachProcess finds a process that Start or StartRun has started, also in another program, by its number, as [llmsandbox.Sandbox.AttachProcess] does. It
// fails with fs.ErrNotExist when there is none. opts may be nil.
//
// One with a terminal is taken over. Its output begins where the client before has got it; what was on its way to that client may be missing. The API has
// of opts Stdin and Stdout then. One without is not: others that follow it go on, and it is found for as long as the server has its result. The API has all
// of opts but Stdin then, and output that was wanted and is no longer kept is llmsandbox.ErrOutput.
func (s *Sandbox) AttachProcess(ctx context.Context, id uint64, opts *llmsandbox.AttachOutput) (*Process, error) {
	opts = cmp.Or(opts, &llmsandbox.AttachOutput{})
	p, err := s.attachProgram(ctx, id, *opts)
	if errors.Is(err, llmsandbox.ErrNotFound) {
		if err := only("AttachOutput", *opts, "Stdin", "Stdout"); err != nil {
			return nil, fmt.Errorf("attach to process %d: %w", id, err)
		}
		p, err = s.terminal(ctx, url.Values{"process": {strconv.FormatUint(id, 10)}}, opts.Stdin, opts.Stdout)
	}
	if err != nil {
		return nil, fmt.Errorf("attach to process %d: %w", id, err)
	}
	return p, nil
}

func (s *Sandbox) terminal(ctx context.Context, query url.Values, stdin io.Reader, stdout io.Writer) (*Process, error) {
	r, err := s.request(http.MethodGet, "/terminals")
	if err != nil {
		return nil, err
	}
	r.query, r.socket, r.want = query, true, http.StatusSwitchingProtocols
	res, err := s.client.send(ctx, r)
	if err != nil {
		return nil, err
	}
	finish(res.Body) // it has none
	p := &Process{sandbox: s, conn: r.conn, leaving: make(chan struct{}), done: make(chan struct{})}
	p.conn.SetReadLimit(s.client.maxResult)
	p.conn.SetPingHandler(func(text string) error {
		// If it fails, reading from the connection fails, too.
		_ = p.conn.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(sendTime))
		return p.conn.SetReadDeadline(time.Now().Add(silentTime))
	})
	stop := context.AfterFunc(ctx, func() { _ = p.conn.Close() })
	first, _, err := p.next()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		err = r.cutOff(ctx, err)
	case first != nil && first.Problem != nil:
		err = problemError(first.Problem.Status, first.Problem)
	case first == nil || first.Process == 0:
		err = malformed("it does not begin with the number of a process")
	default:
		p.id = first.Process
		go p.follow(r, &forward{w: stdout})
		if stdin != nil {
			go p.feed(stdin)
		}
		return p, nil
	}
	_ = p.conn.Close()
	return nil, err
}

// dial asks for a WebSocket by the transport's means.
func (c *Client) dial(r *request, req *http.Request) (*http.Response, error) {
	via := c.http.Transport
	if via == nil {
		via = http.DefaultTransport
	}
	transport, ok := via.(*http.Transport)
	if !ok {
		return nil, r.neverSent(fmt.Errorf("Options.HTTPClient: %w: for terminals its Transport must be a *http.Transport, and it is a %T", llmsandbox.ErrUnsupported, via)) //nolint:staticcheck // it begins with a name
	}
	dialer := websocket.Dialer{
		NetDialContext: transport.DialContext, NetDialTLSContext: transport.DialTLSContext, Proxy: transport.Proxy, TLSClientConfig: transport.TLSClientConfig.Clone(),
		Subprotocols: []string{apitypes.TerminalProtocol}, Jar: c.http.Jar,
	}
	if dialer.TLSClientConfig != nil {
		dialer.TLSClientConfig.NextProtos = nil // HTTP/1.1
	}
	address := *req.URL
	address.Scheme = map[string]string{"https": "wss", "http": "ws"}[address.Scheme]
	conn, res, err := dialer.DialContext(req.Context(), address.String(), req.Header)
	if err != nil && !errors.Is(err, websocket.ErrBadHandshake) {
		return nil, r.failed(req.Context(), err)
	}
	r.conn = conn
	if err != nil && res.StatusCode == http.StatusSwitchingProtocols {
		return nil, malformed("%w", err)
	}
	return res, nil
}

// cutOff is the error of a WebSocket that ended before all was said.
func (r *request) cutOff(ctx context.Context, err error) error {
	if errors.Is(err, llmsandbox.ErrLost) { // by what was said
		return err
	}
	return r.failed(ctx, err)
}

// next reads an event, or what is shown.
func (p *Process) next() (e *apitypes.TerminalEvent, shown []byte, err error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(silentTime)); err != nil {
		return nil, nil, err
	}
	kind, message, err := p.conn.ReadMessage()
	if err != nil || kind == websocket.BinaryMessage {
		return nil, message, err
	}
	if err := json.Unmarshal(message, &e); err != nil || e == nil {
		return nil, nil, malformed("an event of a terminal: %v", err)
	}
	return e, nil, nil
}

// follow hands on what is shown until the end of the process, or of the connection.
func (p *Process) follow(r *request, stdout *forward) {
	defer close(p.done)
	defer p.conn.Close() //nolint:errcheck // all was said
	f := runFor{sandboxID: p.sandbox.id}
	for {
		e, shown, err := p.next()
		switch {
		case err != nil && ctxend.Closed(p.leaving):
			p.result, p.err = f.failed(r, llmsandbox.ErrDetached)
		case err != nil:
			p.result, p.err = f.failed(r, fmt.Errorf("%w; the process may go on: attach to it", r.cutOff(context.Background(), err)))
		case e == nil:
			stdout.write(string(shown))
			continue
		case e.Problem != nil:
			err := problemError(e.Problem.Status, e.Problem)
			p.result, p.err = f.failed(r, err)
			p.result.Status = llmsandbox.StatusLost // it had begun
		case len(e.Result) > 0:
			p.result, p.err = f.last(r, event{name: "result", data: e.Result})
		default:
			continue // of a later server
		}
		p.err = errors.Join(p.err, stdout.err)
		return
	}
}

// feed sends what is typed.
func (p *Process) feed(stdin io.Reader) {
	for piece := make([]byte, apitypes.MaxTerminalMessage/2); ; {
		n, err := stdin.Read(piece)
		if n > 0 && p.send(websocket.BinaryMessage, piece[:n]) != nil || err != nil {
			return
		}
	}
}

func (p *Process) send(kind int, message []byte) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.conn.WriteMessage(kind, message)
}

// ID is the sandbox's number of the process, by which AttachProcess finds it. It is never used twice. It is 0 of code that has ended before it ran, since it
// was refused or does not compile.
func (p *Process) ID() uint64 { return p.id }

// Done is closed when Wait returns at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns what became of the process once it has ended, as [Sandbox.Exec] does; of one with a terminal without its output. When ctx ends before, it returns no result and
// the context's error, and the process goes on. After llmsandbox.ErrLost it may go on as well, and AttachProcess finds it; llmsandbox.ErrDetached means
// that another client has attached to it.
func (p *Process) Wait(ctx context.Context) (*llmsandbox.Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Resize changes the size of the process's terminal, after what was typed before. That the process has ended is no error, here and in Kill.
func (p *Process) Resize(ctx context.Context, size llmsandbox.WinSize) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.conn == nil {
		return fmt.Errorf("resize the terminal of process %d: %w: it has none", p.id, llmsandbox.ErrInvalid)
	}
	if size.Cols < 1 || size.Rows < 1 || size.Cols > apitypes.MaxTerminalSize || size.Rows > apitypes.MaxTerminalSize {
		return fmt.Errorf("resize the terminal of process %d: %w: rows and columns are from 1 to %d", p.id, llmsandbox.ErrInvalid, apitypes.MaxTerminalSize)
	}
	message, err := json.Marshal(apitypes.TerminalInput{Resize: &apitypes.TerminalSize{Cols: size.Cols, Rows: size.Rows}})
	if err == nil {
		err = p.send(websocket.TextMessage, message)
	}
	select {
	case <-p.done:
		return nil
	default:
		return err
	}
}

// Kill kills the process with all that it has started, and returns once that has ended.
func (p *Process) Kill(ctx context.Context) error {
	if p.conn == nil {
		return p.call(ctx, http.MethodDelete, "", nil)
	}
	err := p.sandbox.ask(ctx, &request{method: http.MethodDelete, path: "/terminals/" + strconv.FormatUint(p.id, 10)}, nil)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// Detach lets the process go on without this Process, whose Wait then returns llmsandbox.ErrDetached, for AttachProcess to take over.
func (p *Process) Detach() {
	p.detached.Do(func() {
		close(p.leaving)
		if p.conn == nil {
			p.leave()
			return
		}
		_ = p.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		_ = p.conn.Close()
	})
	<-p.done
}
