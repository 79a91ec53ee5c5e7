//go:build linux

package guest

import (
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Options tell an agent what it runs code as.
type Options struct {
	// CodeUID and CodeGID are what a process gets by default.
	CodeUID, CodeGID uint32
	// Workdir is the default working directory; empty means "/".
	Workdir string
	// Seccomp is a raw array of struct sock_filter that every process gets; empty
	// means none.
	Seccomp []byte
	// Landlock is a ruleset's descriptor that every process is restricted by;
	// UseLandlock reports whether there is one.
	Landlock    int
	UseLandlock bool
	// Rlimits are set for every process before those of its request.
	Rlimits []agentproto.Rlimit
	// OOMScoreAdj is given to every process, so that the kernel kills code rather
	// than the agent when memory runs out. 0 leaves it as it is.
	OOMScoreAdj int
	// CountOOM has the end of every process tell how many the kernel killed for
	// memory meanwhile, where the agent can see that.
	CountOOM bool
	// Deadline is when the agent ends by itself; zero: never.
	Deadline time.Time
	// Idle is after how long without a call or a process it does; 0: never.
	Idle time.Duration
	// MaxProcesses bounds how many processes run at once that were started by
	// request; 0 means 1024.
	MaxProcesses int
	// BufferSize bounds the unacknowledged output kept per process and channel,
	// in bytes; 0 means 1 MiB.
	BufferSize int
	// OnSpawnerThread runs first on the thread that all processes are forked from,
	// for what is a thread's own, such as unshared namespaces of children.
	OnSpawnerThread func() error
	// Prepare, when set, runs beside serving, and every process waits for it: what
	// they need that takes its time. Its error is that of every start.
	Prepare func() error
	// Files serves the calls about files; nil means they are not supported.
	Files Files
	// Capabilities are added to those the agent finds by itself.
	Capabilities []string
}

// Files is what the agent needs of the service of files.
type Files interface {
	// ServeCall reports whether the call's method was one of its own.
	ServeCall(*agentproto.Call) bool
	WriteInline([]agentproto.InlineFile) error
	RemoveAll(paths []string) error
}

const (
	defaultMaxProcesses = 1024
	defaultBufferSize   = agentproto.Window + 512<<10
	// maxEnded bounds how many ended processes are kept for a later attach.
	maxEnded = 64
)
