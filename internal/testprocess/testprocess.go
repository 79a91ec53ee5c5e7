// Package testprocess finds processes of this machine by its /proc, for tests that look at
// sandboxes from outside. What ends while it looks is left out.
package testprocess

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
)

// List are the processes, by their directories, that belong, in the order of their pids.
func List(belongs func(dir string) bool) ([]backendtest.Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []backendtest.Process
	for _, dir := range dirs {
		if !belongs(dir) {
			continue
		}
		cmdline, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		all = append(all, backendtest.Process{PID: pid, Resident: resident(dir), Command: strings.ReplaceAll(string(cmdline), "\x00", " ")})
	}
	slices.SortFunc(all, func(a, b backendtest.Process) int { return cmp.Compare(a.PID, b.PID) })
	return all, nil
}

// Beside are those in the pid namespace of one of them, itself included; none when it has
// ended.
func Beside(pid int) ([]backendtest.Process, error) {
	inside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return nil, nil
	}
	return List(func(dir string) bool {
		ns, err := os.Readlink(dir + "/ns/pid")
		return err == nil && ns == inside
	})
}

// With are those whose command line holds a text.
func With(text string) ([]backendtest.Process, error) {
	return List(func(dir string) bool {
		cmdline, err := os.ReadFile(dir + "/cmdline")
		return err == nil && bytes.Contains(cmdline, []byte(text))
	})
}

// resident is the memory of a process; 0 of one that has ended.
func resident(dir string) int64 {
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
