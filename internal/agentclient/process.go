package agentclient

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// ErrDetached is returned by a Process after Detach.
var ErrDetached = errors.New("detached from the process, which goes on without this client")

// A Process is a process in the sandbox, from this client's view. Its output
// arrives whether or not a caller waits for its end; when its output is not read,
// it alone comes to a stand. Methods may be called concurrently, but each stream
// must have one reader or writer at a time.
type Process struct {
	client  *Client
	call    *agentproto.Call
	started agentproto.Started
	stdin   stdin
	stdout  output
	stderr  output
	control output

	detached atomic.Bool
	waiting  chan struct{} // holds a token while a caller receives the exit
	exited   chan struct{} // closed once exit and err are set
	exit     agentproto.Exit
	err      error
}

// Start starts a process. When ctx ends before it has started, it is killed; once
// Start has returned, ctx has no more effect.
func (c *Client) Start(ctx context.Context, req agentproto.StartRequest) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call, err := c.conn.Open(agentproto.MethodStart, &req)
	if err != nil {
		return nil, err
	}
	p := c.newProcess(call, req.Stdin || req.Control || req.PTY != nil)
	if _, err := call.Recv(ctx, &p.started); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			c.spawn(p.killOnceStarted)
		}
		return nil, err
	}
	return p, nil
}

// killOnceStarted kills a process that no caller wants any more and whose number is
// not known yet. It ends with the stream at the latest.
func (p *Process) killOnceStarted() {
	defer p.call.Cancel()
	ctx := context.Background()
	if _, err := p.call.Recv(ctx, &p.started); err != nil {
		return // it did not start, or the stream has ended
	}
	// When the stream breaks, the process is left to its timeout and the sandbox's end.
	_ = p.Kill(ctx)
}

// Attach takes over a process that another stream has started. Its output resumes
// at the offsets of the request, see Offsets and ControlOffset. It fails with CodeLost when that is no longer possible.
func (c *Client) Attach(ctx context.Context, req agentproto.AttachRequest) (*Process, error) {
	p := c.newProcess(nil, true)
	call, err := c.open(ctx, agentproto.MethodAttach, &req, &p.started)
	if err != nil {
		return nil, err
	}
	p.call = call
	return p, nil
}

func (c *Client) newProcess(call *agentproto.Call, hasStdin bool) *Process {
	p := &Process{
		client:  c,
		call:    call,
		waiting: make(chan struct{}, 1),
		exited:  make(chan struct{}),
	}
	p.stdin = stdin{p: p, absent: !hasStdin}
	p.stdout = output{p: p, ch: agentproto.ChanOut}
	p.stderr = output{p: p, ch: agentproto.ChanErr}
	p.control = output{p: p, ch: agentproto.ChanControl}
	return p
}

// ID is the agent's number of the process, with which any client can attach to it.
func (p *Process) ID() uint64 { return p.started.ID }

// PID is the process's pid inside the sandbox.
func (p *Process) PID() uint32 { return p.started.PID }

// Done is closed when the process's end has arrived, or the stream is lost: Wait
// then returns at once. Output may still be unread.
func (p *Process) Done() <-chan struct{} { return p.call.Done() }

// Wait returns how the process ended. It does not wait for the output to be read,
// and several goroutines may call it. A lost stream is an error that wraps
// [agentproto.ErrStreamLost]; an end that the agent could not observe has Known false.
func (p *Process) Wait(ctx context.Context) (agentproto.Exit, error) {
	select {
	case <-p.exited:
		return p.exit, p.err
	default:
	}
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	case <-p.exited:
		return p.exit, p.err
	case <-ctx.Done():
		return agentproto.Exit{}, ctx.Err()
	}
	select {
	case <-p.exited: // by the one that waited before
		return p.exit, p.err
	default:
	}
	var exit agentproto.Exit
	final, err := p.call.Recv(ctx, &exit)
	switch {
	case err != nil && errors.Is(err, ctx.Err()):
		return agentproto.Exit{}, err
	case err != nil:
		p.err = p.callErr(err)
	case !final:
		p.err = &agentproto.ProtocolError{Msg: "the agent sent another message where the exit of a process was due"}
	default:
		p.exit = exit
	}
	close(p.exited)
	return p.exit, p.err
}

// Signal sends a signal to the process, or to its group.
func (p *Process) Signal(ctx context.Context, signal uint32, group bool) error {
	return p.client.Signal(ctx, p.ID(), signal, group)
}

// Kill kills the process and everything it started. Its end arrives as always.
func (p *Process) Kill(ctx context.Context) error { return p.client.Kill(ctx, p.ID()) }

// Resize changes the size of the process's terminal.
func (p *Process) Resize(ctx context.Context, size agentproto.WinSize) error {
	return p.client.Resize(ctx, p.ID(), size)
}

// Offsets are how many bytes of the process's whole stdout and stderr have been
// read up to now: where an Attach has to resume so that nothing is lost or doubled.
func (p *Process) Offsets() (out, err uint64) {
	return p.started.OutOffset + p.stdout.read.Load(), p.started.ErrOffset + p.stderr.read.Load()
}

// ControlOffset is what Offsets is, of Control.
func (p *Process) ControlOffset() uint64 { return p.started.ControlOffset + p.control.read.Load() }

// Acknowledge tells the agent what of the output has been read, so that it is not what an Attach
// with FirstKept begins with. Otherwise the agent learns it now and then.
func (p *Process) Acknowledge() { p.call.Acknowledge() }

// Detach lets the process go on without this client. Output that has arrived and
// was not read stays with the agent, for an Attach.
func (p *Process) Detach() {
	p.detached.Store(true)
	p.call.Cancel()
}

// callErr gives the error of a call its meaning for a process.
func (p *Process) callErr(err error) error {
	if p.detached.Load() {
		return ErrDetached
	}
	return err
}
