package engine

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// A directStream is a connection to an agent's socket, which has no stderr beside it.
type directStream struct{ net.Conn }

func (directStream) Said() string { return "" }

// direct connects to the agent's socket without the engine, where this process is root on the engine's own
// machine. It returns nil where that cannot be for whatever reason, since the engine can always be asked: but it
// starts a program in the container for each stream, which takes most of the time of a short one.
//
// What listens must be the container's main process, by the number that the engine gave and by the container's
// id in its cgroup: the engine may be on another machine, whose numbers mean nothing here.
func (h *host) direct() agenthost.Stream {
	if h.pid == 0 || os.Geteuid() != 0 || !sameUsers(h.pid) {
		return nil
	}
	fd, err := socketIn(fmt.Sprintf("/proc/%d/ns/net", h.pid))
	if err != nil {
		return nil
	}
	socket := os.NewFile(uintptr(fd), "agent")
	defer socket.Close() // the connection has a descriptor of its own
	// It does not block: code inside may have filled the queue.
	if unix.Connect(fd, &unix.SockaddrUnix{Name: h.agent.Socket}) != nil {
		return nil
	}
	if peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil || int(peer.Pid) != h.pid {
		return nil
	}
	// Only now, since the number cannot be another process's as long as what listens lives.
	cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", h.pid))
	if err != nil || !strings.Contains(string(cgroup), h.container) {
		return nil
	}
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil
	}
	return directStream{conn}
}

// sameUsers reports whether a process has this one's user namespace: an agent takes no one but its own user and
// the root that it knows.
func sameUsers(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return false
	}
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	return err == nil && its == own
}

// socketIn makes a Unix socket in a network namespace, where it finds the abstract ones of that.
func socketIn(namespace string) (fd int, err error) {
	there, err := os.Open(namespace)
	if err != nil {
		return -1, err
	}
	defer there.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var here *os.File
		if here, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			runtime.UnlockOSThread()
			return
		}
		defer here.Close()
		if err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			return
		}
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		// A thread that cannot come back ends with this goroutine. Others live on: the end of one may be the
		// signal for which a child of this process waits.
		if unix.Setns(int(here.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return fd, err
}
