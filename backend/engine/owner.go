package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// An owner identifies a process beyond the reuse of its pid: the machine's boot, the
// pid namespace, the pid and when it started.
type owner struct {
	boot, namespace string
	pid             int
	start           uint64
}

// String is what the owner label holds.
func (o owner) String() string {
	return strings.Join([]string{o.boot, o.namespace, strconv.Itoa(o.pid), strconv.FormatUint(o.start, 10)}, "/")
}

// words describe an owner, for people.
func (o owner) words() string { return "pid " + strconv.Itoa(o.pid) }

func parseOwner(s string) (owner, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return owner{}, fmt.Errorf("owner %q is not of four parts", s)
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return owner{}, fmt.Errorf("owner %q: %w", s, err)
	}
	start, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return owner{}, fmt.Errorf("owner %q: %w", s, err)
	}
	return owner{boot: parts[0], namespace: parts[1], pid: pid, start: start}, nil
}

// dead reports whether it is certain that the owner no longer lives. About a process of
// another machine or another pid namespace nothing is certain.
func (o owner) dead() bool {
	self := thisProcess()
	if self.boot == "" || o.boot == "" {
		return false
	}
	if o.boot != self.boot {
		// The same machine after a restart looks like another one.
		return false
	}
	if o.namespace != self.namespace {
		return false
	}
	start, err := startTime(o.pid)
	return os.IsNotExist(err) || err == nil && start != o.start
}
