// Package agenthost has what is the same of all sandboxes whose agent is reached through
// a service that runs containers, such as an engine or a cluster. A backend for one more
// of these writes a [Host], starts the agent with [ServeArgs], and returns a [Session].
package agenthost

import (
	"context"
	"errors"
	"io"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Host is the container, pod or the like that one sandbox's agent runs in, as one handle
// sees it. Its methods may be called concurrently where they do not say otherwise.
type Host interface {
	// Connect opens a stream to the agent, which it has shown the agent's token. ctx ends at
	// the latest with the session. The error wraps ErrGone when the sandbox has ended.
	Connect(ctx context.Context) (Stream, error)
	// Await returns true once the sandbox has ended. It returns false when ctx has ended, or
	// when an end cannot be noticed at present: then it is called again after the next
	// Connect that succeeds. There is one call at a time.
	Await(ctx context.Context) bool
	// End says how the sandbox has ended, as far as that is known, and the exit code of its
	// container; 0 where that is not known.
	End() (end backend.End, code int)
	// RecordDeadline writes down for List and GC when the sandbox ends, which info says. It
	// is called before the agent has that deadline, and again when it has. It is not called
	// where the host was entered.
	RecordDeadline(ctx context.Context, info backend.Info, agentHas bool) error
	// Usage and Commit are those of backend.Machine.
	Usage(ctx context.Context) (backend.Usage, error)
	Commit(ctx context.Context, tag, overwrite string, files io.Reader) (id string, err error)
	// Remove ends the sandbox and removes what is left of it. Where agentEnded, the agent
	// has acknowledged that it ends: what goes with it need not be removed. There is one call
	// at a time, none after one that has succeeded, and none where the host was entered.
	Remove(ctx context.Context, agentEnded bool) error
	// Release gives up what this handle holds. Await has returned, and is not called again.
	Release()
}

// ErrGone is why a host cannot be connected to any more.
var ErrGone = errors.New("its container is gone or stopped")

// A Stream is a byte stream to an agent.
type Stream interface {
	io.ReadWriteCloser
	// Said is what the agent, or the service in its place, said on stderr.
	Said() string
}

// An Agent is what is needed to connect to an agent in a container.
type Agent struct {
	File   string // the path of its program
	Socket string // what it listens on, see Socket
	Token  string // what it wants to be shown
}

// Socket is the abstract socket that an agent listens on: it needs no file system, and code
// cannot unlink it.
func Socket(id string) string { return "@llmsandbox-" + id }

// A Description is what is known of a sandbox without asking it. It has most of the methods
// of backend.Machine that return it.
type Description struct {
	Sandbox  backend.Info
	Inside   backend.Guest
	Enforced backend.Capabilities
}

func (d *Description) ID() string                         { return d.Sandbox.ID }
func (d *Description) Guest() backend.Guest               { return d.Inside }
func (d *Description) Capabilities() backend.Capabilities { return d.Enforced }
