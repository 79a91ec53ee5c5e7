//go:build linux

package guest

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/forward"
)

// helloPatience is how long a client that has connected may take to say hello.
const helloPatience = 30 * time.Second

// ServeConn serves one stream until it ends. Any number may be served at once.
// Processes live on when it ends. The client's hello may take as long as patience; 0
// is any time.
func (a *Agent) ServeConn(rwc io.ReadWriteCloser, patience time.Duration) error {
	a.streams.Add(1)
	defer a.streams.Done()
	return agentproto.Server(rwc, a.hello, patience, a)
}

// ServeListener accepts streams on a listening unix socket until accepting fails.
// Each is first given to admit, which may be nil, refuses it by an error, and
// returns what is called when the stream has ended. It waits for the streams to end.
func (a *Agent) ServeListener(fd int, admit func(*os.File) (leave func(), err error)) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("prepare the listening socket: %w", err)
	}
	unix.CloseOnExec(fd)
	listener := os.NewFile(uintptr(fd), "listener")
	defer listener.Close()
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		conn, err := forward.Accept(raw, "stream")
		if err != nil {
			return fmt.Errorf("accept a stream: %w", err)
		}
		streams.Go(func() {
			if admit != nil {
				leave, err := admit(conn)
				if err != nil {
					conn.Close()
					return
				}
				defer leave()
			}
			// The client sees why its own stream ended.
			_ = a.ServeConn(conn, helloPatience)
		})
	}
}

// ServeCall serves one call of a client.
func (a *Agent) ServeCall(call *agentproto.Call) {
	defer a.idle.during(call.Method())()
	var err error
	switch call.Method() {
	case agentproto.MethodStart:
		err = a.serveStart(call)
	case agentproto.MethodAttach:
		err = a.serveAttach(call)
	case agentproto.MethodLogs:
		err = a.serveLogs(call)
	case agentproto.MethodProcesses:
		err = call.End(a.list())
	case agentproto.MethodCount:
		err = a.serveCount(call)
	case agentproto.MethodSignal:
		err = a.serveSignal(call)
	case agentproto.MethodKill:
		err = a.serveKill(call)
	case agentproto.MethodResize:
		err = a.serveResize(call)
	case agentproto.MethodDeadline:
		err = a.serveDeadline(call)
	case agentproto.MethodPauseTimers:
		err = a.servePause(call)
	case agentproto.MethodResumeTimers:
		err = a.serveResume(call)
	case agentproto.MethodBusy:
		<-call.Done()
	case agentproto.MethodShutdown:
		a.serveShutdown(call)
	case agentproto.MethodDial:
		err = a.forward.ServeDial(call)
	case agentproto.MethodListen:
		err = a.forward.ServeListen(call)
	case agentproto.MethodSockets:
		err = a.forward.ServeSockets(call)
	case agentproto.MethodAccept:
		err = a.forward.ServeAccept(call)
	default:
		if a.opts.Files != nil && a.opts.Files.ServeCall(call) {
			return
		}
		err = agentproto.Errorf(agentproto.CodeUnsupported, "this agent does not know method %d: it may be older than the client", call.Method())
	}
	if err != nil {
		// Fails when the call or the stream has ended: no client listens then.
		_ = call.Fail(err)
	}
}

func (a *Agent) serveSignal(call *agentproto.Call) error {
	var req agentproto.SignalRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := a.find(req.ID)
	if err != nil {
		return err
	}
	if req.Signal == 0 || req.Signal > 64 {
		return agentproto.Errorf(agentproto.CodeBadRequest, "signal %d does not exist: signals are 1 to 64", req.Signal)
	}
	if err := p.signal(unix.Signal(req.Signal), req.Group); err != nil {
		return err
	}
	return call.End(&agentproto.Empty{})
}

// signal sends a signal to the main process, which as long as it has not been
// reported as ended is the process with that pid.
func (p *process) signal(sig unix.Signal, group bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid := p.pid
	if group {
		pid = -pid
	}
	if !p.running {
		return agentproto.Errorf(agentproto.CodeNotFound, "process %d has ended", p.id)
	}
	if err := unix.Kill(pid, sig); err != nil {
		return agentproto.Errorf(agentproto.CodeNotFound, "signal process %d: %v", p.id, err)
	}
	return nil
}

func (a *Agent) serveKill(call *agentproto.Call) error {
	var req agentproto.KillRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := a.find(req.ID)
	if err != nil {
		return err
	}
	if req.AfterMillis > 0 {
		p.killAfter(req.AfterMillis)
	} else {
		p.kill(agentproto.KilledByRequest)
	}
	return call.End(&agentproto.Empty{})
}

func (a *Agent) serveResize(call *agentproto.Call) error {
	var req agentproto.ResizeRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := a.find(req.ID)
	if err != nil {
		return err
	}
	if err := p.resize(req.Size); err != nil {
		return err
	}
	return call.End(&agentproto.Empty{})
}

func (a *Agent) serveShutdown(call *agentproto.Call) {
	a.Shutdown()
	_ = call.End(&agentproto.Empty{}) // a failure: the client has disconnected already
	a.quitOnce.Do(func() { go a.linger() })
}

// lingerTime is how long clients may take to read the last answers.
const lingerTime = 200 * time.Millisecond

// linger lets the agent end when its clients have left, or soon.
func (a *Agent) linger() {
	left := make(chan struct{})
	go func() { a.streams.Wait(); close(left) }()
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
	}
	close(a.quit)
}
