//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// cgroupDir is where engines show a container the files of its own control group.
const cgroupDir = "/sys/fs/cgroup"

// A gauge is one figure of a control group, in the files where it may be: of version 2,
// and of version 1.
type gauge struct {
	name  string
	files []string
}

var gauges = []gauge{
	{"memory", []string{"memory.current", "memory/memory.usage_in_bytes"}},
	{"peak", []string{"memory.peak", "memory/memory.max_usage_in_bytes"}},
	{"cpu", []string{"cpu.stat", "cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"}},
}

// writeUsage reports what the container uses, one line each: "memory BYTES", "peak BYTES"
// and "cpu NANOSECONDS". What is not shown here is left out.
func writeUsage(w io.Writer, dir string) error {
	for _, g := range gauges {
		for _, file := range g.files {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read the control group: %w", err)
			}
			n, ok := figure(text)
			if !ok {
				continue
			}
			if _, err := fmt.Fprintln(w, g.name, n); err != nil {
				return fmt.Errorf("tell of the usage: %w", err)
			}
			break
		}
	}
	return nil
}

// figure finds a plain number, or the microseconds of cpu.stat, as nanoseconds.
func figure(text []byte) (uint64, bool) {
	if n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63); err == nil {
		return n, true
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("usage_usec ")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 53)
			return n * 1000, err == nil
		}
	}
	return 0, false
}
