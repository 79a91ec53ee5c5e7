package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
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
	group  *cgroup.Group
	// entrance is the socket of the process that enters other sandboxes; nil: none does.
	entrance *os.File
	// parent is that of the sandbox from which a process with that tag is forked into this one, whose users are known; nil: none is.
	parent   *entrance
	tag      string
	identity identity
	// users waits for what names them: an image, not the host's root.
	users func() (identity, error)
	// contents waits for everything else.
	contents func() (contents, error)
}

// contents are what is in a sandbox, and what each process is held to.
type contents struct {
	mounts   []mount
	places   places   // in place of mounts, where there is no mount namespace
	disk     *os.File // a detached mount; nil for a tmpfs
	diskSize int64    // 0: no limit
	workdir  string
	// startDir is a directory of the image, about which the process says whether code can
	// have it as its working directory; may be empty.
	startDir string
	sudo     bool // code may become root
	rlimits  []nsinit.Rlimit
	// watchMemory and watchDisk are limits that the agent looks after itself; 0: it does not.
	watchMemory, watchDisk int64
}

// A process is the first one of a sandbox, the agent, as its isolator started it.
type process struct {
	pid   int
	pidfd *os.File
	// parent has started it, and waits for it, as the process launched; nil: it is a child of this process.
	parent   *entrance
	launched int
	// owner is what the agent watches: its closing shows that the owner has ended.
	owner *os.File
	// tag marks the processes of a sandbox without a pid namespace, which the agent ends before it ends itself; 0: the kernel does.
	tag      uint64
	controls []backend.Control // what only the start of this sandbox shows
	startDir bool              // whether code can have contents.startDir as its working directory
	proc     nsinit.Proc
}

// kill ends the agent and everything in the sandbox: because it is the first of its pid namespace, or because it does so itself
// when its owner lets go of it.
func (p *process) kill() error {
	if p.tag != 0 {
		return p.letGo()
	}
	return p.killAgent()
}

func (p *process) killAgent() error {
	err := signalKill(p.pidfd)
	if errors.Is(err, errClosed) { // it is, once the process has ended
		return nil
	}
	return err
}

// lives reports whether the agent has not ended.
func (p *process) lives() bool {
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return false // it is closed once the process has ended
	}
	var now error
	err = raw.Control(func(fd uintptr) { now = ended(int(fd)) })
	return err == nil && now == unix.EAGAIN
}

// close gives up what is held of a process that has ended.
func (p *process) close() {
	p.owner.Close()
	p.pidfd.Close()
}

// errClosed is why a handle's process cannot be killed any more.
var errClosed = errors.New("the handle is closed")

func signalKill(pidfd *os.File) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	var kerr error
	if err := raw.Control(func(fd uintptr) { kerr = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) }); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	if kerr == unix.ESRCH {
		return nil
	}
	return kerr
}

// wait returns when the agent and all of the sandbox have ended, and reaps it.
func (p *process) wait() (status unix.WaitStatus, err error) {
	status, err = p.waitAgent()
	if p.tag != 0 && !(err == nil && status.Exited()) {
		err = errors.Join(err, endTagged(p.tag))
	}
	return status, err
}

func (p *process) waitAgent() (status unix.WaitStatus, err error) {
	if p.parent != nil {
		if err := awaitPidfd(p.pidfd, ended); err != nil {
			return 0, err
		}
		return p.parent.wait(p.launched), nil
	}
	err = awaitPidfd(p.pidfd, func(int) error {
		for { // its pid is its own until it is reaped, here
			pid, err := unix.Wait4(p.pid, &status, unix.WNOHANG, nil)
			switch {
			case err == unix.EINTR:
			case err == nil && pid == 0:
				return unix.EAGAIN
			default:
				return err
			}
		}
	})
	return status, err
}

// ended is for awaitPidfd where another process waits for it.
func ended(fd int) error {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err == nil && n == 0 || err == unix.EINTR {
		return unix.EAGAIN
	}
	return err
}

// awaitPidfd calls try when the process of a pidfd may have ended, until it no longer
// returns EAGAIN. It takes no thread while it waits.
func awaitPidfd(pidfd *os.File, try func(fd int) error) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var werr error
	if err := raw.Read(func(fd uintptr) bool {
		werr = try(int(fd))
		return werr != unix.EAGAIN
	}); err != nil {
		return err
	}
	return werr
}

// openAgent returns a pidfd of the agent of a record, and not of another process that
// got its pid.
func openAgent(r *record) (*os.File, error) {
	fd, err := unix.PidfdOpen(r.AgentPID, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "agent")
	// Read after the pidfd was opened, so both speak of one process.
	start, err := startTime(r.AgentPID)
	if err == nil && start != r.AgentStart {
		err = unix.ESRCH
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
