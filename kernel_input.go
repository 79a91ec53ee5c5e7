package llmsandbox

import (
	"context"
	"errors"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
	cancel   context.CancelFunc // tells the caller that nobody waits any more
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
	// An answer to a cell that has ended, or was interrupted, is nobody's.
	if c.questions.take(q) && c.ctx.Err() == nil && !c.driver.tell(reply) {
		c.driver.tell(end) // it was too long
	}
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
