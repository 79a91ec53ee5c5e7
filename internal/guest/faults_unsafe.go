//go:build linux

package guest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faults are the signals by which the kernel tells of a program's own mistakes. The Go
// runtime crashes on them whoever sent them.
var faults = [...]unix.Signal{
	unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS,
}

// DropFaultSignals keeps code that shares the agent's uid from crashing it by the signal
// of a fault, where the agent is pid 1: the kernel drops what a process of the same
// namespace sends to pid 1 when that has no handler. A real fault still ends it.
func DropFaultSignals() error {
	if unix.Getpid() != 1 {
		return nil // code of the same uid could kill it anyway
	}
	var byDefault [4]uint64 // a zero struct sigaction
	for _, sig := range faults {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		if errno != 0 {
			return fmt.Errorf("give up the handler of signal %d: %w", sig, errno)
		}
	}
	return nil
}
