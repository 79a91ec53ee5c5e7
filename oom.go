package llmsandbox

import (
	"context"
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

// wholeOutOfMemory says so, and what follows from it.
func (s *Sandbox) wholeOutOfMemory() string {
	limit := "its memory limit"
	if m := s.limits.Memory; m > 0 {
		limit += fmt.Sprintf(" of %d MiB", m>>20)
	}
	return "the sandbox reached " + limit + " and was killed as a whole; the last of the output may be missing: open a new sandbox"
}
