//go:build linux

package guest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loadFilter returns a seccomp filter in the form that the kernel takes it; nil: there is none.
func loadFilter(raw []byte) (*sockFprog, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	n := len(raw) / unix.SizeofSockFilter
	if len(raw)%unix.SizeofSockFilter != 0 || n > 4096 {
		return nil, fmt.Errorf("the seccomp filter of %d bytes is not an array of at most 4096 instructions", len(raw))
	}
	program := make([]unix.SockFilter, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&program[0])), len(raw)), raw)
	return &sockFprog{len: uint16(n), filter: &program[0]}, nil
}
