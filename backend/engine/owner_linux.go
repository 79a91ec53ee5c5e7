package engine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

var thisProcess = sync.OnceValue(func() owner {
	o := owner{pid: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return owner{pid: o.pid}
	}
	if o.namespace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return owner{pid: o.pid}
	}
	if o.start, err = startTime(o.pid); err != nil {
		return owner{pid: o.pid}
	}
	o.boot = strings.TrimSpace(string(boot))
	return o
})

// startTime is when a process started, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const startField = 19 // of those after the name
	if len(fields) <= startField {
		return 0, fmt.Errorf("process %d: its status is not understood", pid)
	}
	return strconv.ParseUint(string(fields[startField]), 10, 64)
}
