//go:build linux

package landlock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// createRuleset makes a ruleset. A kernel older than the struct accepts it as
// long as the part that it does not know is zero.
func createRuleset(attr *unix.LandlockRulesetAttr) (int, unix.Errno) {
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	return int(fd), e
}

func addRule(ruleset int, rule *unix.LandlockPathBeneathAttr) unix.Errno {
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(rule)), 0, 0, 0)
	return e
}

// allowPort adds a rule for connecting to a TCP port.
func allowPort(ruleset int, port uint16) unix.Errno {
	const netPort = 2 // LANDLOCK_RULE_NET_PORT
	rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), netPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	return e
}
