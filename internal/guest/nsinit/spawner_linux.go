package nsinit

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// keptCaps are what the agent needs after set-up: to give a process its own user and
// no capabilities, and to kill it.
const keptCaps = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_RESOURCE

// enterSpawner runs on the thread that forks. Its cgroup and time namespaces are
// unshared here and not when the agent was cloned: a time namespace is only entered
// by children, and a cgroup namespace must be made by a process already in its cgroup.
func enterSpawner(hideUptime bool) error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: a kernel without
		return fmt.Errorf("new cgroup namespace: %w", err)
	}
	if hideUptime {
		if err := enterTimeNamespace(); err != nil {
			return fmt.Errorf("new time namespace: %w", err)
		}
	}
	return reduceCaps(keptCaps)
}

func enterTimeNamespace() error {
	if err := unix.Unshare(unix.CLONE_NEWTIME); err != nil {
		return err
	}
	var boot, mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return err
	}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return err
	}
	// Files in /proc of a process that is not dumpable belong to the namespace's
	// root, which may not exist here. No code runs yet that could use the moment.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	offsets := fmt.Sprintf("monotonic -%d 0\nboottime -%d 0\n", mono.Sec, boot.Sec)
	err := writeExisting("/proc/"+strconv.Itoa(unix.Gettid())+"/timens_offsets", offsets)
	return errors.Join(err, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

func writeExisting(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// reduceCaps leaves every thread only the given capabilities, and none that a
// program executed by mistake could inherit.
func reduceCaps(keep uint64) error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("clear ambient capabilities: %w", errno)
	}
	if errno := capsetAllThreads(keep); errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
