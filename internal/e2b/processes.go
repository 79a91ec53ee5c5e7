package e2b

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
	"github.com/llmsandbox/llmsandbox/internal/limit"
	"github.com/llmsandbox/llmsandbox/internal/service"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

const (
	// maxPrograms bounds those of a sandbox that run at a time: what each writes is in the server's memory up to the output limit.
	maxPrograms = 64
	// maxEnded bounds those that have ended and are still known, which takes little.
	maxEnded = 256
	// endedTime is how long they are.
	endedTime = 30 * time.Second
	// maxStreams bounds the requests of a sandbox that follow its programs or wait to give them input.
	maxStreams = 256
	// pieceSize and terminalPieceSize are the most output that is in one event.
	pieceSize, terminalPieceSize = 32 << 10, 16 << 10

	rootUser, rootHome = "root", "/root"
)

// processes are the programs that SDKs have started in a sandbox.
type processes struct {
	mu       sync.Mutex
	running  []*program // the oldest first
	ended    []*program // the first to end first
	starting int
	streams  int
}

// A program is one of them. All but what mu guards is set before others know of it.
type program struct {
	info     *process.ProcessInfo
	process  *llmsandbox.Process
	input    *service.Input // nil: it has none
	terminal bool

	done  chan struct{}                  // closed once what follows is set
	at    time.Time                      // when it ended
	end   *process.ProcessEvent_EndEvent // nil: what became of it is not known
	timed bool                           // its timeout ended it

	mu        sync.Mutex
	followers []*follower
}

// A follower gets what a program writes. Where it does not take it, the program waits.
type follower struct {
	events chan *process.ProcessEvent
	gone   chan struct{}
}

func (p *program) join() *follower {
	f := &follower{make(chan *process.ProcessEvent), make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = append(p.followers, f)
	return f
}

func (p *program) leave(f *follower) {
	close(f.gone)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = slices.DeleteFunc(slices.Clone(p.followers), func(other *follower) bool { return other == f })
}

// An output is one of a program's: it hands on what is written to those who follow the program, and drops it where nobody does.
type output struct {
	program *program
	most    int
	event   func([]byte) *process.ProcessEvent_DataEvent
}

// Write implements io.Writer. It never fails.
func (o *output) Write(b []byte) (int, error) {
	for piece := range slices.Chunk(b, o.most) {
		o.program.mu.Lock()
		followers := o.program.followers // which leave copies
		o.program.mu.Unlock()
		if len(followers) == 0 {
			continue
		}
		e := &process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: o.event(bytes.Clone(piece))}}
		for _, f := range followers {
			select {
			case f.events <- e:
			case <-f.gone:
			}
		}
	}
	return len(b), nil
}

// enter takes the place of a stream, until leave is called.
func (ps *processes) enter() (leave func(), err error) {
	return ps.take(&ps.streams, nil, maxStreams, "streams that follow its programs or give them input")
}

func (ps *processes) take(n *int, also *[]*program, most int, of string) (leave func(), err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if also != nil && *n+len(*also) >= most || *n >= most {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the sandbox has %d %s, which is the most: end some first", most, of))
	}
	*n++
	return sync.OnceFunc(func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		*n--
	}), nil
}

// begin takes the place of a program that is being started, until leave is called.
func (ps *processes) begin() (leave func(), err error) {
	return ps.take(&ps.starting, &ps.running, maxPrograms, "programs that run")
}

func (ps *processes) add(p *program) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.running = append(ps.running, p)
}

// over takes a program for one that has ended.
func (ps *processes) over(p *program) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	i := slices.Index(ps.running, p)
	if i < 0 {
		return
	}
	ps.running = slices.Delete(ps.running, i, i+1)
	p.at = time.Now()
	if ps.ended = append(ps.ended, p); len(ps.ended) > maxEnded {
		ps.ended = slices.Delete(ps.ended, 0, 1)
	}
}

// find finds a program, the latest of those it may be; one that has ended only where ended says so.
func (ps *processes) find(by *process.ProcessSelector, ended bool) (*program, error) {
	var is func(*program) bool
	var what string
	switch by := by.GetSelector().(type) {
	case *process.ProcessSelector_Pid:
		is = func(p *program) bool { return p.info.GetPid() == by.Pid }
		what = "pid " + strconv.FormatUint(uint64(by.Pid), 10)
	case *process.ProcessSelector_Tag:
		is = func(p *program) bool { return p.info.Tag != nil && p.info.GetTag() == by.Tag }
		what = "tag " + strconv.Quote(by.Tag)
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("process: give its pid or its tag"))
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.ended = slices.DeleteFunc(ps.ended, func(p *program) bool { return time.Since(p.at) > endedTime })
	lists := [][]*program{ps.running}
	if ended {
		lists = append(lists, ps.ended)
	}
	for _, list := range lists {
		for _, p := range slices.Backward(list) {
			if is(p) {
				return p, nil
			}
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("process with "+what+" not found"))
}

// A processService answers for the programs of sandboxes.
type processService struct{ *Server }

func (s *Server) processRoutes(mux *http.ServeMux) {
	p, procedures := processService{s}, http.NewServeMux()
	unary(procedures, processPath+"List", p.List)
	streaming(procedures, processPath+"Connect", p.Connect)
	streaming(procedures, processPath+"Start", p.Start)
	unary(procedures, processPath+"Update", p.Update)
	procedures.Handle(processPath+"StreamInput", connect.NewClientStreamHandler(processPath+"StreamInput", p.StreamInput, rpcOptions))
	unary(procedures, processPath+"SendInput", p.SendInput)
	unary(procedures, processPath+"SendSignal", p.SendSignal)
	unary(procedures, processPath+"CloseStdin", p.CloseStdin)
	mux.HandleFunc(processPath, func(w http.ResponseWriter, r *http.Request) {
		// A client that sends input may be waited for as long as the sandbox lives.
		control := http.NewResponseController(w)
		stop := context.AfterFunc(targetOf(r.Context()).live.ctx, func() { _ = control.SetReadDeadline(time.Now()) })
		defer stop()
		procedures.ServeHTTP(w, r)
	})
}

// List serves the procedure of that name.
func (processService) List(ctx context.Context, _ *connect.Request[process.ListRequest]) (*connect.Response[process.ListResponse], error) {
	ps := &targetOf(ctx).live.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	list := &process.ListResponse{}
	for _, p := range ps.running {
		list.Processes = append(list.Processes, p.info)
	}
	return connect.NewResponse(list), nil
}

// Start serves the procedure of that name.
func (s processService) Start(ctx context.Context, req *connect.Request[process.StartRequest], stream *connect.ServerStream[process.StartResponse]) error {
	t := targetOf(ctx)
	leave, err := t.live.processes.enter()
	if err != nil {
		return err
	}
	defer leave()
	p := &program{done: make(chan struct{}), terminal: req.Msg.GetPty() != nil}
	f := p.join() // before it writes
	defer p.leave(f)
	if err := s.start(ctx, t, p, req.Msg, userOf(req.Header())); err != nil {
		return s.rpcError(ctx, err)
	}
	err = s.follow(ctx, t, p, f, keepaliveOf(req.Header()), func(e *process.ProcessEvent) error { return stream.Send(&process.StartResponse{Event: e}) })
	if err == nil && p.timed {
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the process took longer than its timeout and was killed"))
	}
	return err
}

// Connect serves the procedure of that name.
func (s processService) Connect(ctx context.Context, req *connect.Request[process.ConnectRequest], stream *connect.ServerStream[process.ConnectResponse]) error {
	t := targetOf(ctx)
	leave, err := t.live.processes.enter()
	if err != nil {
		return err
	}
	defer leave()
	p, err := t.live.processes.find(req.Msg.GetProcess(), true)
	if err != nil {
		return err
	}
	f := p.join()
	defer p.leave(f)
	send := func(e *process.ProcessEvent) error { return stream.Send(&process.ConnectResponse{Event: e}) }
	if err := s.follow(ctx, t, p, f, keepaliveOf(req.Header()), send); err != nil || !p.timed {
		return err
	}
	return send(&process.ProcessEvent{Event: &process.ProcessEvent_End{End: p.end}})
}

// start starts a program. Its client's going away ends neither that nor the program.
func (s processService) start(ctx context.Context, t *target, p *program, in *process.StartRequest, user string) error {
	if err := s.service.Admit(ctx, t.project); err != nil {
		return err
	}
	if err := s.checkLine(ctx, in.GetProcess()); err != nil {
		return err
	}
	leave, err := t.live.processes.begin()
	if err != nil {
		return err
	}
	defer leave()
	home := t.sandbox.Workdir()
	opts := &llmsandbox.ExecOptions{KeepChildren: true, Timeout: llmsandbox.Unlimited} // as a terminal's: the sandbox's lifetime bounds it
	has := setupOf(t.sandbox.Labels())
	if user = cmp.Or(user, has.User, ordinaryUser); user != ordinaryUser {
		opts.User = user
		// Not every sandbox that has root has a home for it. A root without power over the files of others may not even enter it.
		o := s.service.Sandbox()
		if _, err := t.sandbox.Stat(ctx, rootHome); user == rootUser && err == nil && (o.Sudo || o.User != "") {
			home = rootHome
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		opts.Timeout = max(time.Until(deadline), limit.MinTimeout)
	}
	config := in.GetProcess()
	opts.Env = map[string]string{
		"HOME": home, "USER": user, "LOGNAME": user, "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": outerID(t.id),
	}
	for name, value := range config.GetEnvs() {
		opts.Env[name] = value
	}
	opts.Dir = expand(home, cmp.Or(config.GetCwd(), has.Workdir))
	stdout := &output{p, pieceSize, func(b []byte) *process.ProcessEvent_DataEvent {
		return &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stdout{Stdout: b}}
	}}
	opts.Stdout, opts.Stderr = stdout, &output{p, pieceSize, func(b []byte) *process.ProcessEvent_DataEvent {
		return &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stderr{Stderr: b}}
	}}
	if p.terminal {
		size, err := winSize(in.GetPty())
		if err != nil {
			return err
		}
		opts.Terminal = &llmsandbox.WinSize{Rows: cmp.Or(size.Rows, 24), Cols: cmp.Or(size.Cols, 80)}
		stdout.most, stdout.event = terminalPieceSize, func(b []byte) *process.ProcessEvent_DataEvent {
			return &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Pty{Pty: b}}
		}
	}
	if p.terminal || in.Stdin == nil || in.GetStdin() {
		p.input = service.NewInput()
		opts.Stdin = p.input
	}
	starting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(t.live.ctx, cancel)()
	p.process, err = t.sandbox.Start(starting, append([]string{config.GetCmd()}, config.GetArgs()...), opts)
	if err != nil {
		if p.input != nil {
			p.input.Close()
		}
		return s.startError(ctx, t, config, opts, err)
	}
	p.info = &process.ProcessInfo{Config: config, Pid: uint32(p.process.PID()), Tag: in.Tag}
	t.live.processes.add(p)
	return s.background(func() { s.watch(t, p) })
}

// watch waits for a program's end.
func (s processService) watch(t *target, p *program) {
	if p.input != nil {
		defer p.input.Close()
	}
	select {
	case <-p.process.Done():
	case <-t.live.ctx.Done():
		return
	}
	res, err := p.process.Wait(t.live.ctx)
	if err == nil {
		p.end, p.timed = endOf(res), res.Status == llmsandbox.StatusTimeout
		s.service.Ran(t.project, t.id)
	}
	t.live.processes.over(p)
	close(p.done)
}

// endOf is what became of a program, in the words of Go.
func endOf(res *llmsandbox.Result) *process.ProcessEvent_EndEvent {
	end := &process.ProcessEvent_EndEvent{ExitCode: int32(res.ExitCode), Exited: true, Status: fmt.Sprintf("exit status %d", res.ExitCode)}
	if res.Signal != "" {
		end.Exited, end.Status = false, "signal: "+strings.ToLower(res.Signal)
		if n, ok := signame.Number(res.Signal); ok {
			end.Status = "signal: " + syscall.Signal(n).String()
		}
	}
	if res.Status != llmsandbox.StatusOK {
		why := valid(cmp.Or(res.Reason, end.Status))
		end.Error = &why
	}
	return end
}

// expand is a path that a client gives, for which home is that of its user.
func expand(home, p string) string {
	switch {
	case p == "~":
		return home
	case strings.HasPrefix(p, "~/"):
		p = p[2:]
	case path.IsAbs(p):
		return path.Clean(p)
	}
	return path.Join(home, p)
}

func winSize(pty *process.PTY) (llmsandbox.WinSize, error) {
	rows, cols := pty.GetSize().GetRows(), pty.GetSize().GetCols()
	if rows > math.MaxUint16 || cols > math.MaxUint16 {
		return llmsandbox.WinSize{}, connect.NewError(connect.CodeInvalidArgument, errors.New("pty: no terminal is so large"))
	}
	return llmsandbox.WinSize{Rows: uint16(rows), Cols: uint16(cols)}, nil
}

// startError is why a program could not be started.
func (s processService) startError(ctx context.Context, t *target, config *process.ProcessConfig, opts *llmsandbox.ExecOptions, err error) error {
	why := valid(err.Error())
	switch {
	case errors.Is(err, llmsandbox.ErrWorkdir):
		if _, missing := t.sandbox.Stat(ctx, opts.Dir); errors.Is(missing, fs.ErrNotExist) {
			why = fmt.Sprintf("cwd '%s' does not exist", valid(opts.Dir))
		}
	case opts.User != "" && !errors.Is(err, llmsandbox.ErrLost) && !isGone(err):
		// A program that is not there is said to be in the same text.
		return connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("invalid username: '%s': %s", valid(opts.User), why))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, llmsandbox.ErrEmptyCommand):
		why = fmt.Sprintf("error starting process '%s': %s", config.GetCmd(), why)
	default:
		return err
	}
	return connect.NewError(connect.CodeInvalidArgument, errors.New(why))
}

// follow sends what happens to a program, from its start event to its end, but the end by its timeout.
func (s processService) follow(ctx context.Context, t *target, p *program, f *follower, every time.Duration, send func(*process.ProcessEvent) error) error {
	if err := send(&process.ProcessEvent{Event: &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: p.info.GetPid()}}}); err != nil {
		return err
	}
	alive := time.NewTicker(every)
	defer alive.Stop()
	for {
		var e *process.ProcessEvent
		select {
		case e = <-f.events:
		case <-alive.C:
			e = &process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}}
		case <-p.done:
			switch {
			case p.end == nil:
				t.cut(ctx)
			case p.timed:
				return nil
			}
			return send(&process.ProcessEvent{Event: &process.ProcessEvent_End{End: p.end}})
		case <-t.live.ctx.Done():
			// A stream that comes to its end has clients take that for the program's. One that breaks has them ask whether the sandbox lives.
			panic(http.ErrAbortHandler)
		case <-ctx.Done():
			if t.live.ctx.Err() != nil {
				panic(http.ErrAbortHandler)
			}
			return ctx.Err()
		}
		if err := send(e); err != nil {
			return err
		}
	}
}

// Update serves the procedure of that name.
func (s processService) Update(ctx context.Context, req *connect.Request[process.UpdateRequest]) (*connect.Response[process.UpdateResponse], error) {
	p, err := targetOf(ctx).live.processes.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if req.Msg.GetPty() != nil {
		if !p.terminal {
			return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("the process has no pty"))
		}
		size, err := winSize(req.Msg.GetPty())
		if err != nil {
			return nil, err
		}
		if err := p.process.Resize(ctx, size); err != nil {
			return nil, s.rpcError(ctx, err)
		}
	}
	return connect.NewResponse(&process.UpdateResponse{}), nil
}

// give gives a program input, and returns once that is on its way.
func (processService) give(ctx context.Context, p *program, in *process.ProcessInput) error {
	data, pty := in.GetStdin(), false
	switch in.GetInput().(type) {
	case *process.ProcessInput_Stdin:
	case *process.ProcessInput_Pty:
		data, pty = in.GetPty(), true
	default:
		return connect.NewError(connect.CodeInvalidArgument, errors.New("input: give stdin or pty"))
	}
	switch {
	case pty && !p.terminal:
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("the process has no pty: its input is stdin"))
	case !pty && p.terminal:
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("the process has a pty: its input is pty, not stdin"))
	case p.input == nil:
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("stdin not enabled: start the process with stdin"))
	}
	err := p.input.Write(ctx, p.process.Done(), data, false)
	if errors.Is(err, service.ErrInputEnded) {
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("stdin is closed, or the process has ended"))
	}
	return err // nil, or the context's
}

// SendInput serves the procedure of that name.
func (s processService) SendInput(ctx context.Context, req *connect.Request[process.SendInputRequest]) (*connect.Response[process.SendInputResponse], error) {
	ps := &targetOf(ctx).live.processes
	leave, err := ps.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := ps.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if err := s.give(ctx, p, req.Msg.GetInput()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&process.SendInputResponse{}), nil
}

// StreamInput serves the procedure of that name.
func (s processService) StreamInput(ctx context.Context, stream *connect.ClientStream[process.StreamInputRequest]) (*connect.Response[process.StreamInputResponse], error) {
	ps := &targetOf(ctx).live.processes
	leave, err := ps.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var p *program
	for stream.Receive() {
		switch e := stream.Msg().GetEvent().(type) {
		case *process.StreamInputRequest_Start:
			p, err = ps.find(e.Start.GetProcess(), false)
		case *process.StreamInputRequest_Data:
			if p == nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the first message must be start, which names the process"))
			}
			err = s.give(ctx, p, e.Data.GetInput())
		}
		if err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&process.StreamInputResponse{}), nil
}

// SendSignal serves the procedure of that name.
func (s processService) SendSignal(ctx context.Context, req *connect.Request[process.SendSignalRequest]) (*connect.Response[process.SendSignalResponse], error) {
	ps := &targetOf(ctx).live.processes
	p, err := ps.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	switch req.Msg.GetSignal() {
	case process.Signal_SIGNAL_SIGKILL:
		// All that it has started goes, too. A follower that does not read holds up the news, but not the end.
		if err = p.process.Kill(ctx); err == nil {
			ps.over(p)
		}
	case process.Signal_SIGNAL_SIGTERM:
		err = p.process.Signal(ctx, "SIGTERM")
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("signal %v: only SIGKILL and SIGTERM can be sent", req.Msg.GetSignal()))
	}
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return connect.NewResponse(&process.SendSignalResponse{}), nil
}

// CloseStdin serves the procedure of that name.
func (processService) CloseStdin(ctx context.Context, req *connect.Request[process.CloseStdinRequest]) (*connect.Response[process.CloseStdinResponse], error) {
	p, err := targetOf(ctx).live.processes.find(req.Msg.GetProcess(), false)
	switch {
	case err != nil:
		return nil, err
	case p.terminal:
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("the input of a pty cannot be closed: send Ctrl+D (0x04)"))
	case p.input != nil:
		p.input.Close()
	}
	return connect.NewResponse(&process.CloseStdinResponse{}), nil
}
