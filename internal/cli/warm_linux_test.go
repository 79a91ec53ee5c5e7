package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

func init() { endWaiting = endWaitingIn }

// endWaitingIn ends the processes whose sandboxes wait in a state directory, or in one below it.
func endWaitingIn(state string) error {
	all, err := filepath.Glob("/proc/[0-9]*")
	errs := []error{err}
	for _, process := range all {
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			return err
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		command, _ := os.ReadFile(process + "/cmdline")
		env, _ := os.ReadFile(process + "/environ")
		if bytes.HasSuffix(command, []byte("\x00wait-warm\x00")) && bytes.Contains(append([]byte{0}, env...), []byte("\x00LLMSANDBOX_STATE_DIR="+state)) {
			errs = append(errs, endProcess(fd))
		}
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// endProcess has a process clean up, and waits for its end.
func endProcess(fd int) error {
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); errors.Is(err, unix.ESRCH) {
		return nil
	}
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
