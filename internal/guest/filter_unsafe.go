//go:build linux

package guest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loadFilter keeps the seccomp filter in the form that the kernel takes it.
func (a *Agent) loadFilter(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	n := len(raw) / unix.SizeofSockFilter
	if len(raw)%unix.SizeofSockFilter != 0 || n > 4096 {
		return fmt.Errorf("the seccomp filter of %d bytes is not an array of at most 4096 instructions", len(raw))
	}
	program := make([]unix.SockFilter, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&program[0])), len(raw)), raw)
	a.seccomp = &sockFprog{len: uint16(n), filter: &program[0]}
	return nil
}
