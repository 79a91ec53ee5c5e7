//go:build linux

package forward

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A listener is a call that listens.
type listener struct {
	call *agentproto.Call
	port uint16
	file *os.File
	raw  syscall.RawConn
	// room has an element for each waiting connection.
	room chan struct{}
	// replaced is closed when another call listens on the port, gone when this one has
	// let go of it.
	replaced, gone chan struct{}
}

// listenOn makes a listener that the runtime's poller serves.
func listenOn(call *agentproto.Call, port uint16) (*listener, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// Connections of a listener before may still linger.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	l := &listener{
		call: call, file: os.NewFile(uintptr(fd), "listener"), room: make(chan struct{}, maxWaiting),
		replaced: make(chan struct{}), gone: make(chan struct{}),
	}
	if in4, ok := name.(*unix.SockaddrInet4); ok {
		l.port = uint16(in4.Port)
	}
	if l.raw, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

// watch closes the listening socket when the call ends or another one takes the port
// over. Stop waits for what it stops.
func (l *listener) watch() (stop func()) {
	stopped := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-l.call.Done():
		case <-l.replaced:
		case <-stopped:
		}
		l.file.Close()
	})
	return func() {
		close(stopped)
		watcher.Wait()
	}
}

// accept waits for room and then for a connection.
func (l *listener) accept() (*os.File, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.replaced:
		return nil, os.ErrClosed
	case <-l.call.Done():
		return nil, os.ErrClosed
	}
	return Accept(l.raw, "connection")
}
