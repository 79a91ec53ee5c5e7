package local

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reservePort returns a socket that is bound to a free port of 127.0.0.1, for the proxy of a sandbox that shares this place's loopback.
func reservePort() (*os.File, uint16, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("make a socket for the sandbox's proxy: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "proxy")
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	in4, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return nil, 0, errors.Join(fmt.Errorf("reserve a port of the loopback for the sandbox's proxy: %w", err), socket.Close())
	}
	return socket, uint16(in4.Port), nil
}
