//go:build linux

// Package forward serves the calls of the agent protocol that forward TCP connections
// between a client and the sandbox's own loopback, in both directions.
package forward

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Service serves calls about connections. Its zero value is ready, and its methods may
// be called concurrently.
type Service struct {
	// Reserved is the one port that can be listened on, where the loopback is not the sandbox's own; nil: any can.
	Reserved *Reserved
	conns    connections
}

// closeWith closes a connection when its call ends, until stop is called. Stop waits
// for what it stops.
func closeWith(call *agentproto.Call, conn *os.File) (stop func()) {
	stopped := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-call.Done():
			conn.Close()
		case <-stopped:
		}
	})
	return func() {
		close(stopped)
		watcher.Wait()
	}
}

// tunnel copies in both directions until both have ended, the connection is broken or the
// call has ended. A server that has closed its end looks like one that has only
// ended what it sends: the way to it stays open until the caller ends it, or its
// kernel refuses what comes.
func tunnel(call *agentproto.Call, conn *os.File) error {
	defer conn.Close()
	defer closeWith(call, conn)()
	received := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(output{call}, onlyReader{conn}, make([]byte, 32<<10))
		if err == nil {
			err = call.CloseWrite(agentproto.ChanOut)
		} else {
			err = agentproto.Errorf(codeOf(err), "the connection inside the sandbox broke: %v", err)
			// Wakes the other direction. It fails when the call has ended already.
			_ = call.Fail(agentproto.Errorf(agentproto.CodeInternal, "%v", err))
		}
		received <- err
	}()
	_, err := io.CopyBuffer(onlyWriter{conn}, input{call}, make([]byte, 32<<10))
	if err == nil {
		if raw, rawErr := conn.SyscallConn(); rawErr == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
		}
	}
	// A server that takes no more may have answered before: that still comes.
	return <-received
}

// codeOf is what a client is answered with when the kernel refuses a connection or a port.
func codeOf(err error) agentproto.ErrorCode {
	var errno unix.Errno
	errors.As(err, &errno)
	switch errno {
	case unix.EACCES, unix.EPERM:
		return agentproto.CodePermission
	case unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.EADDRINUSE:
		return agentproto.CodeBusy
	}
	return agentproto.CodeInternal
}

// input and output are a call's byte channels.
type input struct{ call *agentproto.Call }

func (i input) Read(p []byte) (int, error) { return i.call.Read(agentproto.ChanIn, p) }

type output struct{ call *agentproto.Call }

func (o output) Write(p []byte) (int, error) { return o.call.Write(agentproto.ChanOut, p) }

// onlyReader and onlyWriter hide what would make io.CopyBuffer leave its buffer aside.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// ServeDial connects to a port of the loopback and carries bytes until both ends have ended.
func (s *Service) ServeDial(call *agentproto.Call) error {
	var req agentproto.DialRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	if req.Port == 0 {
		return agentproto.Errorf(agentproto.CodeBadRequest, "port 0 cannot be connected to: ports are 1 to 65535")
	}
	conn, err := connect(call, unix.AF_INET, &unix.SockaddrInet4{Port: int(req.Port), Addr: [4]byte{127, 0, 0, 1}})
	if errors.Is(err, unix.ECONNREFUSED) {
		if conn6, err6 := connect(call, unix.AF_INET6, &unix.SockaddrInet6{Port: int(req.Port), Addr: [16]byte{15: 1}}); err6 == nil {
			conn, err = conn6, nil
		}
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		return agentproto.Errorf(agentproto.CodeNotFound, "nothing listens on port %d of the sandbox", req.Port)
	}
	if err != nil {
		return agentproto.Errorf(codeOf(err), "connect to port %d of the sandbox: %v", req.Port, err)
	}
	if err := call.Send(&agentproto.Empty{}); err != nil {
		conn.Close()
		return err
	}
	if err := tunnel(call, conn); err != nil {
		return err
	}
	return call.End(&agentproto.Empty{})
}

// connect makes a connection that the runtime's poller serves. It gives up when the
// call ends: a server whose backlog is full leaves it waiting for minutes.
func connect(call *agentproto.Call, family int, addr unix.Sockaddr) (*os.File, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err = noDelay(fd); err == nil {
		err = unix.Connect(fd, addr)
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, err
	}
	conn := os.NewFile(uintptr(fd), "connection")
	if err == unix.EINPROGRESS {
		err = connected(call, conn)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// noDelay has the kernel send what is written at once. Otherwise the second of two small pieces, as
// in HTTP/2, waits until the other end acknowledges the first, which it may put off for 40 ms.
func noDelay(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) }

// connected waits until a connection is made.
func connected(call *agentproto.Call, conn *os.File) error {
	defer closeWith(call, conn)()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		// The poller reports changes only, and this one may be past already.
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 0); err == unix.EINTR || err == nil && n == 0 {
			return false
		}
		var errno int
		if errno, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); failed == nil && errno != 0 {
			failed = unix.Errno(errno)
		}
		return true
	})
	if err != nil {
		return err
	}
	return failed
}
