package local

import (
	"context"
	"os"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// An isolator keeps sandboxes apart from the machine and from each other. All that does not
// depend on how it does so is common to all sandboxes: the state directory with its lock
// and the agent's socket, by which other processes attach, the users, the cgroup, the
// disk, the list of mounts, the record and the deadline.
type isolator interface {
	// capabilities report how it isolates the sandboxes of these users on this machine.
	capabilities(id identity) backend.Capabilities
	// start starts the agent in a new sandbox and returns when it serves its socket.
	// When it fails, it has ended what it started.
	start(ctx context.Context, l *launch) (*process, error)
}

// A launch is what an isolator starts a sandbox from. What takes time to make is made
// while the isolator starts what does not need it.
type launch struct {
	agent  string   // path of the agent's binary
	timers []string // arguments of the agent that say when it ends by itself
	dir    string   // the sandbox's own directory
	empty  string   // an empty directory
	// socket is the one that the agent is to serve, a listening unix socket.
	socket *os.File
	group  group
	// users waits for what names them: an image, not the host's root.
	users func() (identity, error)
	// contents waits for everything else.
	contents func() (contents, error)
}

// contents are what is in a sandbox, and what each process is held to.
type contents struct {
	mounts   []mount
	disk     *os.File // a detached mount; nil for a tmpfs
	diskSize int64    // 0: no limit
	// startDir is a directory of the image, about which the process says whether code can
	// have it as its working directory; may be empty.
	startDir string
	rlimits  []nsinit.Rlimit
}
