//go:build linux

package forward

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A Reserved is the port of a proxy on a loopback that others share: that of a sandbox without a network namespace. A socket listens on
// it as long as the agent lives, so that nobody else can have it. Whoever is on that loopback can connect to it, and is let in only if this
// process has made the connection, by Connect: the code has it do so, and needs no secret that it could give away.
type Reserved struct {
	socket int
	port   uint16

	mu     sync.Mutex
	served bool          // a call takes what is connected
	used   bool          // one has
	made   [1 << 13]byte // a bit for each local port of a connection that was made and not accepted yet
}

// NewReserved takes a socket that is bound to a port of 127.0.0.1.
func NewReserved(socket int) (*Reserved, error) {
	port, local := portOf(unix.Getsockname(socket))
	if !local || port == 0 {
		return nil, errors.New("the proxy's socket is not bound to a port of 127.0.0.1")
	}
	if err := unix.SetNonblock(socket, true); err != nil {
		return nil, err
	}
	if err := noDelay(socket); err != nil {
		return nil, err
	}
	if err := unix.Listen(socket, backlog); err != nil {
		return nil, err
	}
	return &Reserved{socket: socket, port: port}, nil
}

// Port is the port that is reserved.
func (r *Reserved) Port() uint16 { return r.port }

// Used reports whether a call has listened on it.
func (r *Reserved) Used() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// mark notes whether a connection with that local port was made, and returns what was noted. It is called with mu held.
func (r *Reserved) mark(port uint16, made bool) (was bool) {
	b, bit := &r.made[port>>3], byte(1)<<(port&7)
	was = *b&bit != 0
	*b &^= bit
	if made {
		*b |= bit
	}
	return was
}

// listen lets connections be made, and returns a descriptor to accept them from.
func (r *Reserved) listen() (int, error) {
	fd, err := unix.FcntlInt(uintptr(r.socket), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served, r.used = true, true
	return fd, nil
}

// close refuses connections until the next listen, and ends those that wait.
func (r *Reserved) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = false
	r.made = [len(r.made)]byte{}
	for {
		conn, _, err := unix.Accept4(r.socket, unix.SOCK_CLOEXEC)
		if err != nil && err != unix.EINTR && err != unix.ECONNABORTED {
			return // EAGAIN: there is none any more
		}
		if err == nil {
			unix.Close(conn)
		}
	}
}

// connectWait bounds how long a connection may take, in milliseconds: as long as none is accepted.
const connectWait = 1000

// Connect returns a socket of that family, AF_INET or AF_INET6, that is connected to the port, and does not block.
func (r *Reserved) Connect(family int) (socket int, err error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	port, err := r.begin(fd, family)
	if err == unix.EINPROGRESS {
		err = await(fd)
	}
	if err != nil {
		r.mu.Lock()
		r.mark(port, false)
		r.mu.Unlock()
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// begin makes it known that a connection is this process's before the connection can be accepted.
func (r *Reserved) begin(fd, family int) (port uint16, err error) {
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: int(r.port), Addr: [4]byte{127, 0, 0, 1}}
	if family == unix.AF_INET6 {
		to = &unix.SockaddrInet6{Port: int(r.port), Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.served {
		return 0, unix.ECONNREFUSED
	}
	if err = unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		return 0, err
	}
	if port, _ = portOf(unix.Getsockname(fd)); port != 0 {
		r.mark(port, true)
	}
	return port, err
}

// await waits until a socket is connected.
func await(fd int) error {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, connectWait)
	switch {
	case err != nil:
		return err
	case n == 0:
		return unix.ETIMEDOUT
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err
}

// owns reports, once for each connection that was accepted, whether it is one that this process has made: as long as that one is
// open, no other has its local address and port.
func (r *Reserved) owns(conn *os.File) bool {
	var port uint16
	local := false
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { port, local = portOf(unix.Getpeername(int(fd))) })
	}
	if err != nil || !local {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mark(port, false)
}

// portOf is the port of an address, and whether that is 127.0.0.1.
func portOf(address unix.Sockaddr, err error) (port uint16, local bool) {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port), a.Addr == [4]byte{127, 0, 0, 1}
	case *unix.SockaddrInet6:
		return uint16(a.Port), false
	}
	return 0, false
}
