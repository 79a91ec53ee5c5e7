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
	"sync/atomic"
)

// AvailableMemory is how much memory this process and what it starts can take before the kernel has to take it from others, and how much there is in all, in
// bytes: of the machine, or of a control group that this process is in, whichever has less left. Which groups these are is found out once. It fails where
// the kernel does not tell.
func AvailableMemory() (available, total int64, err error) {
	groups := ownGroups.Load()
	if groups == nil {
		found, err := memoryGroups("/")
		if err != nil {
			return 0, 0, err
		}
		groups = &found
		ownGroups.Store(groups)
	}
	return availableMemory("/", *groups)
}

var ownGroups atomic.Pointer[[]memoryGroup]

// A memoryGroup is a control group that tells of its memory.
type memoryGroup struct{ dir, limit, usage, inactive string } // the names of what it tells differ between versions

// memoryGroups are those that this process is in.
func memoryGroups(root string) (groups []memoryGroup, err error) {
	mounts, err := readMounts(root)
	if err != nil {
		return nil, fmt.Errorf("read the mounts of control groups: %w", err)
	}
	own, err := readOwn(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, fmt.Errorf("read this process's control groups: %w", err)
	}
	for _, m := range mounts {
		name, g := "", memoryGroup{"", "memory.max", "memory.current", "inactive_file"}
		if !m.v2 {
			name, g = "memory", memoryGroup{"", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
			if !slices.Contains(m.controllers, name) {
				continue
			}
		}
		for g.dir = m.path(own[name]); ; g.dir = filepath.Dir(g.dir) {
			groups = append(groups, g)
			if len(g.dir) <= len(m.point) {
				break
			}
		}
	}
	return groups, nil
}

func availableMemory(root string, groups []memoryGroup) (available, total int64, err error) {
	info, err := readNumbers(filepath.Join(root, "proc/meminfo"), "MemTotal:", "MemAvailable:")
	if err != nil {
		return 0, 0, fmt.Errorf("read how much memory there is: %w", err)
	}
	total, available = info[0]<<10, info[1]<<10
	if available <= 0 || total <= 0 {
		return 0, 0, errors.New("read how much memory there is: the kernel does not tell how much is available")
	}
	machine := total
	for _, g := range groups {
		left, limit, err := g.left(available, machine)
		if err != nil {
			return 0, 0, fmt.Errorf("read the memory of control group %s: %w", g.dir, err)
		}
		if limit > 0 {
			available, total = min(available, left), min(total, limit)
		}
	}
	return available, total, nil
}

// left is how much of a group's limit is left, with the files that the kernel would drop; a limit of 0 is none. What cannot make it less than enough is not
// read, since each request of a server asks.
func (g memoryGroup) left(enough, machine int64) (left, limit int64, err error) {
	text, err := os.ReadFile(filepath.Join(g.dir, g.limit))
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(text)) == "max" { // the root has none
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	if limit, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
		return 0, 0, err
	}
	if limit-machine >= enough { // however much is used
		return enough, limit, nil
	}
	text, err = os.ReadFile(filepath.Join(g.dir, g.usage))
	if err != nil {
		return 0, 0, err
	}
	used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	if left = max(limit-used, 0); left >= enough {
		return left, limit, nil
	}
	stat, err := readNumbers(filepath.Join(g.dir, "memory.stat"), g.inactive)
	if err != nil {
		return 0, 0, err
	}
	return max(limit-max(used-stat[0], 0), 0), limit, nil
}

// readNumbers reads a file whose lines are a name and a number each, and returns the numbers of those names; 0 of one that is not there.
func readNumbers(path string, names ...string) ([]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	numbers, missing := make([]int64, len(names)), len(names)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, " ")
		at := slices.Index(names, name)
		if at < 0 {
			continue
		}
		if f := strings.Fields(rest); len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				numbers[at] = n
			}
		}
		if missing--; missing == 0 {
			break
		}
	}
	return numbers, nil
}
