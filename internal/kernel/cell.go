package kernel

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/language"
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

// A Cell is code with its input and output.
type Cell struct {
	Code string
	// Input answers the code's requests for a line; nil answers them with end of file. Its
	// context ends when the answer is no longer needed.
	Input func(ctx context.Context, prompt string, password bool) (string, error)
	// Stdout and Stderr get the output, together at most OutputLimit bytes; 0: no limit.
	Stdout, Stderr Output
	OutputLimit    int64
	Timeout        time.Duration // 0: none
}

// An Output takes a stream of a cell. Its Write never fails.
type Output interface {
	io.Writer
	// Truncate notes that some of the stream is not written to it.
	Truncate()
}

// A Stop is why a cell did not end by itself.
type Stop int

// The reasons.
const (
	NotStopped Stop = iota
	StopTimeout
	StopCancelled // its context ended
	StopOutput    // it wrote more than OutputLimit
	// These are of a cell without Done.
	StopRestart
	StopClose
	StopInterrupt // by Interrupt, of a language that cannot interrupt a cell and keep its state
)

// An Outcome is what was observed of a cell.
type Outcome struct {
	// Idle: the kernel was attached to, and no cell ran.
	Idle bool
	// Number counts the cells of the driver's process, from 1.
	Number int
	// Done is the driver's report of the cell's end; nil: its process ended before.
	Done     *Event
	Stopped  Stop
	Duration time.Duration
	// StateLost: the driver's process has ended. Detached: another handle has it.
	StateLost, Detached bool
	// Restarted: a process had ended between the cell before and this one.
	Restarted bool

	// Without Done, Exit is how the process ended and Ending describes it. Err is why that is
	// not known, or what the driver did wrong, with Misbehaved; it is not set after StopRestart
	// and StopClose.
	Exit       agentproto.Exit
	Ending     string
	Err        error
	Misbehaved bool
}

// A running is a cell on its way.
type running struct {
	Cell
	kernel  *Kernel
	driver  *driver
	id      uint64
	caller  context.Context // the cell is cancelled with it
	ctx     context.Context // ends with the cell
	cancel  context.CancelFunc
	started time.Time

	output         outputBudget
	outEnd, errEnd <-chan struct{} // closed at the end of its output

	done      *Event        // what the driver reported of the cell's end
	stopped   Stop          // why it was interrupted
	byUser    atomic.Bool   // Interrupt was called
	restart   atomic.Bool   // Restart was called
	repeat    chan struct{} // has a token once an interrupt may have to be repeated
	questions questions

	// resumes means that what runs is another handle's cell, if any does, and idle that none
	// does.
	resumes, idle bool
}

// Begin sends a cell to the driver. After an error it was not run; otherwise Wait must be
// called. When ctx ends the cell is interrupted as by its timeout.
func (t *Turn) Begin(ctx context.Context, cell Cell) error {
	d := t.driver
	r := &running{Cell: cell, kernel: t.kernel, driver: d, caller: ctx, resumes: t.resumes, repeat: make(chan struct{}, 1)}
	d.last++
	r.id = d.last
	request := Request{Op: OpRun, ID: r.id, Code: cell.Code, Mark: d.process.Tag.Mark, Stdin: cell.Input != nil}
	if r.resumes {
		request, r.id = d.probe(), 0
	}
	line, err := d.line(request)
	if err != nil {
		return err
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.output = outputBudget{left: cell.OutputLimit, limited: cell.OutputLimit > 0, over: make(chan struct{})}
	var outLost, errLost bool
	r.outEnd, outLost = d.out.Begin(d.process.Tag.Mark, r.output.count(cell.Stdout))
	r.errEnd, errLost = d.err.Begin(d.process.Tag.Mark, r.output.count(cell.Stderr))
	if r.resumes {
		go d.follow() // no byte of a mark may come before Begin
	}
	if outLost {
		cell.Stdout.Truncate()
	}
	if errLost {
		cell.Stderr.Truncate()
	}
	t.running = r
	t.kernel.setActive(r)
	r.started = time.Now()
	t.busy = d.process.Busy()
	go d.send(line)
	return nil
}

// Wait sees the cell to its end.
func (t *Turn) Wait() Outcome {
	k, d, r := t.kernel, t.driver, t.running
	r.follow(r.caller)
	k.setActive(nil)
	r.cancel()
	d.out.End()
	d.err.End()
	if r.idle {
		return Outcome{Idle: true}
	}
	d.cells++
	o := r.outcome()
	o.Restarted, k.lost = k.lost, false
	d.reported = o.StateLost
	return o
}

// PutBack gives the next cell output that came while none ran.
func (t *Turn) PutBack(stdout, stderr string) {
	_, _ = io.WriteString(&t.driver.out, stdout) // they do not fail
	_, _ = io.WriteString(&t.driver.err, stderr)
}

// outcome is what was observed of the cell.
func (r *running) outcome() Outcome {
	d := r.driver
	o := Outcome{Number: d.cells, Done: r.done, Stopped: r.stopped, Duration: time.Since(r.started)}
	if r.done != nil {
		o.StateLost = r.done.StateLost
		if r.done.Count > 0 {
			o.Number = r.done.Count
		}
		return o
	}
	o.StateLost, o.Detached, o.Exit, o.Ending = true, d.taken(), d.exit, ending(d.exit)
	if o.Stopped == NotStopped {
		switch {
		case r.restart.Load():
			o.Stopped = StopRestart
			return o
		case r.kernel.isClosed():
			o.Stopped = StopClose
			return o
		case r.byUser.Load() && r.kernel.Language.Kernel.Interrupt == language.InterruptNone:
			o.Stopped = StopInterrupt
		}
	}
	o.Err, o.Misbehaved = d.unknown(), d.misbehavior() != nil
	return o
}

// setActive waits for an interrupt that is on its way, which must not reach the next cell.
func (k *Kernel) setActive(r *running) {
	k.interrupting.Lock()
	defer k.interrupting.Unlock()
	k.active = r
}

// follow sees the cell to its end: the driver's report and all output, or the end of its
// process.
func (r *running) follow(ctx context.Context) {
	d, how := r.driver, r.kernel.Language.Kernel.Interrupt
	outEnd, errEnd := r.outEnd, r.errEnd
	var timer, grace, again <-chan time.Time
	paused, _ := d.link.Paused()
	if r.Timeout > 0 {
		timer = time.After(r.Timeout - time.Since(r.started))
	}
	cancelled, over := ctx.Done(), r.output.over
	stop := func(why Stop) {
		timer, cancelled, over = nil, nil, nil
		if r.done != nil {
			return // it has ended, and only its output is still to come
		}
		r.stopped = why
		grace = time.After(interruptGrace)
		// A process that cannot be reached has ended, or is killed after the grace.
		d.warnInterrupt(r.interrupt(context.Background()))
	}
	var repeated time.Time
	for !r.idle && (r.done == nil || outEnd != nil || errEnd != nil) {
		select {
		case e := <-d.events:
			if err := r.handle(e); err != nil {
				d.misbehaved(err)
				continue
			}
			if r.done != nil {
				late := markGrace
				if r.resumes { // its marks may have been read by another handle
					late = interruptGrace
				}
				timer, grace, cancelled, again = nil, time.After(late), nil, nil
			}
		case <-r.repeat:
			if repeated, again = time.Now(), nil; r.done == nil {
				again = time.After(interruptAgain)
				if how == language.InterruptBoth {
					again = time.After(language.SignalAfter)
				}
			}
		case <-again:
			again = nil
			d.warnInterrupt(d.interrupt(context.Background(), how, r.id))
			if time.Since(repeated) < interruptGrace {
				again = time.After(interruptAgain)
			}
		case <-outEnd:
			outEnd = nil
		case <-errEnd:
			errEnd = nil
		case <-timer:
			if so, _ := d.link.Paused(); so > paused { // which counts for no limit
				timer = time.After(so - paused)
				paused = so
				continue
			}
			stop(StopTimeout)
		case <-cancelled:
			stop(StopCancelled)
		case <-over:
			stop(StopOutput)
		case <-grace:
			grace = nil
			if r.done != nil && r.resumes {
				return
			}
			if r.done != nil {
				d.misbehaved(fmt.Errorf("%w: it did not mark the end of a cell's output", ErrProtocol))
			}
			d.kill()
		case <-d.gone:
			r.last(outEnd, errEnd)
			return
		}
	}
	if r.done != nil && r.done.StateLost {
		d.kill()
		<-d.gone
	}
}

// last takes what the driver has sent before its process ended. Only with all of the
// cell's output is that a cell's end.
func (r *running) last(outEnd, errEnd <-chan struct{}) {
	for _, e := range r.driver.rest {
		if r.handle(e) != nil {
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
			r.done = nil
		}
	}
	if r.done != nil {
		r.done.StateLost = true
	}
}

// handle takes one event of the cell.
func (r *running) handle(e Event) error {
	switch {
	case r.driver.probed(e):
		r.driver.probing, r.idle = 0, r.resumes && r.done == nil
		return nil
	case r.resumes && e.Event == EventReady:
		return nil
	case r.resumes && r.id == 0:
		r.kernel.interrupting.Lock()
		r.id = e.ID
		r.kernel.interrupting.Unlock()
	}
	switch {
	case e.ID != r.id || r.done != nil:
		return fmt.Errorf("%w: event %q of cell %d in cell %d", ErrProtocol, e.Event, e.ID, r.id)
	case e.Event == EventDone:
		r.done = &e
	case e.Event == EventInput:
		return r.ask(e)
	case e.Event == EventInstall:
		go r.install(e.Libraries)
	default:
		return fmt.Errorf("%w: event %q in a cell", ErrProtocol, e.Event)
	}
	return nil
}

// install has the host install what a cell asks for, and sends the driver the directories.
func (r *running) install(libraries []string) {
	reply := Request{Op: OpInstalled, ID: r.id}
	var err error
	if reply.Dirs, err = r.kernel.Host.Install(r.ctx, libraries); err != nil {
		reply.Error = err.Error()
	}
	if r.ctx.Err() == nil { // else the cell has ended meanwhile
		r.driver.tell(reply)
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

// count returns a writer that hands on to o what is within the budget.
func (b *outputBudget) count(o Output) io.Writer { return &budgeted{b, o} }

type budgeted struct {
	budget *outputBudget
	output Output
}

func (w *budgeted) Write(p []byte) (int, error) {
	granted := w.budget.grant(len(p))
	if granted < len(p) {
		w.output.Truncate()
	}
	if granted > 0 {
		_, _ = w.output.Write(p[:granted]) // it never fails
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
