//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// abstract reports whether an address is a name in the abstract namespace, which
// belongs to the network namespace and not to a file system.
func abstract(address string) bool { return strings.HasPrefix(address, "@") }

// listen makes the agent's socket. One with a path can only be connected to by the
// agent's own user.
func listen(address string) (int, error) {
	if !abstract(address) {
		if err := clearPath(address); err != nil {
			return -1, err
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket: %w", err)
	}
	old := unix.Umask(0o177)
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: address})
	unix.Umask(old)
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on %s: %w", address, err)
	}
	return fd, nil
}

// clearPath makes room for a socket with a path.
func clearPath(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the socket's folder: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the socket of an agent before: %w", err)
	}
	return nil
}
