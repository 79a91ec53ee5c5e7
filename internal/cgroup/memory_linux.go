package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// AvailableMemory is how much memory this process and what it starts can take before the kernel has to take it from others, and how much there is in all, in
// bytes: of the machine, or of a control group that this process is in, whichever has less left. It fails where the kernel does not tell.
func AvailableMemory() (available, total int64, err error) { return availableMemory("/") }

func availableMemory(root string) (available, total int64, err error) {
	info, err := readNumbers(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, 0, fmt.Errorf("read how much memory there is: %w", err)
	}
	available, total = info["MemAvailable:"]<<10, info["MemTotal:"]<<10
	if available <= 0 || total <= 0 {
		return 0, 0, errors.New("read how much memory there is: the kernel does not tell how much is available")
	}
	mounts, err := readMounts(root)
	if err != nil {
		return 0, 0, fmt.Errorf("read the mounts of control groups: %w", err)
	}
	own, err := readOwn(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, 0, fmt.Errorf("read this process's control groups: %w", err)
	}
	for _, m := range mounts {
		name, files := "", groupFiles{"memory.max", "memory.current", "inactive_file"}
		if !m.v2 {
			name, files = "memory", groupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
			if !slices.Contains(m.controllers, name) {
				continue
			}
		}
		for dir := m.path(own[name]); ; dir = filepath.Dir(dir) {
			left, limit, err := files.left(dir)
			if err != nil {
				return 0, 0, fmt.Errorf("read the memory of control group %s: %w", dir, err)
			}
			if limit > 0 && limit < total {
				total = limit
			}
			if limit > 0 && left < available {
				available = left
			}
			if len(dir) <= len(m.point) {
				break
			}
		}
	}
	return available, total, nil
}

// groupFiles are the names of what a version of control groups tells of a group's memory.
type groupFiles struct{ limit, usage, inactive string }

// left is how much of a group's limit is left, with the files that the kernel would drop; a limit of 0 is none.
func (f groupFiles) left(dir string) (left, limit int64, err error) {
	text, err := os.ReadFile(filepath.Join(dir, f.limit))
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(text)) == "max" { // the root has none
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	if limit, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
		return 0, 0, err
	}
	text, err = os.ReadFile(filepath.Join(dir, f.usage))
	if err != nil {
		return 0, 0, err
	}
	used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	stat, err := readNumbers(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, 0, err
	}
	return max(limit-max(used-stat[f.inactive], 0), 0), limit, nil
}

// readNumbers reads a file whose lines are a name and a number each.
func readNumbers(path string) (map[string]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				all[f[0]] = n
			}
		}
	}
	return all, nil
}
