//go:build linux

package forward

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pause is how long accepting rests when a limit of descriptors or memory is reached.
const pause = 50 * time.Millisecond

// Accept waits for a connection to a listening socket as long as it takes, whatever the kernel
// is short of. The socket must be non-blocking: the runtime's poller waits. It fails when the socket is closed, or is no listening one; the file it
// returns has that name.
func Accept(socket syscall.RawConn, name string) (*os.File, error) {
	for {
		conn, failed := -1, error(nil)
		err := socket.Read(func(fd uintptr) bool {
			conn, _, failed = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return failed != unix.EAGAIN
		})
		switch {
		case err != nil:
			return nil, err
		case failed == unix.EINTR, failed == unix.ECONNABORTED:
		case failed == unix.EMFILE, failed == unix.ENFILE, failed == unix.ENOBUFS, failed == unix.ENOMEM:
			// No event reports when there is room again, and giving up would make the
			// sandbox unreachable.
			time.Sleep(pause)
		case failed != nil:
			return nil, failed
		default:
			return os.NewFile(uintptr(conn), name), nil
		}
	}
}
