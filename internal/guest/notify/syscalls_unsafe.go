//go:build linux

package notify

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A notification is struct seccomp_notif, and how times in it are to be read.
type notification struct {
	received
	clock clock
}

type received struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const (
	requestValid = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	requestAddFD = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
)

// Listen loads a filter for the calling thread, which must have no_new_privs, and all that it starts from now on. Their
// calls that the filter hands over come over the descriptor that it returns.
func Listen(filter []byte) (int, error) {
	n := len(filter) / unix.SizeofSockFilter
	program := make([]unix.SockFilter, n)
	if n == 0 || n > 4096 || len(filter)%unix.SizeofSockFilter != 0 {
		return -1, fmt.Errorf("the seccomp filter of %d bytes is not an array of 1 to 4096 instructions", len(filter))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&program[0])), len(filter)), filter)
	prog := unix.SockFprog{Len: uint16(n), Filter: &program[0]}
	// A signal does not interrupt who waits for an answer, or a program with many would never get one. It does so for the
	// moment before the call is received: then it is made again, or fails with EINTR if the program has asked for that.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return -1, fmt.Errorf("have system calls handed over: %w", e)
	}
	return int(fd), nil
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); e != 0 {
		return e
	}
	return nil
}

func (n *notification) receive(listener int) error {
	return ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n.received))
}

// valid fails when the caller does not wait any more.
func (n *notification) valid(listener int) error {
	return ioctl(listener, requestValid, unsafe.Pointer(&n.id))
}

// give puts a copy of a descriptor in place of one of the caller's.
func (n *notification) give(listener, fd, as, flags int) error {
	add := struct {
		id                          uint64
		flags, from, to, newFDFlags uint32
	}{n.id, unix.SECCOMP_ADDFD_FLAG_SETFD, uint32(fd), uint32(as), uint32(flags)}
	return ioctl(listener, requestAddFD, unsafe.Pointer(&add))
}

// answer has the call return.
func (c *call) answer(err error) {
	r := response{id: c.id}
	switch errno, ok := err.(unix.Errno); {
	case ok:
		r.errno = -int32(errno)
	case err != nil:
		r.errno = -int32(unix.EPERM)
	}
	_ = ioctl(c.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // fails when the caller has been killed
}
