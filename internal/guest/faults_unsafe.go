//go:build linux

package guest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unheard are the signals that nothing can be registered for: those by which the kernel
// reports a program's own mistakes, on which the Go runtime crashes no matter what sent them,
// and those that C libraries keep to themselves, which the runtime leaves alone. It has a
// handler for the one between the last two, by which its threads agree on their ids.
var unheard = [...]unix.Signal{
	unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS,
	32, 34,
}

// DropFaultSignals keeps code that shares the agent's uid from ending it by a signal
// that no handler can be registered for, where the agent is pid 1. They are ignored: that
// pid 1 has no handler is not enough, since the kernel lets such a signal through when it
// comes while the main thread blocks it and another thread does not. A real fault ends
// the agent nevertheless. Programs get the default of each back, see launch.
func DropFaultSignals() error {
	if unix.Getpid() != 1 {
		return nil // code of the same uid could kill it anyway
	}
	ignore := [4]uint64{sigIgn} // a struct sigaction
	for _, sig := range unheard {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&ignore)), 0, 8, 0, 0)
		if errno != 0 {
			return fmt.Errorf("ignore signal %d: %w", sig, errno)
		}
	}
	return nil
}

// sigIgn is SIG_IGN of the kernel's struct sigaction, whose first field is the handler.
const sigIgn = 1
