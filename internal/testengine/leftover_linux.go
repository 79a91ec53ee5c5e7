package testengine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// endLeftover waits for the daemon of a test binary that died. It got the signal to end with
// it, and may still be at it.
func endLeftover(pidfile, program string) error {
	data, err := os.ReadFile(pidfile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return os.Remove(pidfile) // a write that was cut off
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.Remove(pidfile)
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	// The id may be another's by now. The descriptor is bound to what is looked at.
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || strings.TrimSpace(string(comm)) != program {
		return os.Remove(pidfile)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end the leftover %s %d: %w", program, pid, err)
	}
	return awaitEnd(fd, fmt.Sprintf("the leftover %s %d", program, pid))
}

// awaitEnd waits for a process to end.
func awaitEnd(pidfd int, name string) error {
	deadline := time.Now().Add(stopTimeout)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("%s does not end within %v", name, stopTimeout)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
		if n > 0 {
			return nil
		}
	}
}
