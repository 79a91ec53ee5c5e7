package kernel

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// askTimeout bounds what a kernel may take to answer about its state: the answer may
// run the code's own methods.
const askTimeout = 20 * time.Second

// Ask asks the driver between two cells. It fails with backend.ErrInvalid for a cursor that is outside of the code, and with
// backend.ErrUnsupported where the driver says that it cannot answer.
func (k *Kernel) Ask(ctx context.Context, r Request) (Event, error) {
	var none Event
	if r.Cursor != nil && (*r.Cursor < 0 || *r.Cursor > utf8.RuneCountInString(r.Code)) {
		return none, fmt.Errorf("cursor %d: %w: the code has %d code points", *r.Cursor, backend.ErrInvalid, utf8.RuneCountInString(r.Code))
	}
	t, err := k.Take(ctx)
	if err != nil {
		return none, err
	}
	defer t.End()
	d := t.driver
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
			case e.ID != r.ID || e.Event != EventReply:
				d.misbehaved(fmt.Errorf("%w: event %q of request %d for request %d", ErrProtocol, e.Event, e.ID, r.ID))
			case ctx.Err() != nil:
				return none, context.Cause(ctx)
			case e.Refusal != "":
				return none, errclass.Errorf(backend.ErrUnsupported, "the %s kernel: %s", k.Language.Title, e.Refusal)
			default:
				return e, nil
			}
		case <-cancelled:
			cancelled = nil
			grace = time.After(interruptGrace)
			how := k.Language.Kernel.Interrupt
			if how == language.InterruptNone {
				continue // it may still answer
			}
			// A process that cannot be reached is killed after the grace.
			d.warnInterrupt(d.interrupt(context.WithoutCancel(ctx), how, r.ID))
		case <-grace:
			d.kill()
		case <-d.gone:
			if err := d.unknown(); err != nil {
				return none, err
			}
			return none, fmt.Errorf("the %s kernel's process ended (%s)", k.Language.Title, ending(d.exit))
		}
	}
}

// Interrupt interrupts the cell that runs, if one does.
func (k *Kernel) Interrupt(ctx context.Context) error {
	k.interrupting.Lock()
	defer k.interrupting.Unlock()
	if err := k.Alive(); err != nil {
		return err
	}
	if k.active == nil {
		return nil
	}
	k.active.byUser.Store(true)
	return k.active.interrupt(ctx)
}

// interrupt interrupts the cell, as often and as far as its language needs it.
func (r *running) interrupt(ctx context.Context) error {
	def := r.kernel.Language.Kernel
	if def.Repeat {
		select {
		case r.repeat <- struct{}{}:
		default:
		}
	}
	if def.EndInput && r.endInput() {
		return nil
	}
	how := def.Interrupt
	if how == language.InterruptBoth {
		how = language.InterruptRequest
	}
	return r.driver.interrupt(ctx, how, r.id)
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
	cancel   context.CancelFunc // ends the caller's wait for an answer that is no longer needed
}

// ask begins to answer a request for input.
func (r *running) ask(e Event) error {
	ctx, cancel := context.WithCancel(r.ctx)
	q := &question{cancel: cancel}
	r.questions.mu.Lock()
	defer r.questions.mu.Unlock()
	if r.questions.answering == maxAnswering {
		cancel()
		return fmt.Errorf("%w: it asks without waiting for answers", ErrProtocol)
	}
	if last := r.questions.last; last != nil {
		last.answered = true // whatever became of it, its answer is not this one's
		last.cancel()
	}
	r.questions.last = q
	r.questions.answering++
	go r.answer(ctx, q, e)
	return nil
}

// answer asks the caller and sends the driver the answer.
func (r *running) answer(ctx context.Context, q *question, e Event) {
	defer q.cancel()
	defer func() {
		r.questions.mu.Lock()
		defer r.questions.mu.Unlock()
		r.questions.answering--
	}()
	end := Request{Op: OpInput, ID: r.id, EOF: true}
	reply := end
	if r.Input != nil {
		if line, err := r.Input(ctx, e.Prompt, e.Password); err == nil {
			reply.Text, reply.EOF = line, false
		}
	}
	// An answer to a cell that has ended, or was interrupted, is dropped.
	if r.questions.take(q) && r.ctx.Err() == nil && !r.driver.tell(reply) {
		r.driver.tell(end) // it was too long
	}
	r.driver.process.Acknowledge() // another handle is not to answer it again
}

// take reports whether it is the caller's to answer the question, which it then does.
func (s *questions) take(q *question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !q.answered
	q.answered = true
	return first
}

// endInput answers what the cell asks, if it does, with the interrupt.
func (r *running) endInput() bool {
	r.questions.mu.Lock()
	q := r.questions.last
	r.questions.mu.Unlock()
	if q == nil || !r.questions.take(q) {
		return false
	}
	q.cancel()
	// The driver may be too busy to read, so it is not waited for.
	go r.driver.tell(Request{Op: OpInput, ID: r.id, EOF: true, Interrupted: true})
	return true
}
