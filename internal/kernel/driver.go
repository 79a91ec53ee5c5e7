package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// A Process is that of a driver.
type Process struct {
	*agentclient.Process
	Tag   Tag
	Agent uint64 // the instance of the agent that started it
	// Artifacts is the directory of its artifacts, which is removed with it; empty: none.
	Artifacts string
}

// A driver is one process of a kernel, from its start to its end.
type driver struct {
	link     *agentlink.Link
	process  Process
	adopted  bool   // another handle has started it
	probing  uint64 // the request of a probe that was not answered
	encoded  bool   // requests carry base64
	out, err Splitter
	events   chan Event
	gone     chan struct{} // closed when the process has ended and all it wrote is read
	killing  sync.Once
	cells    int // that were run; owned by the holder of the turn
	last     uint64
	reported bool // a cell or Restart has reported the end

	sending sync.Mutex

	mu     sync.Mutex
	broken error // what the driver did wrong

	// Set before gone is closed.
	exit agentproto.Exit
	lost error   // why the end is not known
	rest []Event // sent before the end, and not yet taken
}

func (k *Kernel) newDriver(p Process) *driver {
	return &driver{link: k.Link, process: p, encoded: k.Language.Kernel.Base64, events: make(chan Event), gone: make(chan struct{})}
}

// follow reads all that the process writes, to its end.
func (d *driver) follow() {
	defer close(d.gone)
	var reading sync.WaitGroup
	// A broken stream also fails Wait, which explains it better.
	reading.Go(func() { _, _ = io.Copy(&d.out, d.process.Stdout()) })
	reading.Go(func() { _, _ = io.Copy(&d.err, d.process.Stderr()) })
	ended := make(chan struct{})
	reading.Go(func() { d.listen(ended) })
	exit, err := d.process.Wait(context.Background()) // ends with the stream at the latest
	close(ended)
	reading.Wait()
	d.exit, d.lost = exit, err
}

// maxRest bounds what is kept of a driver's last events: a cell's last one is its end.
const maxRest = 16

// listen hands the driver's events to the holder of the turn.
func (d *driver) listen(ended <-chan struct{}) {
	control := d.process.Control()
	events := NewReader(control)
	for first := true; ; first = false {
		e, err := events.Next()
		if err != nil {
			over := err == io.EOF || errors.Is(err, agentproto.ErrStreamLost) || detached(err)
			if !over && d.adopted && first {
				continue // the rest of a line that another handle has begun to read
			}
			if !over {
				d.misbehaved(err)
			}
			break
		}
		if e.Event == EventBegun {
			continue // it was forked, and another handle may have been told already
		}
		select {
		case d.events <- e:
		case <-ended:
			if len(d.rest) < maxRest {
				d.rest = append(d.rest, e)
			}
		}
	}
	_, _ = io.Copy(io.Discard, control) // so that the end arrives
}

// misbehaved ends a driver that broke the protocol.
func (d *driver) misbehaved(err error) {
	d.mu.Lock()
	if d.broken == nil {
		d.broken = err
	}
	d.mu.Unlock()
	d.kill()
}

// misbehavior is what the driver did wrong, or nil.
func (d *driver) misbehavior() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// kill kills the process and all it started, and does not wait for its end to be known.
func (d *driver) kill() {
	d.killing.Do(func() { d.link.Kill(d.process.ID()) })
}

// stop ends the process and removes its artifacts, unless another handle has taken it over.
func (d *driver) stop() {
	select {
	case <-d.gone:
		if d.taken() {
			return
		}
	default:
	}
	d.kill()
	<-d.gone
	if d.process.Artifacts == "" || d.taken() || d.link.Alive() != nil {
		return
	}
	// What cannot be removed goes with the sandbox.
	ctx, cancel := context.WithTimeout(context.Background(), agentlink.KillGrace)
	defer cancel()
	if client, err := d.link.Client(ctx); err == nil {
		d.link.Warn("a kernel's artifacts could not be removed", client.Remove(ctx, d.process.Artifacts, agentclient.RemoveOptions{Recursive: true, Missing: true}))
	}
}

// taken reports, once the driver is gone, whether its process goes on without this handle.
func (d *driver) taken() bool { return detached(d.lost) }

// detached reports whether a stream of a process ended with err because this handle left the
// process, or another one attached to it.
func detached(err error) bool {
	return agentlink.Code(err) == agentproto.CodeCancelled || errors.Is(err, agentclient.ErrDetached)
}

// unknown returns, once the process is gone, why its end is our own doing or not known; nil
// when it was observed.
func (d *driver) unknown() error {
	switch broken := d.misbehavior(); {
	case broken != nil:
		return broken
	case d.lost != nil:
		return d.link.Explain(context.Background(), d.lost)
	case !d.exit.Known:
		return fmt.Errorf("the kernel's process: %w", &agentlink.UnobservedError{Exit: d.exit})
	}
	return nil
}

// ending describes an observed end.
func ending(exit agentproto.Exit) string {
	if exit.Signal != 0 {
		return signame.Name(exit.Signal)
	}
	return fmt.Sprintf("exit code %d", exit.Code)
}

const sigInt = 2

// interrupt asks the cell or request of that id to end, as far as its language can.
func (d *driver) interrupt(ctx context.Context, how language.Interrupt, id uint64) error {
	var err error
	switch how {
	case language.InterruptSignal, language.InterruptBoth:
		ctx, cancel := context.WithTimeout(ctx, agentlink.KillGrace)
		defer cancel()
		err = d.process.Signal(ctx, sigInt, true)
	}
	switch how {
	case language.InterruptRequest, language.InterruptBoth:
		// The driver may be too busy to read, so it is not waited for.
		go d.tell(Request{Op: OpInterrupt, ID: id})
	case language.InterruptNone:
		d.kill()
	}
	return err
}

func (d *driver) warnInterrupt(err error) {
	d.link.Warn("a kernel could not be interrupted", err)
}

// line encodes a request.
func (d *driver) line(r Request) ([]byte, error) {
	line := r.Line(d.encoded)
	if len(line) > MaxLine {
		return nil, fmt.Errorf("a request of %d bytes: %w: a kernel takes at most %d at once", len(line), backend.ErrInvalid, MaxLine)
	}
	return line, nil
}

// send hands the driver a line, and waits while it does not read. A failure is that of a
// process that has ended, which its end reports.
func (d *driver) send(line []byte) {
	d.sending.Lock()
	defer d.sending.Unlock()
	_, _ = d.process.Requests().Write(line)
}

// tell sends a request that needs no reply; false: it is too long.
func (d *driver) tell(r Request) bool {
	line, err := d.line(r)
	if err != nil {
		return false
	}
	d.send(line)
	return true
}
