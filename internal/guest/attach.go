//go:build linux

package guest

import (
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// An attachment is a call that gets a process's output and end.
type attachment struct {
	call *agentproto.Call
	done chan struct{} // closed when the call has let go of the process
}

func (a *Agent) serveAttach(call *agentproto.Call) error {
	var req agentproto.AttachRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := a.find(req.ID)
	if err != nil {
		return err
	}
	return p.attach(call, [3]uint64{req.OutOffset, req.ErrOffset, req.ControlOffset})
}

// outputChannel is the channel of the output with that index.
func outputChannel(i int) agentproto.Channel { return agentproto.ChanOut + agentproto.Channel(i) }

// attach gives the process to a call, in the place of the one it had, and returns
// when the call has ended.
func (p *process) attach(call *agentproto.Call, offsets [3]uint64) error {
	att := &attachment{call: call, done: make(chan struct{})}
	defer close(att.done)
	if err := p.takeOver(att, &offsets); err != nil {
		return err
	}
	err := call.Send(&agentproto.Started{ID: p.id, PID: uint32(p.pid), OutOffset: offsets[0], ErrOffset: offsets[1], ControlOffset: offsets[2]})
	if err == nil {
		p.deliver(call, offsets)
	}
	p.mu.Lock()
	if p.att == att {
		p.att = nil
	}
	p.mu.Unlock()
	return nil
}

// letGoWait is how long a stream that no client reads may keep a process from a client
// that attaches to it. A client that lives reads always.
const letGoWait = 5 * time.Second

// takeOver gives the process to att, and sets the offsets that are FirstKept.
func (p *process) takeOver(att *attachment, offsets *[3]uint64) error {
	p.attaching.Lock()
	defer p.attaching.Unlock()
	if err := p.resumable(*offsets); err != nil {
		return err // and the process stays with the call that has it
	}
	p.mu.Lock()
	old := p.att
	p.mu.Unlock()
	if old != nil {
		timer := time.AfterFunc(letGoWait, old.call.Hangup)
		defer timer.Stop()
		// It may have ended already.
		_ = old.call.Fail(agentproto.Errorf(agentproto.CodeCancelled, "another client has attached to the process"))
		p.wake()
		<-old.done
	}
	for i, o := range p.outputs {
		if offsets[i] == agentproto.FirstKept {
			offsets[i], _ = o.bounds()
		}
	}
	if err := p.resumable(*offsets); err != nil {
		return err // the call before has released more meanwhile
	}
	p.mu.Lock()
	p.att = att
	p.mu.Unlock()
	return nil
}

// resumable checks that the output is kept from those offsets on.
func (p *process) resumable(offsets [3]uint64) error {
	for i, o := range p.outputs {
		switch {
		case offsets[i] == agentproto.FirstKept || o == nil && offsets[i] == 0:
		case o == nil:
			return agentproto.Errorf(agentproto.CodeLost, "process %d has no channel %d to resume", p.id, outputChannel(i))
		case !o.has(offsets[i]):
			start, end := o.bounds()
			return agentproto.Errorf(agentproto.CodeLost, "output of process %d at offset %d is no longer known: %d to %d is kept", p.id, offsets[i], start, end)
		}
	}
	return nil
}

func (p *process) attached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.att != nil
}

func (p *process) wake() {
	for _, o := range p.outputs {
		if o != nil {
			o.wake()
		}
	}
}

func (p *process) abandon() {
	for _, o := range p.outputs {
		if o != nil {
			o.abandon()
		}
	}
}

// deliver feeds a call until the process's end is collected or the call has ended.
func (p *process) deliver(call *agentproto.Call, offsets [3]uint64) {
	if p.stdin != nil {
		go p.feed(call)
	}
	var sending sync.WaitGroup
	sent := make(chan struct{})
	for i, o := range p.outputs {
		if o != nil {
			// An error means that the call has ended, which Done reports.
			sending.Go(func() { _ = o.send(call, outputChannel(i), offsets[i]) })
		}
	}
	go func() { sending.Wait(); close(sent) }()
	acknowledge := func() {
		for i, o := range p.outputs {
			if o != nil {
				o.release(offsets[i] + call.Acked(outputChannel(i)))
			}
		}
	}
	delivered, exited := sent, (<-chan struct{})(nil)
	for {
		select {
		case <-call.AckSignal():
			acknowledge()
		case <-delivered:
			delivered, exited = nil, p.exited
		case <-exited:
			exited = nil
			exit := p.finalExit()
			// A failure means that the stream has ended, which Done reports.
			_ = call.End(&exit)
		case <-call.Done():
			p.wake()
			<-sent
			acknowledge()
			if call.Collected() {
				p.agent.collect(p)
			}
			return
		}
	}
}

// finalExit is the Exit once all output is read.
func (p *process) finalExit() agentproto.Exit {
	exit := p.exit
	exit.Reason = p.killReason()
	for i, o := range p.outputs {
		if o == nil {
			continue
		}
		o.mu.Lock()
		switch outputChannel(i) {
		case agentproto.ChanOut:
			exit.OutTotal, exit.OutCut = o.total, o.cut
		case agentproto.ChanErr:
			exit.ErrTotal, exit.ErrCut = o.total, o.cut
		}
		o.mu.Unlock()
	}
	return exit
}

func (p *process) finalCPU() uint64 {
	select {
	case <-p.exited:
		return p.exit.CPUMicros
	default:
		return 0
	}
}

// feed writes what the call sends to the process's stdin or control pipe. A process that has closed
// it does not care for the rest.
func (p *process) feed(call *agentproto.Call) {
	buf := make([]byte, 4<<10)
	broken := false
	for {
		n, err := call.Read(agentproto.ChanIn, buf)
		if n > 0 && !broken {
			if p.req.Rest == agentproto.RestUntilFed {
				p.count(true)
			}
			p.feeding.Lock()
			_, werr := p.stdin.Write(buf[:n])
			p.feeding.Unlock()
			broken = werr != nil
		}
		if n == len(buf) && n < agentproto.MaxFrame {
			buf = make([]byte, agentproto.MaxFrame)
		}
		if err != nil {
			if isEOF(err) {
				p.endStdin()
			}
			return
		}
	}
}
