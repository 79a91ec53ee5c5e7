//go:build linux

// Package files serves the calls of the agent protocol about files and watches.
//
// Everything below the root belongs to hostile code that runs meanwhile: paths
// are resolved by openat2 without magic links, or as strictly by hand where the
// kernel has no openat2, and recursive work goes from descriptor to descriptor, so
// that exchanging a directory for a link during an operation leads nowhere.
package files

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Options of a service.
type Options struct {
	// Root is the directory that is "/" to the service's paths; empty means "/".
	Root string
	// Workdir is what relative paths are below; empty means "/".
	Workdir string
}

// A Service serves calls about files. Its methods may be called concurrently.
type Service struct {
	root    int // O_PATH descriptor
	workdir string
	turns   turns
}

// New returns a service. It opens the root at once, so it is called after the
// agent has entered its own.
func New(o Options) (*Service, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Workdir == "" {
		o.Workdir = "/"
	}
	fd, err := unix.Open(o.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the sandbox's root for the file service: %w", err)
	}
	return &Service{root: fd, workdir: o.Workdir, turns: newTurns()}, nil
}

// Close releases the root. No call may be in flight.
func (s *Service) Close() error { return unix.Close(s.root) }

// ServeCall serves a call, and reports whether its method was one of its own.
func (s *Service) ServeCall(call *agentproto.Call) bool {
	work := s.work(call.Method())
	if work == nil {
		return false
	}
	if err := s.inTurn(call, work); err != nil {
		// Fails when the call or the stream has ended: no client listens then.
		_ = call.Fail(err)
	}
	return true
}

// work is what serves a method that works on files.
func (s *Service) work(m agentproto.Method) func(*job) error {
	switch m {
	case agentproto.MethodStat:
		return s.serveStat
	case agentproto.MethodList:
		return s.serveList
	case agentproto.MethodFind:
		return s.serveFind
	case agentproto.MethodMkdir:
		return s.serveMkdir
	case agentproto.MethodRemove:
		return s.serveRemove
	case agentproto.MethodRename:
		return s.serveRename
	case agentproto.MethodChmod:
		return s.serveChmod
	case agentproto.MethodRead:
		return s.serveRead
	case agentproto.MethodWrite:
		return s.serveWrite
	case agentproto.MethodTarOut:
		return s.serveTarOut
	case agentproto.MethodTarIn:
		return s.serveTarIn
	case agentproto.MethodWatch:
		return s.serveWatch
	default:
		return nil
	}
}

func (s *Service) inTurn(call *agentproto.Call, work func(*job) error) error {
	j, ok := s.turns.begin(call)
	if !ok {
		return agentproto.Errorf(agentproto.CodeCancelled, "the call ended before it had its turn")
	}
	defer s.turns.give()
	return work(j)
}
