package agentclient

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeAgent speaks the real protocol; its processes are functions, found by the
// first argument.
type fakeAgent struct {
	programs map[string]func(*fakeProcess)

	mu       sync.Mutex
	requests []agentproto.Message // of the calls without a process, in order
	killed   chan uint64
	logs     func(*agentproto.Call, agentproto.LogsRequest)
	dialled  func([]byte) // when set, gets what a dialled server was sent
}

// fakeProcess is a process while a client is attached to it.
type fakeProcess struct {
	*agentproto.Call
	req    agentproto.StartRequest
	attach agentproto.AttachRequest // when attached rather than started
}

func (p *fakeProcess) started(out, err uint64) {
	p.Send(&agentproto.Started{ID: 7, PID: 42, OutOffset: out, ErrOffset: err})
}

func (a *fakeAgent) ServeCall(c *agentproto.Call) {
	switch c.Method() {
	case agentproto.MethodStart:
		p := &fakeProcess{Call: c}
		if err := c.Request(&p.req); err != nil {
			c.Fail(err)
			return
		}
		program := a.programs[p.req.Argv[0]]
		if program == nil {
			c.Fail(agentproto.Errorf(agentproto.CodeNotFound, "no such program: %s", p.req.Argv[0]))
			return
		}
		program(p)
	case agentproto.MethodAttach:
		p := &fakeProcess{Call: c}
		c.Request(&p.attach)
		a.programs["attached"](p)
	case agentproto.MethodLogs:
		var req agentproto.LogsRequest
		c.Request(&req)
		a.logs(c, req)
	case agentproto.MethodProcesses:
		c.End(&agentproto.ProcessList{Processes: []agentproto.ProcessInfo{{ID: 7, Tag: "tag"}}})
	case agentproto.MethodCount:
		c.End(&agentproto.ProcessCount{Processes: 2})
	case agentproto.MethodSignal:
		a.record(c, new(agentproto.SignalRequest))
	case agentproto.MethodResize:
		a.record(c, new(agentproto.ResizeRequest))
	case agentproto.MethodShutdown:
		a.record(c, new(agentproto.Empty))
	case agentproto.MethodKill:
		req := new(agentproto.KillRequest)
		a.record(c, req)
		a.killed <- req.ID
	case agentproto.MethodDial:
		a.dial(c)
	}
}

func (a *fakeAgent) record(c *agentproto.Call, req agentproto.Message) {
	c.Request(req)
	a.mu.Lock()
	a.requests = append(a.requests, req)
	a.mu.Unlock()
	c.End(&agentproto.Empty{})
}

// dial reaches a server that says what it got once it got all of it.
func (a *fakeAgent) dial(c *agentproto.Call) {
	var req agentproto.DialRequest
	c.Request(&req)
	if req.Port != 80 {
		c.Fail(agentproto.Errorf(agentproto.CodeNotFound, "nothing listens on that port of the sandbox"))
		return
	}
	c.Send(&agentproto.Empty{})
	got, _ := io.ReadAll(input{c})
	if a.dialled != nil {
		a.dialled(got)
	}
	c.Write(agentproto.ChanOut, append([]byte("got "), got...))
	c.CloseWrite(agentproto.ChanOut)
	c.End(&agentproto.Empty{})
}

// input reads what the client sends.
type input struct{ *agentproto.Call }

func (i input) Read(p []byte) (int, error) { return i.Call.Read(agentproto.ChanIn, p) }

// connect returns a client of a and the agent's end of the stream.
func connect(t *testing.T, a *fakeAgent) (*Client, net.Conn) {
	t.Helper()
	if a.killed == nil {
		a.killed = make(chan uint64, 10)
	}
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		agentproto.Server(far, agentproto.Hello{Arch: "fake", CodeUID: 1000}, 0, a)
	}()
	c, err := Connect(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-served
	})
	return c, far
}

// soon is a context that ends before a hanging test is killed.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// start starts a program that must start.
func start(t *testing.T, c *Client, req agentproto.StartRequest) *Process {
	t.Helper()
	p, err := c.Start(soon(t), req)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func argv(args ...string) agentproto.StartRequest { return agentproto.StartRequest{Argv: args} }
