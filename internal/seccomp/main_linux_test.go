package seccomp

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// underFilter, when set, makes this binary load a filter, that of Entering or Process if it is so said, and execute
// its arguments: the launcher of the tests that run real programs.
const underFilter = "LLMSANDBOX_TEST_UNDER_FILTER"

func TestMain(m *testing.M) {
	if os.Getenv(underFilter) == "" {
		os.Exit(m.Run())
	}
	if err := launch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "launcher:", err)
	}
	os.Exit(125)
}

func launch(argv []string) error {
	filter := Filter
	switch name := os.Getenv(underFilter); {
	case name == "entering":
		filter = Entering
	case strings.HasPrefix(name, "process-"):
		filter = func(arch string) ([]byte, error) { return program(name, arch) }
	}
	raw, err := filter(runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := os.Unsetenv(underFilter); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(raw) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("load the filter: %w", e)
	}
	return fmt.Errorf("execute %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}
