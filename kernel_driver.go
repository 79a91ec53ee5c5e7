package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/signame"
)

// A driver is one process of a kernel, from its start to its end.
type driver struct {
	sandbox  *Sandbox
	run      string // see kernelTag
	mark     string
	process  *agentclient.Process
	adopted  bool   // another handle has started it
	probing  uint64 // the request of a probe that was not answered
	encoded  bool   // requests carry base64
	out, err kernel.Splitter
	events   chan kernel.Event
	gone     chan struct{} // closed when the process has ended and all it wrote is read
	killing  sync.Once
	cells    int // that were run; owned by the holder of the turn
	last     uint64
	ooms     oomWatch
	instance uint64 // of the agent
	reported bool   // a cell or Restart has reported the end
	// collection catches artifacts; nil where nothing is caught.
	collection *collection

	sending sync.Mutex

	mu     sync.Mutex
	broken error // what the driver did wrong

	// Set before gone is closed.
	exit agentproto.Exit
	lost error          // why the end is not known
	rest []kernel.Event // sent before the end, and not yet taken
}

// follow reads all that the process writes, to its end.
func (d *driver) follow() {
	defer close(d.gone)
	var reading sync.WaitGroup
	// A broken stream also fails Wait, which tells it better.
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
	events := kernel.NewReader(control)
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

// collect gives a cell what it has produced. Nothing comes after the end of the process.
func (d *driver) collect(ctx context.Context, cell *Cell) {
	if d.collection == nil || d.sandbox.link.Alive() != nil {
		return
	}
	if cell.StateLost {
		if !d.taken() {
			cell.Artifacts, cell.ArtifactsDropped = d.collection.finish(ctx)
		}
		return
	}
	cell.Artifacts, cell.ArtifactsDropped = d.collection.cell(ctx)
}

// tidy removes what is left in the sandbox once the process is gone. What cannot be
// removed goes with the sandbox.
func (d *driver) tidy() {
	if d.collection == nil || d.taken() || d.sandbox.link.Alive() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), agentlink.KillGrace)
	defer cancel()
	if client, err := d.sandbox.link.Client(ctx); err == nil {
		d.sandbox.link.Warn("a kernel's artifacts could not be removed", client.Remove(ctx, d.collection.root, agentclient.RemoveOptions{Recursive: true, Missing: true}))
	}
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

// kill kills the process and all it started, and does not wait for its end to be known.
func (d *driver) kill() {
	d.killing.Do(func() { d.sandbox.link.Kill(d.process.ID()) })
}

// stop ends the process and removes its files, unless another handle has taken it over.
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
	d.tidy()
}

// misled is what the driver did wrong, if it did.
func (d *driver) misled() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// failed tells, once the process is gone, why it is if that is our own doing or not known.
func (d *driver) failed() error {
	broken := d.misled()
	switch {
	case broken != nil:
		return broken
	case d.lost != nil:
		return d.sandbox.link.Explain(context.Background(), d.lost)
	case !d.exit.Known:
		return fmt.Errorf("the kernel's process: %w", &agentlink.UnobservedError{Exit: d.exit})
	}
	return nil
}

// ending describes the observed end.
func (d *driver) ending() string {
	if d.exit.Signal != 0 {
		return signame.Name(d.exit.Signal)
	}
	return fmt.Sprintf("exit code %d", d.exit.Code)
}

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
		go d.tell(kernel.Request{Op: kernel.OpInterrupt, ID: id})
	case language.InterruptNone:
		d.kill()
	}
	return err
}

// line encodes a request.
func (d *driver) line(r kernel.Request) ([]byte, error) {
	line := r.Line(d.encoded)
	if len(line) > kernel.MaxLine {
		return nil, fmt.Errorf("a request of %d bytes: %w: a kernel takes at most %d at once", len(line), ErrInvalid, kernel.MaxLine)
	}
	return line, nil
}

// send hands the driver a line, and waits while it does not read. A process that has
// ended does not care for it.
func (d *driver) send(line []byte) {
	d.sending.Lock()
	defer d.sending.Unlock()
	_, _ = d.process.Requests().Write(line)
}

// tell sends a request that needs no reply; false: it is too long.
func (d *driver) tell(r kernel.Request) bool {
	line, err := d.line(r)
	if err != nil {
		return false
	}
	d.send(line)
	return true
}
