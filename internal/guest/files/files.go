//go:build linux

// Package files serves the calls of the agent protocol about files and watches.
//
// Everything below the root belongs to hostile code that runs meanwhile: paths
// are resolved by openat2 without magic links, or as strictly by hand where the
// kernel has no openat2, and recursive work goes from descriptor to descriptor, so
// that exchanging a directory for a link during an operation leads nowhere.
package files

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// Options of a service.
type Options struct {
	// Root is the directory that is "/" to the service's paths; empty means "/".
	Root string
	// Workdir is what relative paths are below; empty means "/".
	Workdir string
	// Layers are descriptors of the directories with what is written to overlays that the root consists of, by
	// where these are mounted; none: the root is none that can be written to.
	Layers map[string]int
}

// A Service serves calls about files. Its methods may be called concurrently.
type Service struct {
	root    int // O_PATH descriptor
	workdir string
	layers  map[string]int
	started time.Time // before any code
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
	return &Service{root: fd, workdir: o.Workdir, layers: o.Layers, started: time.Now(), turns: newTurns()}, nil
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
	case agentproto.MethodTarLayer:
		return s.serveTarLayer
	case agentproto.MethodTarRoot:
		return s.serveTarRoot
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

// pathError says that op failed on a path of the sandbox.
func pathError(op, path string, err error) error {
	var known *agentproto.Error
	if errors.As(err, &known) {
		return known
	}
	return agentproto.Errorf(codeOf(err), "%s %q: %s", op, path, reason(err))
}

func codeOf(err error) agentproto.ErrorCode {
	var errno unix.Errno
	switch {
	case errors.Is(err, tarcheck.ErrTooLarge):
		return agentproto.CodeTooLarge
	case errors.Is(err, tarcheck.ErrDamaged):
		return agentproto.CodeBadRequest
	case !errors.As(err, &errno):
		return agentproto.CodeInternal
	}
	switch errno {
	case unix.ENOENT:
		return agentproto.CodeNotFound
	case unix.EEXIST:
		return agentproto.CodeExists
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return agentproto.CodePermission
	case unix.ENOTDIR:
		return agentproto.CodeNotDir
	case unix.EISDIR:
		return agentproto.CodeIsDir
	case unix.ENOTEMPTY:
		return agentproto.CodeNotEmpty
	case unix.ENOSPC, unix.EDQUOT:
		return agentproto.CodeNoSpace
	case unix.ELOOP, unix.EXDEV, unix.ENXIO:
		return agentproto.CodeUnsafe
	case unix.ENAMETOOLONG, unix.EINVAL:
		return agentproto.CodeBadRequest
	case unix.EFBIG:
		return agentproto.CodeTooLarge
	case unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.EBUSY, unix.EADDRINUSE:
		return agentproto.CodeBusy
	}
	return agentproto.CodeInternal
}

func reason(err error) string {
	switch {
	case errors.Is(err, unix.ELOOP):
		return "a symbolic link is in the way that must not be followed"
	case errors.Is(err, unix.ENXIO):
		return "it is not a regular file"
	case errors.Is(err, unix.EXDEV):
		return "it is in another file system"
	case errors.Is(err, unix.EISDIR):
		return "a directory is there"
	case errors.Is(err, unix.ENOTDIR):
		return "something on the way to it is not a directory"
	case errors.Is(err, unix.EROFS):
		return "this part of the sandbox is read-only: a root file system that can be written to is to be asked for (WritableRoot, --writable-root)"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "no space left within the disk limit"
	}
	return err.Error()
}

// turns are taken to work on files, first come, first served: there are
// [agentproto.MaxAtWork].
type turns chan struct{}

func newTurns() turns { return make(turns, agentproto.MaxAtWork) }

func (t turns) take() { t <- struct{}{} }
func (t turns) give() { <-t }

// yield lets others have a turn, where there are more than fit.
func (t turns) yield() {
	t.give()
	t.take()
}

// A job is a call that works on files. It has its turn, but while it waits for its
// client, who may be slow or not read at all.
type job struct {
	*agentproto.Call
	turns turns
}

// begin waits for a job's turn; ok means that it came before the call ended.
func (t turns) begin(call *agentproto.Call) (j *job, ok bool) {
	select {
	case t <- struct{}{}:
		return &job{Call: call, turns: t}, true
	case <-call.Done():
		return nil, false
	}
}

// away gives the turn up until back is called.
func (j *job) away() (back func()) {
	j.turns.give()
	return j.turns.take
}

// Read is the call's.
func (j *job) Read(ch agentproto.Channel, p []byte) (int, error) {
	defer j.away()()
	return j.Call.Read(ch, p)
}

// Write is the call's.
func (j *job) Write(ch agentproto.Channel, p []byte) (int, error) {
	defer j.away()()
	return j.Call.Write(ch, p)
}

// CloseWrite is the call's.
func (j *job) CloseWrite(ch agentproto.Channel) error {
	defer j.away()()
	return j.Call.CloseWrite(ch)
}

// Send is the call's.
func (j *job) Send(m agentproto.Message) error {
	defer j.away()()
	return j.Call.Send(m)
}

// End is the call's.
func (j *job) End(m agentproto.Message) error {
	defer j.away()()
	return j.Call.End(m)
}
