package llmsandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/security"
)

const (
	// interruptGrace is how long a cell may take to end once it is interrupted.
	interruptGrace = 2 * time.Second
	// interruptAgain is after what time an interrupt is repeated, where one may get lost.
	interruptAgain = 400 * time.Millisecond
	// markGrace is how long the output that a driver wrote before its cell's end may take
	// to come after it.
	markGrace = 30 * time.Second
)

// A cellRun is a cell on its way.
type cellRun struct {
	kernel  *Kernel
	driver  *driver
	opts    CellOptions
	timeout time.Duration
	id      uint64
	ctx     context.Context // ends with the cell

	out, err *capture
	output   outputBudget
	started  time.Time

	done      *kernel.Event // what the driver said of the cell's end
	why       cellEnd       // why it was interrupted
	byUser    atomic.Bool   // Interrupt was called
	restart   atomic.Bool   // Restart was called
	repeat    chan struct{} // has a token once an interrupt may have to be repeated
	questions questions

	// resumes says that what runs is another handle's cell, if any does, and idle that none
	// does. begun is closed once the cell can be interrupted.
	resumes, idle bool
	begun         chan struct{}
}

// A cellEnd is why we end a cell.
type cellEnd int

const (
	endItself cellEnd = iota
	endTimeout
	endCancelled
	endOutput
)

// Run runs a cell and returns what became of it. opts may be nil. The error is nil whenever that was
// observed, whatever it was; otherwise it is as Run's of a sandbox. The cell is never nil.
// When ctx ends the cell is interrupted as by a timeout.
func (k *Kernel) Run(ctx context.Context, code string, opts *CellOptions) (*Cell, error) {
	findings, refused, err := k.sandbox.policy.Check(ctx, security.Program{Language: k.language.Name, Code: []byte(code)})
	if err != nil {
		return failedCell(err)
	}
	if refused != "" {
		return &Cell{Status: StatusRefused, Reason: refused, Findings: findings}, nil
	}
	cell, err := k.runChecked(ctx, code, opts)
	cell.Findings = findings
	return cell, err
}

// runChecked runs a cell that the policy lets pass.
func (k *Kernel) runChecked(ctx context.Context, code string, opts *CellOptions) (*Cell, error) {
	c, err := k.newCell(opts, k.sandbox.limits.Timeout)
	if err != nil {
		return failedCell(err)
	}
	d, err := k.take(ctx)
	if err != nil {
		return failedCell(err)
	}
	defer k.give()
	c.driver = d
	return c.run(ctx, code)
}

// newCell is a cell whose options have no timeout unless they or otherwise, which may be 0, say so.
func (k *Kernel) newCell(opts *CellOptions, otherwise time.Duration) (*cellRun, error) {
	c := &cellRun{kernel: k, repeat: make(chan struct{}, 1), begun: make(chan struct{})}
	if opts != nil {
		c.opts = *opts
	}
	limits := Limits{Timeout: c.opts.Timeout}
	if limits.Timeout == 0 && otherwise == 0 {
		limits.Timeout = Unlimited
	}
	if err := limits.resolveTimeout(otherwise); err != nil {
		return nil, err
	}
	c.timeout = limits.Timeout
	return c, nil
}

// failedCell is a cell that did not come to start.
func failedCell(err error) (*Cell, error) {
	return &Cell{Status: failureStatus(err, time.Time{}), Reason: err.Error()}, err
}

func newMark() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (c *cellRun) run(ctx context.Context, code string) (*Cell, error) {
	cellCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.ctx = cellCtx
	d, limit := c.driver, c.kernel.sandbox.limits.Output
	d.last++
	c.id = d.last
	c.output = outputBudget{left: limit, limited: limit > 0, over: make(chan struct{})}
	c.out, c.err = newCapture(limit, c.opts.Stdout), newCapture(limit, c.opts.Stderr)
	request := kernel.Request{Op: kernel.OpRun, ID: c.id, Code: code, Mark: d.mark, Stdin: c.opts.Stdin != nil}
	if c.resumes {
		request, c.id = d.probe(), 0
	}
	line, err := d.line(request)
	if err != nil {
		return failedCell(err)
	}
	outEnd, outLost := d.out.Begin(d.mark, c.output.count(c.out))
	errEnd, errLost := d.err.Begin(d.mark, c.output.count(c.err))
	if c.resumes {
		go d.follow() // no byte of a mark may come before Begin
	}
	if outLost {
		c.out.truncate()
	}
	if errLost {
		c.err.truncate()
	}
	defer d.out.End()
	defer d.err.End()

	network := c.kernel.sandbox.recordNetwork(ctx)
	c.kernel.setActive(c)
	close(c.begun)
	c.started = time.Now()
	defer d.process.Busy()()
	// A failure to send is that of a process that has ended.
	go d.send(line)
	c.follow(ctx, outEnd, errEnd)
	c.kernel.setActive(nil)
	cancel()
	if c.idle {
		attempts(network, 0)
		c.giveBack()
		d.process.Acknowledge()
		d.collect(ctx, &Cell{}) // what earlier cells have made is none of the next one's
		return nil, nil
	}
	d.cells++
	cell := c.result(ctx)
	cell.Restarted, c.kernel.unsaid = c.kernel.unsaid, false
	d.reported = cell.StateLost
	cell.Network, cell.NetworkDropped = attempts(network, gateway.AnswerTime)
	d.collect(ctx, cell)
	d.process.Acknowledge() // another handle begins after this cell
	return cell, errors.Join(c.failure(ctx), captureErrors(c.out, c.err))
}

// setActive waits for an interrupt that is on its way, which must not reach the next cell.
func (k *Kernel) setActive(c *cellRun) {
	k.interrupting.Lock()
	defer k.interrupting.Unlock()
	k.active = c
}

// follow sees the cell to its end: the driver's word and all output, or the end of its
// process.
func (c *cellRun) follow(ctx context.Context, outEnd, errEnd <-chan struct{}) {
	d := c.driver
	var timer, grace, again <-chan time.Time
	if c.timeout > 0 {
		t := time.NewTimer(c.timeout)
		defer t.Stop()
		timer = t.C
	}
	cancelled, over := ctx.Done(), c.output.over
	stop := func(why cellEnd) {
		timer, cancelled, over = nil, nil, nil
		if c.done != nil {
			return // it has ended, and only its output is still to come
		}
		c.why = why
		t := time.NewTimer(interruptGrace)
		context.AfterFunc(c.ctx, func() { t.Stop() })
		grace = t.C
		// A process that cannot be reached has ended, or is killed after the grace.
		d.sandbox.link.Warn("a kernel could not be interrupted", c.interrupt(context.Background()))
	}
	var repeated time.Time
	for !c.idle && (c.done == nil || outEnd != nil || errEnd != nil) {
		select {
		case e := <-d.events:
			if err := c.handle(e); err != nil {
				d.misbehaved(err)
				continue
			}
			if c.done != nil {
				late := markGrace
				if c.resumes { // its marks may have been read by another handle
					late = interruptGrace
				}
				t := time.NewTimer(late)
				defer t.Stop()
				timer, grace, cancelled, again = nil, t.C, nil, nil
			}
		case <-c.repeat:
			if repeated, again = time.Now(), nil; c.done == nil {
				again = time.After(interruptAgain)
				if c.kernel.language.Kernel.Interrupt == language.InterruptBoth {
					again = time.After(language.SignalAfter)
				}
			}
		case <-again:
			again = nil
			d.sandbox.link.Warn("a kernel could not be interrupted", d.interrupt(context.Background(), c.kernel.language.Kernel.Interrupt, c.id))
			if time.Since(repeated) < interruptGrace {
				again = time.After(interruptAgain)
			}
		case <-outEnd:
			outEnd = nil
		case <-errEnd:
			errEnd = nil
		case <-timer:
			stop(endTimeout)
		case <-cancelled:
			stop(endCancelled)
		case <-over:
			stop(endOutput)
		case <-grace:
			grace = nil
			if c.done != nil && c.resumes {
				return
			}
			if c.done != nil {
				d.misbehaved(errors.New("the kernel's driver broke its protocol: it did not mark the end of a cell's output"))
			}
			d.kill()
		case <-d.gone:
			c.last(outEnd, errEnd)
			return
		}
	}
	if c.done != nil && c.done.StateLost {
		d.kill()
		<-d.gone
	}
}

// last takes what the driver has sent before its process ended. Only with all of the
// cell's output is that a cell's end.
func (c *cellRun) last(outEnd, errEnd <-chan struct{}) {
	for _, e := range c.driver.rest {
		if c.handle(e) != nil {
			break
		}
	}
	for _, end := range []<-chan struct{}{outEnd, errEnd} {
		if end == nil {
			continue
		}
		select {
		case <-end:
		default:
			c.done = nil
		}
	}
	if c.done != nil {
		c.done.StateLost = true
	}
}

// handle takes one event of the cell.
func (c *cellRun) handle(e kernel.Event) error {
	switch {
	case c.driver.probed(e):
		c.driver.probing, c.idle = 0, c.resumes && c.done == nil
		return nil
	case c.resumes && e.Event == kernel.EventReady:
		return nil
	case c.resumes && c.id == 0:
		c.kernel.interrupting.Lock()
		c.id = e.ID
		c.kernel.interrupting.Unlock()
	}
	switch {
	case e.ID != c.id || c.done != nil:
		return fmt.Errorf("the kernel's driver broke its protocol: event %q of cell %d in cell %d", e.Event, e.ID, c.id)
	case e.Event == kernel.EventDone:
		c.done = &e
	case e.Event == kernel.EventInput:
		return c.ask(e)
	case e.Event == kernel.EventInstall:
		go c.install(e.Libraries)
	default:
		return fmt.Errorf("the kernel's driver broke its protocol: event %q in a cell", e.Event)
	}
	return nil
}

// install installs what a cell's code asks for, where the kernel's owner has allowed it,
// and tells the driver where that is.
func (c *cellRun) install(libraries []string) {
	k := c.kernel
	reply := kernel.Request{Op: kernel.OpInstalled, ID: c.id}
	var err error
	if !k.opts.AllowInstall {
		reply.Error = "this kernel may not install libraries: its owner can allow it (KernelOptions.AllowInstall, --allow-install), or install them before"
	} else if err = k.sandbox.install(c.ctx, k.language.Name, libraries, nil); err == nil {
		reply.Dirs, err = k.sandbox.libraryFolders(c.ctx, k.language.Name)
	}
	if err != nil {
		reply.Error = err.Error()
	}
	if c.ctx.Err() == nil { // else the cell has ended meanwhile
		c.driver.tell(reply)
	}
}

// An outputBudget is what a cell's streams may hold together.
type outputBudget struct {
	mu      sync.Mutex
	left    int64
	limited bool
	over    chan struct{} // closed when more was written
	cut     bool
}

// count returns a writer that hands on to c what is within the budget.
func (b *outputBudget) count(c *capture) io.Writer { return &budgeted{b, c} }

type budgeted struct {
	budget  *outputBudget
	capture *capture
}

func (w *budgeted) Write(p []byte) (int, error) {
	granted := w.budget.grant(len(p))
	if granted < len(p) {
		w.capture.truncate()
	}
	if granted > 0 {
		_, _ = w.capture.Write(p[:granted]) // it never fails
	}
	return len(p), nil
}

func (b *outputBudget) grant(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.limited {
		return n
	}
	if int64(n) <= b.left {
		b.left -= int64(n)
		return n
	}
	n = int(b.left)
	b.left = 0
	if !b.cut {
		b.cut = true
		close(b.over)
	}
	return n
}
