//go:build linux

package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// pipeSize is what the pipes of programs are enlarged to, in bytes. It leaves room
// below the kernel's limit per user, 64 MiB, for more than a hundred programs.
const pipeSize = 256 << 10

func (a *Agent) serveStart(call *agentproto.Call) error {
	p, err := a.begin(call)
	if err != nil {
		return err
	}
	return p.attach(call, [3]uint64{})
}

// begin starts the process that a call asks for.
func (a *Agent) begin(call *agentproto.Call) (*process, error) {
	a.idle.enter()
	defer a.idle.leave()
	var req agentproto.StartRequest
	if err := call.Request(&req); err != nil {
		return nil, err
	}
	if err := a.admit(); err != nil {
		return nil, err
	}
	p, err := a.start(&req)
	if err != nil {
		a.dismiss()
		if a.opts.Files != nil && len(req.RemoveAfter) > 0 {
			err = errors.Join(err, a.opts.Files.RemoveAll(req.RemoveAfter))
		}
		return nil, err
	}
	p.count(p.req.Rest == agentproto.RestNever)
	if a.add(p) {
		go p.kill(agentproto.KilledByRequest)
	}
	p.start()
	return p, nil
}

// start writes the request's files and starts its program.
func (a *Agent) start(req *agentproto.StartRequest) (*process, error) {
	if <-a.prepared; a.prepErr != nil {
		return nil, agentproto.Errorf(agentproto.CodeInternal, "the sandbox could not be prepared: %v", a.prepErr)
	}
	if req.From != 0 {
		return a.fork(req)
	}
	if a.opts.Entrance != nil && !a.entrance(req.Enters) {
		return nil, agentproto.Errorf(agentproto.CodePermission, "a process of this sandbox is forked into others: it runs nothing else")
	}
	l, err := a.prepare(req)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if err := a.writeFiles(req); err != nil {
		return nil, err
	}
	argv, size := req.Argv, req.PTY
	p := a.newProcess(req)
	ends, err := p.openStreams(l, size)
	defer ends.close()
	if err == nil {
		err = p.fork(l)
	}
	if err != nil {
		p.closeStreams()
		return nil, err
	}
	ends.close() // before waiting: the program's ends are its own now
	p.started = time.Now()
	rec, err := readRecord(p.status)
	if err == nil && rec.kind == recStarted {
		p.pid = int(rec.arg)
		p.running = true
		p.budget = p.req.OutputLimit
		a.preferToKill(p.pid)
		return p, nil
	}
	p.closeStreams()
	a.orphans.reap(p.subreaper)
	if err != nil {
		go a.orphans.kill(a.proc)
		return nil, agentproto.Errorf(agentproto.CodeLost, "the program's subreaper was killed while it started it")
	}
	return nil, startError(argv, l.dirName, rec.arg, unix.Errno(rec.value))
}

// entrance reports whether a process may be started in a sandbox of which one enters others: any other of
// its user would have the same power over them.
func (a *Agent) entrance(enters bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.entered
	a.entered = before || enters
	return !before
}

// writeFiles writes the files of a start.
func (a *Agent) writeFiles(req *agentproto.StartRequest) error {
	switch {
	case len(req.Files)+len(req.RemoveAfter) > 0 && a.opts.Files == nil:
		return agentproto.Errorf(agentproto.CodeUnsupported, "this agent does not serve files")
	case len(req.Files) > 0:
		return a.opts.Files.WriteInline(req.Files)
	}
	return nil
}

// newProcess is a process that has not been started.
func (a *Agent) newProcess(req *agentproto.StartRequest) *process {
	p := &process{
		agent:  a,
		tty:    req.PTY != nil,
		reaped: make(chan struct{}, 1),
		gone:   make(chan struct{}),
		exited: make(chan struct{}),
	}
	p.req = *req
	p.req.Files, p.req.Env = nil, nil
	p.oomBefore, _ = a.oomKills()
	return p
}

// fork forks the subreaper with a pipe for its records.
func (p *process) fork(l *launch) error {
	theirs, err := p.openStatus()
	if err != nil {
		return err
	}
	defer unix.Close(theirs)
	l.status = uintptr(theirs)
	l.keepOnly()
	p.subreaper, err = p.agent.orphans.forking(func() (int, error) {
		return p.agent.killer.before(func() (int, error) { return p.agent.spawner.fork(l) })
	})
	if err != nil {
		return resourceError("fork", err)
	}
	return nil
}

// openStatus makes the pipe of the subreaper's records and returns its end.
func (p *process) openStatus() (theirs int, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return -1, resourceError("make a pipe", err)
	}
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		unix.Close(pipe[0])
		unix.Close(pipe[1])
		return -1, resourceError("prepare a pipe", err)
	}
	p.status = os.NewFile(uintptr(pipe[0]), "status")
	return pipe[1], nil
}

// childEnds are the descriptors that only the program keeps.
type childEnds []int

func (c *childEnds) close() {
	for _, fd := range *c {
		unix.Close(fd)
	}
	*c = nil
}

// openStreams makes the program's stdin, stdout and stderr, and its control pipes.
func (p *process) openStreams(l *launch, size *agentproto.WinSize) (ends *childEnds, err error) {
	ends = new(childEnds)
	if size != nil {
		master, slave, err := openPTY(*size)
		if err != nil {
			return ends, err
		}
		*ends = append(*ends, slave)
		l.stdio = [3]uintptr{uintptr(slave), uintptr(slave), uintptr(slave)}
		l.ctty = true
		p.stdin = master
		p.outputs[0], err = newOutput(master, true, p.agent.opts.BufferSize, p.grant)
		return ends, err
	}
	l.stdio[0] = uintptr(p.agent.null)
	if p.req.Stdin {
		ours, theirs, err := newPipe(true)
		if err != nil {
			return ends, err
		}
		p.stdin = ours
		*ends = append(*ends, theirs)
		l.stdio[0] = uintptr(theirs)
	}
	if l.stdio[1], err = p.openOutput(ends, 0, p.grant); err != nil {
		return ends, err
	}
	if p.req.Merge {
		l.stdio[2] = l.stdio[1]
	} else if l.stdio[2], err = p.openOutput(ends, 1, p.grant); err != nil {
		return ends, err
	}
	if p.req.Control {
		return ends, p.openControl(l, ends)
	}
	return ends, nil
}

// openOutput makes the pipe of one of the program's outputs and returns its end.
func (p *process) openOutput(ends *childEnds, i int, grant func(int) int) (uintptr, error) {
	ours, theirs, err := newPipe(false)
	if err != nil {
		return 0, err
	}
	*ends = append(*ends, theirs)
	if p.outputs[i], err = newOutput(ours, false, p.agent.opts.BufferSize, grant); err != nil {
		ours.Close()
		return 0, err
	}
	return uintptr(theirs), nil
}

// openControl makes the pipes that become the program's descriptors 3 and 4; those of a zygote
// are a socket and a pipe.
func (p *process) openControl(l *launch, ends *childEnds) error {
	l.zygote = p.req.Forks
	open := p.openRequests
	switch {
	case p.req.Forks:
		open = p.openZygote
	case p.req.Enters:
		open = func(l *launch, ends *childEnds) error {
			socket := p.agent.opts.Entrance.Socket
			*ends = append(*ends, socket) // there is one such process
			l.control[0] = uintptr(socket)
			return nil
		}
	}
	err := open(l, ends)
	if err != nil {
		return err
	}
	unlimited := func(n int) int { return n }
	if l.control[1], err = p.openOutput(ends, 2, unlimited); err == nil {
		p.outputs[2].ring.keep = 0 // no log has it
	}
	l.hasControl = true
	return err
}

// openRequests makes the pipe that becomes descriptor 3.
func (p *process) openRequests(l *launch, ends *childEnds) error {
	ours, theirs, err := newPipe(true)
	if err != nil {
		return err
	}
	*ends = append(*ends, theirs)
	l.control[0] = uintptr(theirs)
	if len(p.req.Feed) > 0 {
		p.fed, p.req.Feed = ours, nil
	} else {
		p.stdin = ours
	}
	return nil
}

// newPipe makes a pipe. Our end does not block: the runtime's poller serves the one that we
// write, a gate the one that we read. The program's end blocks, as programs expect.
func newPipe(weWrite bool) (ours *os.File, theirs int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, resourceError("make a pipe", err)
	}
	own, other := fds[0], fds[1]
	if weWrite {
		own, other = other, own
	}
	// More than the user may have is no failure: the pipe works, with more waiting.
	_, _ = unix.FcntlInt(uintptr(own), unix.F_SETPIPE_SZ, pipeSize)
	if weWrite {
		err = unix.SetNonblock(own, true)
	}
	ours = os.NewFile(uintptr(own), "pipe") // the poller serves what does not block
	if !weWrite {
		err = unix.SetNonblock(own, true)
	}
	if err != nil {
		ours.Close()
		unix.Close(other)
		return nil, -1, resourceError("prepare a pipe", err)
	}
	return ours, other, nil
}

// closeStreams closes the agent's ends when the program could not be started.
func (p *process) closeStreams() {
	files := []io.Closer{}
	for _, o := range p.outputs {
		if o != nil {
			o.close()
		}
	}
	if p.stdin != nil && !p.tty {
		files = append(files, p.stdin)
	}
	if p.status != nil {
		files = append(files, p.status)
	}
	if p.zygote != nil {
		files = append(files, p.zygote.socket)
	}
	if p.fed != nil {
		files = append(files, p.fed)
	}
	for _, f := range files {
		f.Close()
	}
}

// resourceError is for what fails when a limit is reached.
func resourceError(what string, err error) error {
	code := agentproto.CodeInternal
	hint := ""
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		code = agentproto.CodeBusy
		hint = "; a limit of the sandbox is reached: end some of its processes or raise the limit"
	}
	return &agentproto.Error{Code: code, Msg: fmt.Sprintf("%s: %v%s", what, err, hint)}
}

// steps names what failed, by the subreaper's step numbers.
var steps = [...]string{
	stepFork:       "fork the program",
	stepStdio:      "set up its streams",
	stepTTY:        "give it its terminal",
	stepRlimit:     "set its resource limits",
	stepUsers:      "enter its user namespace",
	stepGroups:     "drop its groups",
	stepGID:        "set its gid",
	stepUID:        "set its uid",
	stepCaps:       "drop its capabilities",
	stepDir:        "enter its working directory",
	stepNoNewPrivs: "set no_new_privs",
	stepLandlock:   "restrict it with Landlock",
	stepControl:    "set up its control pipes",
	stepSeccomp:    "load its seccomp filter",
	stepExec:       "execute it",
}

// startError reports why a program could not be started.
func startError(argv []string, dir string, step int32, errno unix.Errno) error {
	switch step {
	case stepDir:
		return dirError(dir, errno)
	case stepExec:
		return execError(argv[0], errno)
	case stepFork:
		return resourceError("fork "+argv[0], errno)
	}
	name := "start it"
	if step >= 0 && int(step) < len(steps) {
		name = steps[step]
	}
	code := agentproto.CodeInternal
	if errno == unix.EPERM || errno == unix.EACCES {
		code = agentproto.CodePermission
	}
	return agentproto.Errorf(code, "start %q: %s: %v", argv[0], name, errno)
}

func dirError(dir string, errno unix.Errno) error {
	var why string
	switch errno {
	case unix.ENOENT:
		why = "does not exist: create it first, or choose another"
	case unix.ENOTDIR:
		why = "is not a directory: choose another"
	case unix.EACCES:
		why = "may not be entered by the program's user: change its mode, or choose another"
	default:
		why = "cannot be entered: " + errno.Error()
	}
	return agentproto.Errorf(agentproto.CodeWorkdir, "working directory %q %s", dir, why)
}

func execError(program string, errno unix.Errno) error {
	switch errno {
	case unix.ENOENT, unix.ENOTDIR:
		return agentproto.Errorf(agentproto.CodeNotFound, "program %q not found (or the interpreter in its first line is missing)", program)
	case unix.EACCES, unix.EPERM:
		return agentproto.Errorf(agentproto.CodeNotExecutable, "program %q may not be executed by the program's user: %v", program, errno)
	case unix.ENOEXEC:
		return agentproto.Errorf(agentproto.CodeNotExecutable, "program %q is neither a program of this machine nor a script with a #! line", program)
	case unix.E2BIG:
		return agentproto.Errorf(agentproto.CodeTooLarge, "the arguments and the environment of %q are longer than the kernel takes: pass them in a file", program)
	case unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE:
		return resourceError("execute "+program, errno)
	}
	return agentproto.Errorf(agentproto.CodeNotExecutable, "program %q cannot be executed: %v", program, errno)
}
