package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process is one of a pod, as the machine sees it.
type Process struct {
	PID      int
	Resident int64 // bytes
	Command  string
}

// Processes are those in the control group of a pod, by its UID. Of a pod in gVisor they
// are gVisor's own.
func (c *Cluster) Processes(podUID string) ([]Process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var list []Process
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(groups), "/pod"+podUID) {
			continue // another's, or it has ended
		}
		dir := filepath.Dir(file)
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		statm, err := os.ReadFile(filepath.Join(dir, "statm"))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		var size, pages int64
		if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
			return nil, fmt.Errorf("%s/statm: %w", dir, err)
		}
		list = append(list, Process{pid, pages * int64(os.Getpagesize()), strings.TrimRight(strings.ReplaceAll(string(command), "\x00", " "), " ")})
	}
	return list, nil
}
