package llmsandbox

import (
	"io"
	"sync"
)

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
