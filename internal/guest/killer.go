//go:build linux

package guest

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
)

// A killer is a process that ends all others of a sandbox that has no pid namespace, whose end would do it. It does so
// in one system call, kill of all: what is forked meanwhile is killed too, and the kernel forks nothing for a process
// that has been killed. It waits for the other end of its socket to be closed, which is also when the agent has died.
//
// Two Landlock domains, one in the other, are the bounds: the killer is in the outer one and can signal nothing outside
// of it, not even as root; all code is in the inner one and cannot signal the killer.
type killer struct {
	pid int

	mu sync.Mutex
	fd int // -1: it has ended
}

// startKiller is called on the spawner's thread, which is in both domains then, before that forks anything else.
func startKiller() (*killer, error) {
	scope, err := landlock.NewScope()
	if err != nil {
		return nil, err
	}
	defer unix.Close(scope)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("renounce privileges: %w", err)
	}
	if err := landlock.Enter(scope); err != nil {
		return nil, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	k := &killer{fd: ends[0]}
	pid, errno := forkKiller(uintptr(unix.Getpid()), uintptr(ends[1]))
	unix.Close(ends[1])
	if errno != 0 {
		unix.Close(ends[0])
		return nil, fmt.Errorf("fork what ends all processes: %w", errno)
	}
	k.pid = int(pid)
	if err := errors.Join(k.ready(), landlock.Enter(scope)); err != nil {
		k.end()
		return nil, err
	}
	return k, nil
}

// ready waits until it says that it is confined.
func (k *killer) ready() error {
	var b [1]byte
	if n, err := readFD(k.fd, b[:]); err != nil || n != 1 {
		return errors.Join(errors.New("what is to end all processes could signal others too"), err)
	}
	return nil
}

// before runs a fork, unless all has been killed: what it makes is killed then.
func (k *killer) before(fork func() (int, error)) (int, error) {
	if k == nil {
		return fork()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fd < 0 {
		return 0, unix.ECANCELED
	}
	return fork()
}

// end has it kill all, and waits for its own end. What it has killed may still be about to end.
func (k *killer) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fd < 0 {
		return
	}
	unix.Close(k.fd)
	k.fd = -1
	for {
		if _, err := unix.Wait4(k.pid, nil, unix.WALL, nil); err != unix.EINTR {
			return
		}
	}
}

// awaitChildren waits for all that the killer has killed: each is a child of the agent or becomes one. It looks at nothing in /proc, since
// the kernel then clears what it keeps of the agent's threads there, for which who waits for the agent would have to wait.
func awaitChildren() {
	for {
		if _, err := unix.Wait4(-1, nil, unix.WALL, nil); err != nil && err != unix.EINTR {
			return // ECHILD
		}
	}
}
