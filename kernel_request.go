package llmsandbox

import (
	"context"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// interrupt asks the cell or request of that id to end, as far as its language can.
func (d *driver) interrupt(ctx context.Context, how language.Interrupt, id uint64) error {
	var err error
	switch how {
	case language.InterruptSignal, language.InterruptBoth:
		ctx, cancel := context.WithTimeout(ctx, killGrace)
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
