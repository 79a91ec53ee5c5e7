//go:build linux

package forward

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

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
	err = unix.Connect(fd, addr)
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
