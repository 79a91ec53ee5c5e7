package llmsandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	sigInt  = 2
	sigKill = 9
)

// An oomWatch tells whether the kernel killed for memory while a run went on.
type oomWatch struct {
	machine backend.Machine
	known   bool
	before  int64
}

func watchOOM(ctx context.Context, m backend.Machine) oomWatch {
	n, known := m.OOMKills(ctx)
	return oomWatch{machine: m, known: known, before: n}
}

// happened tells whether a run that failed did so because of memory: the kernel
// counted a kill meanwhile, and the run's own process was killed or gave up. The
// agent's count, where it has one, is that of the process's own time.
func (w *oomWatch) happened(ctx context.Context, exit agentproto.Exit) bool {
	if exit.Signal != 0 && exit.Signal != sigKill {
		return false
	}
	if exit.OOMKnown {
		return exit.OOMKills > 0
	}
	if !w.known {
		return false
	}
	n, known := w.machine.OOMKills(ctx)
	return known && n > w.before
}

// An unobservedError is the end of a process whose supervisor inside was killed, so that
// nobody knows what became of it.
type unobservedError struct {
	exit agentproto.Exit // what is known all the same
}

func (e *unobservedError) Error() string {
	return "the process's end was not observed: " + ErrLost.Error()
}

func (e *unobservedError) Unwrap() error { return ErrLost }

// lost tells why a run that was lost has run out of memory; "" if it has not, or was not lost.
func (w *oomWatch) lost(ctx context.Context, s *Sandbox, err error) string {
	var unobserved *unobservedError
	switch {
	case !errors.Is(err, ErrLost):
		return ""
	case s.killedForMemory():
		return "the sandbox reached " + s.memoryLimit() + " and was killed as a whole; the last of the output may be missing: open a new sandbox"
	case errors.As(err, &unobserved) && w.happened(ctx, unobserved.exit):
		return "the sandbox reached " + s.memoryLimit() + " and the kernel killed the program's supervisor too; the last of the output may be missing: free memory, such as files in memory, or open a new sandbox"
	}
	return ""
}

// killedForMemory tells whether the sandbox has ended because all of it was killed for
// memory: what ran in it was, too.
func (s *Sandbox) killedForMemory() bool {
	select {
	case <-s.machine.Done():
		m, ok := s.machine.(backend.Obituary)
		return ok && m.KilledForMemory()
	default:
		return false
	}
}

// memoryLimit names the limit.
func (s *Sandbox) memoryLimit() string {
	if m := s.limits.Memory; m > 0 {
		return fmt.Sprintf("its memory limit of %d MiB", m>>20)
	}
	return "its memory limit"
}
