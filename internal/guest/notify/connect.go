//go:build linux

package notify

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// connect has a socket of this process connected to the proxy, and puts it in place of the caller's. Where that does not block,
// it is connected as well: it takes as long as the proxy is on the same machine.
func (c *call) connect() error {
	family, err := c.proxyAddress()
	if err != nil {
		return err
	}
	fd := int(int32(c.args[0]))
	flags, err := c.socketFlags(fd)
	if err != nil {
		return err
	}
	socket, err := c.connectTo(family)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if flags&unix.O_NONBLOCK == 0 {
		if err := unix.SetNonblock(socket, false); err != nil {
			return err
		}
	}
	return c.give(c.listener, socket, fd, flags&unix.O_CLOEXEC)
}

// mapped is 127.0.0.1 for sockets of version 6.
var mapped = [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}

// proxyAddress reads the address, and returns the family by which it is that of the proxy. Any other gets the error of a
// host without a network.
func (c *call) proxyAddress() (family int, err error) {
	size := int(int32(c.args[2]))
	if size < 2 || size > unix.SizeofSockaddrAny {
		return 0, unix.EINVAL
	}
	b := make([]byte, size)
	if n, err := c.read(c.args[1], b); err != nil {
		return 0, err
	} else if n < size {
		return 0, unix.EFAULT
	}
	family = int(binary.NativeEndian.Uint16(b))
	var ip []byte
	switch {
	case family == unix.AF_INET && size >= unix.SizeofSockaddrInet4:
		ip = b[4:8]
	case family == unix.AF_INET6 && size >= unix.SizeofSockaddrInet6-4: // without the scope
		ip = b[8:24]
	default:
		return 0, unix.EAFNOSUPPORT
	}
	local := bytes.Equal(ip, mapped[:]) || bytes.Equal(ip, mapped[12:])
	switch port := binary.BigEndian.Uint16(b[2:]); {
	case local && port == c.port && c.connectTo != nil:
		return family, nil
	case local:
		return 0, unix.ECONNREFUSED
	}
	return 0, unix.ENETUNREACH
}

// socketFlags are those of a descriptor of the caller, which is a socket.
func (c *call) socketFlags(fd int) (int, error) {
	if fd < 0 {
		return 0, unix.EBADF
	}
	buf := make([]byte, 64)
	n, err := unix.Readlinkat(c.task, "fd/"+strconv.Itoa(fd), buf)
	if err == unix.ENOENT {
		return 0, unix.EBADF
	}
	if err != nil {
		return 0, unix.EPERM
	}
	if !strings.HasPrefix(string(buf[:n]), "socket:") {
		return 0, unix.ENOTSOCK
	}
	info, err := unix.Openat(c.task, "fdinfo/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, unix.EPERM
	}
	defer unix.Close(info)
	text := make([]byte, 256)
	if n, err = unix.Read(info, text); err != nil {
		return 0, unix.EPERM
	}
	_, rest, _ := strings.Cut(string(text[:n]), "flags:\t")
	line, _, _ := strings.Cut(rest, "\n")
	flags, err := strconv.ParseUint(line, 8, 32)
	if err != nil {
		return 0, unix.EPERM
	}
	return int(flags), nil
}
