package testengine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processes are descriptors of processes, which no other process of a reused id can
// take the place of.
type processes []int

// children are the processes that a process has started and that still run.
func children(pid int) (processes, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var kids processes
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread, or the process, has ended
		}
		for _, field := range strings.Fields(string(data)) {
			kid, err := strconv.Atoi(field)
			if err != nil {
				kids.close()
				return nil, fmt.Errorf("%s: %w", list, err)
			}
			fd, err := unix.PidfdOpen(kid, 0)
			if errors.Is(err, unix.ESRCH) {
				continue
			}
			if err != nil {
				kids.close()
				return nil, fmt.Errorf("process %d: %w", kid, err)
			}
			kids = append(kids, fd)
		}
	}
	return kids, nil
}

// end asks the processes to end, and waits until they have.
func (p processes) end(name string) error {
	for _, fd := range p {
		if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if err := awaitEnd(fd, "a child of "+name); err != nil {
			return err
		}
	}
	return nil
}

func (p processes) close() {
	for _, fd := range p {
		unix.Close(fd)
	}
}
