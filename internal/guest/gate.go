//go:build linux

package guest

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A gate waits until a pipe can be read, and is closed at all other times. A file that the
// runtime's poller serves itself wakes a thread at each write of the program, also when the
// reader is busy or wants to wait; through a gate a write wakes one only while the reader
// waits. It is an epoll instance of the one pipe, which reports once for each time it is armed.
type gate struct {
	file  *os.File
	raw   syscall.RawConn
	epoll int // the file's descriptor
	pipe  int
	armed bool
}

func newGate(pipe *os.File) (*gate, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	g := &gate{epoll: fd, pipe: int(pipe.Fd())}
	err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, g.pipe, &unix.EpollEvent{Events: unix.EPOLLONESHOT})
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	g.file = os.NewFile(uintptr(fd), "gate")
	if g.raw, err = g.file.SyscallConn(); err != nil {
		g.file.Close()
		return nil, err
	}
	return g, nil
}

// read calls try with the pipe until it returns true, and waits in between until the pipe can
// be read, as syscall.RawConn's Read does. It has one caller at a time.
func (g *gate) read(try func(fd uintptr) bool) error {
	return g.raw.Read(func(uintptr) bool {
		if g.armed {
			g.armed = false
			var event [1]unix.EpollEvent
			_, _ = unix.EpollWait(g.epoll, event[:], 0) // what it reports, the pipe tells better
		}
		if try(uintptr(g.pipe)) {
			return true
		}
		// The pipe and the gate are both open, so there is nothing that could fail.
		_ = unix.EpollCtl(g.epoll, unix.EPOLL_CTL_MOD, g.pipe, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
		g.armed = true
		return false
	})
}
