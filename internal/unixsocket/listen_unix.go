//go:build linux || darwin

// Package unixsocket listens on Unix sockets that only the caller's user and root can use.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxPath is the longest path that the address of a socket holds, with a zero byte at its end.
const maxPath = len(unix.RawSockaddrUnix{}.Path) - 1

// Listen listens on a socket that it makes at path, and removes when it is closed. No other user may be able to enter its directory. A socket
// that a process has left there is replaced; one on which a process listens is not. Connections of other users than the caller's and root are closed.
func Listen(path string) (net.Listener, error) {
	path, err := filepath.Abs(path) // also since a name that begins with @ would be none of a file
	if err != nil {
		return nil, err
	}
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s: the path of a socket has at most %d bytes: use a shorter one", path, maxPath)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	if err := checkPrivate(dir); err != nil {
		return nil, err
	}
	// Until dir is closed, so that of two processes that find an abandoned socket one does not remove that of the other.
	if err := lock(dir); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	if err := removeAbandoned(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &listener{l}, nil
}

// checkPrivate fails for a directory that other users than the caller and root may enter or rename files of.
func checkPrivate(dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir.Name(), Err: err}
	}
	if int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Errorf("the directory %s belongs to uid %d: use one of your own, of mode 0700", dir.Name(), st.Uid)
	}
	if mode := st.Mode & 0o777; mode&0o033 != 0 {
		return fmt.Errorf("other users can enter or write the directory %s (mode %#o): use one of mode 0700", dir.Name(), mode)
	}
	return nil
}

func lock(dir *os.File) error {
	for {
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// removeAbandoned removes a socket on which no process listens.
func removeAbandoned(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket: use another path", path)
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("%s: another process listens there: end it, or use another path", path), c.Close())
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("see whether a process listens: %w", err)
}

// A listener accepts connections of the caller's user and of root.
type listener struct{ *net.UnixListener }

// Accept waits for the next connection of a user who may connect. Others see theirs closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(c); err == nil && (uid == os.Geteuid() || uid == 0) {
			return c, nil
		}
		_ = c.Close() // nothing was written
	}
}

// peer is the user of the process that has connected.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { uid, failed = peerOf(int(fd)) })
	return uid, errors.Join(err, failed)
}
