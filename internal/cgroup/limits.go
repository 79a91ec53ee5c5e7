package cgroup

import (
	"fmt"
	"math"
)

// Bounds of limits that make sense.
const (
	minMemory = 16 << 20 // the agent and one small interpreter
	period    = 100000   // microseconds
	minQuota  = 1000     // microseconds; the kernel refuses less
	maxPIDs   = 1 << 22  // the kernel's own PID_MAX_LIMIT
	maxCPUs   = 1 << 16
)

// Limits of one group. Zero means no limit.
type Limits struct {
	Memory int64   // bytes; swap is never used on top
	CPUs   float64 // CPU seconds per second; at least 0.01
	PIDs   int64   // processes and threads the code may have at once
	// Reserve is added to PIDs: the agent's own threads, which live in the same
	// group and must not eat the code's allowance.
	Reserve int64
}

func (l Limits) validate() error {
	switch {
	case l.Memory < 0 || l.Memory > 0 && l.Memory < minMemory:
		return fmt.Errorf("memory limit of %d bytes makes no sense: nothing starts in less than %d MiB; ask for more, or 0 for no limit", l.Memory, minMemory>>20)
	case math.IsNaN(l.CPUs) || l.CPUs < 0 || l.CPUs > maxCPUs || l.CPUs > 0 && l.quota() < minQuota:
		return fmt.Errorf("limit of %g CPUs makes no sense: ask for 0.01 to %d, or 0 for no limit", l.CPUs, maxCPUs)
	case l.PIDs < 0 || l.PIDs > maxPIDs || l.Reserve < 0 || l.Reserve > maxPIDs:
		return fmt.Errorf("limit of %d processes makes no sense: ask for 1 to %d, or 0 for no limit", l.PIDs, maxPIDs)
	}
	return nil
}

// quota is the CPU time in microseconds per period.
func (l Limits) quota() int64 { return int64(math.Round(l.CPUs * period)) }

// names of what l asks for.
func (l Limits) controllers() []string {
	var c []string
	if l.Memory > 0 {
		c = append(c, "memory")
	}
	if l.CPUs > 0 {
		c = append(c, "cpu")
	}
	if l.PIDs > 0 {
		c = append(c, "pids")
	}
	return c
}

// validName keeps names to one path element that is also a systemd unit name.
func validName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("group name %q must have 1 to 64 characters", name)
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && i > 0) {
			return fmt.Errorf("group name %q may only have a-z, 0-9 and, after the first, -", name)
		}
	}
	return nil
}
