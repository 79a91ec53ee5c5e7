package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// askTimeout bounds what a kernel may take to answer about its state: the answer may
// run the code's own methods.
const askTimeout = 20 * time.Second

// Completion is what could stand in a place of the code.
type Completion struct {
	// Matches may take the place of the code's characters from Start to End, counted in
	// code points.
	Matches    []string
	Start, End int
}

// A Variable is one of a kernel's.
type Variable struct {
	Name string `json:"name"`
	// Type is what the language calls it.
	Type string `json:"type"`
	// Value is as the language shows it, shortened.
	Value string `json:"value"`
}

// Complete completes the code at a cursor, counted in code points.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (Completion, error) {
	e, err := k.ask(ctx, kernel.Request{Op: kernel.OpComplete, Code: code, Cursor: &cursor})
	if err != nil {
		return Completion{}, err
	}
	return Completion{Matches: e.Matches, Start: e.Start, End: e.End}, nil
}

// Inspect describes what stands at a cursor, counted in code points: its documentation,
// signature or value. It is empty when nothing is known.
func (k *Kernel) Inspect(ctx context.Context, code string, cursor int) (string, error) {
	e, err := k.ask(ctx, kernel.Request{Op: kernel.OpInspect, Code: code, Cursor: &cursor})
	return e.Text, err
}

// Variables lists what cells have defined.
func (k *Kernel) Variables(ctx context.Context) ([]Variable, error) {
	e, err := k.ask(ctx, kernel.Request{Op: kernel.OpVariables})
	if err != nil {
		return nil, err
	}
	variables := make([]Variable, len(e.Variables))
	for i, v := range e.Variables {
		variables[i] = Variable(v)
	}
	return variables, nil
}

// Reset forgets what cells have defined. The kernel's process lives on, and with it
// what a language cannot forget: loaded modules, the working folder. Restart forgets all.
func (k *Kernel) Reset(ctx context.Context) error {
	_, err := k.ask(ctx, kernel.Request{Op: kernel.OpReset})
	return err
}

// Interrupt interrupts the cell that runs, if one does; its Run returns what became of
// it. The state is kept, but for languages that cannot (Cell.StateLost). Code may ignore
// an interrupt: then Restart ends it.
func (k *Kernel) Interrupt(ctx context.Context) error {
	k.interrupting.Lock()
	defer k.interrupting.Unlock()
	if err := k.alive(); err != nil {
		return err
	}
	c := k.active
	if c == nil {
		return nil
	}
	c.byUser.Store(true)
	return c.interrupt(ctx)
}

// Restart ends the kernel's process, with the cell that runs and all that cells have
// defined or started, and starts a new one.
func (k *Kernel) Restart(ctx context.Context) error {
	k.mu.Lock()
	d := k.driver
	k.mu.Unlock()
	k.interrupting.Lock()
	if k.active != nil {
		k.active.restart.Store(true)
	}
	k.interrupting.Unlock()
	if d != nil {
		ended := make(chan struct{})
		go func() { d.stop(); close(ended) }()
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if _, err := k.take(ctx); err != nil {
		return fmt.Errorf("restart the %s kernel: %w", k.language.Title, err)
	}
	k.unsaid = false // the caller knows
	k.give()
	return nil
}

// ask asks the driver between two cells.
func (k *Kernel) ask(ctx context.Context, r kernel.Request) (kernel.Event, error) {
	var none kernel.Event
	d, err := k.take(ctx)
	if err != nil {
		return none, err
	}
	defer k.give()
	defer d.process.Busy()()
	d.last++
	r.ID = d.last
	line, err := d.line(r)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("the kernel did not answer within %v", askTimeout))
	defer cancel()
	go d.send(line)
	cancelled, grace := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case e := <-d.events:
			switch {
			case d.probed(e):
				d.probing = 0
			case e.ID != r.ID || e.Event != kernel.EventReply:
				d.misbehaved(fmt.Errorf("the kernel's driver broke its protocol: event %q of request %d for request %d", e.Event, e.ID, r.ID))
			case ctx.Err() != nil:
				return none, context.Cause(ctx)
			case e.Refusal != "":
				return none, fmt.Errorf("the %s kernel: %s", k.language.Title, e.Refusal)
			default:
				return e, nil
			}
		case <-cancelled:
			cancelled = nil
			t := time.NewTimer(interruptGrace)
			defer t.Stop()
			grace = t.C
			how := k.language.Kernel.Interrupt
			if how == language.InterruptNone {
				continue // it may still answer
			}
			// A process that cannot be reached is killed after the grace.
			d.sandbox.link.Warn("a kernel could not be interrupted", d.interrupt(context.WithoutCancel(ctx), how, r.ID))
		case <-grace:
			d.kill()
		case <-d.gone:
			if err := d.failed(); err != nil {
				return none, err
			}
			return none, fmt.Errorf("the %s kernel's process ended (%s)", k.language.Title, d.ending())
		}
	}
}

// maxAnswering bounds how many answers of a cell may be on their way: code that asks and
// does not wait for them is no reason to run out of memory.
const maxAnswering = 64

// questions are those of a cell for input. Only the last one is still asked.
type questions struct {
	mu        sync.Mutex
	last      *question
	answering int
}

// A question is answered once: by the caller, or by an interrupt.
type question struct {
	answered bool
	cancel   context.CancelFunc // tells the caller that the answer is no longer needed
}

// ask begins to answer a request for input.
func (c *cellRun) ask(e kernel.Event) error {
	ctx, cancel := context.WithCancel(c.ctx)
	q := &question{cancel: cancel}
	c.questions.mu.Lock()
	defer c.questions.mu.Unlock()
	if c.questions.answering == maxAnswering {
		cancel()
		return errors.New("the kernel's driver broke its protocol: it asks without waiting for answers")
	}
	if last := c.questions.last; last != nil {
		last.answered = true // whatever became of it, its answer is not this one's
		last.cancel()
	}
	c.questions.last = q
	c.questions.answering++
	go c.answer(ctx, q, e)
	return nil
}

// answer asks the caller and tells the driver.
func (c *cellRun) answer(ctx context.Context, q *question, e kernel.Event) {
	defer q.cancel()
	defer func() {
		c.questions.mu.Lock()
		defer c.questions.mu.Unlock()
		c.questions.answering--
	}()
	end := kernel.Request{Op: kernel.OpInput, ID: c.id, EOF: true}
	reply := end
	if c.opts.Stdin != nil {
		if line, err := c.opts.Stdin(ctx, e.Prompt, e.Password); err == nil {
			reply.Text, reply.EOF = line, false
		}
	}
	// An answer to a cell that has ended, or was interrupted, is dropped.
	if c.questions.take(q) && c.ctx.Err() == nil && !c.driver.tell(reply) {
		c.driver.tell(end) // it was too long
	}
	c.driver.process.Acknowledge() // another handle is not to answer it again
}

// take tells whether it is the caller's to answer the question, which it then does.
func (s *questions) take(q *question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !q.answered
	q.answered = true
	return first
}

// interrupt interrupts the cell, as often and as far as its language needs it.
func (c *cellRun) interrupt(ctx context.Context) error {
	def := c.kernel.language.Kernel
	if def.Repeat {
		select {
		case c.repeat <- struct{}{}:
		default:
		}
	}
	if def.EndInput && c.endInput() {
		return nil
	}
	how := def.Interrupt
	if how == language.InterruptBoth {
		how = language.InterruptRequest
	}
	return c.driver.interrupt(ctx, how, c.id)
}

// endInput answers what the cell asks, if it does, with the interrupt.
func (c *cellRun) endInput() bool {
	c.questions.mu.Lock()
	q := c.questions.last
	c.questions.mu.Unlock()
	if q == nil || !c.questions.take(q) {
		return false
	}
	q.cancel()
	// The driver may be too busy to read, so it is not waited for.
	go c.driver.tell(kernel.Request{Op: kernel.OpInput, ID: c.id, EOF: true, Interrupted: true})
	return true
}
