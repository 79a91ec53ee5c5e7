package local

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tagOf is what marks the processes of a sandbox with that directory: the hard limit of a resource of which the kernel has had
// none since Linux 2.4.25 (RLIMIT_LOCKS). Every process inherits it, the system call filter lets none change it, and it can be
// read whatever the process does. It is never "no limit", and no number that a limit is likely to be.
func tagOf(dir string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(dir))
	return 1<<62 | h.Sum64()>>2
}

// endTagged kills the processes of a sandbox whose agent could not, until none is left.
func endTagged(tag uint64) error {
	// A process that forks and ends all the time can be missed by a look at all that there are: only one during which nothing was
	// forked shows that none is left. Where others fork all the time, there is not always such a one.
	const tries, enough = 1000, 100
	var failed error
	none := 0
	for range tries {
		before, err := lastPID()
		if err != nil {
			return err
		}
		var left bool
		if left, failed, err = killTagged(tag); err != nil {
			return err
		}
		after, err := lastPID()
		if err != nil {
			return err
		}
		if none++; left {
			none = 0
		}
		if !left && before == after || none == enough {
			return nil
		}
		if before != after {
			if err := killNewest(tag); err != nil {
				return err
			}
		}
	}
	return errors.Join(errors.New("processes of a sandbox do not end"), failed)
}

// lastPID is the number that was given last in this pid namespace.
func lastPID() (int, error) {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err == nil && len(fields) != 5 {
		err = errors.New("unexpected /proc/loadavg")
	}
	var last int
	if err == nil {
		last, err = strconv.Atoi(fields[4])
	}
	if err != nil {
		return 0, fmt.Errorf("look for what a sandbox has left: %w", err)
	}
	return last, nil
}

// killNewest kills the processes of a sandbox that are forked now. It looks at the numbers that the kernel gives next, and so is faster
// than a process that forks and ends, which a look at all processes comes to when it has another number.
func killNewest(tag uint64) error {
	const looks, ahead = 100, 4
	for range looks {
		last, err := lastPID()
		if err != nil {
			return err
		}
		for pid := last; pid <= last+ahead; pid++ {
			_, _ = killIfTagged(pid, tag) // the next look at all finds what cannot be killed
		}
	}
	return nil
}

// killTagged kills the processes of a sandbox that it finds. One that cannot be killed is failed.
func killTagged(tag uint64) (left bool, failed, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, nil, fmt.Errorf("look for what a sandbox has left: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		found, err := killIfTagged(pid, tag)
		left = left || found
		if err != nil {
			failed = err
		}
	}
	return left, failed, nil
}

// killIfTagged kills a process if it is the sandbox's and has not ended.
func killIfTagged(pid int, tag uint64) (found bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false, nil // it has ended
	}
	defer unix.Close(fd)
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	_, rest, _ := strings.Cut(string(text), "Max file locks")
	f := strings.Fields(rest)
	if err != nil || len(f) < 2 || f[1] != strconv.FormatUint(tag, 10) || zombie(pid) {
		return false, nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return true, fmt.Errorf("kill process %d of a sandbox: %w", pid, err)
	}
	return true, nil
}

// zombie reports whether a process has ended and only waits for its parent. Its first thread alone may have ended.
func zombie(pid int) bool {
	f, err := statFields(pid)
	return err != nil || f[statState] == "Z" && f[statThreads] == "1"
}

// Of the fields that statFields returns. By proc_pid_stat(5) they are the 3rd, the 20th and the 22nd of the line.
const (
	statState   = 0
	statThreads = 17
	statStart   = 19
)

// statFields are the fields of /proc/PID/stat from the third on.
func statFields(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The second field is a name that may hold spaces and parentheses.
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) <= statStart {
		return nil, fmt.Errorf("unexpected /proc/%d/stat", pid)
	}
	return f, nil
}

// startTime is when a process began, in clock ticks since the machine's start. A number that is given again has another.
func startTime(pid int) (uint64, error) {
	f, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(f[statStart], 10, 64)
}
