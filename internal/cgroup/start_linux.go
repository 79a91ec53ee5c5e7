package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Start runs fork so that the process it makes is born in the group. fork returns
// the pid. It gets a group's descriptor for SysProcAttr.CgroupFD on version 2, and
// -1 where none is needed; it is called on a locked thread and must fork on it.
//
// In an ordinary user's systemd scope the process joins right after its birth: it
// must do nothing, and keep the caller's uid, until Start returns. Only there does
// the context matter, as nothing else waits. When Start fails after fork made a
// process, that process is still the caller's to end.
func (g *Group) Start(ctx context.Context, fork func(cgroupFD int) (pid int, err error)) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch {
	case g.s.scopes:
		pid, err := fork(-1)
		if err != nil {
			return err
		}
		return g.startScope(ctx, pid)
	case g.dir("") != "" && g.s.Version == V2:
		fd, err := unix.Open(g.dir(""), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("control group of %s: %w", g.name, err)
		}
		defer unix.Close(fd)
		_, err = fork(fd)
		return err
	case len(g.dirs) == 0:
		_, err := fork(-1)
		return err
	}
	// On a goroutine of its own, so that a thread that cannot be moved back ends.
	done := make(chan error, 1)
	go func() { done <- g.startOnThread(fork) }()
	return <-done
}

// startOnThread moves the one thread that forks, by "tasks": moving a single
// thread of one's own takes no global lock, moving a process by cgroup.procs
// waits for all CPUs. The runtime never starts a thread from a locked one, so none of
// ours is born in the group by accident.
func (g *Group) startOnThread(fork func(int) (int, error)) (err error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The main thread owns the memory of the whole process; while it were
		// in the group, that memory would be charged to the sandbox. As it is locked
		// here, the new goroutine gets another thread.
		defer runtime.UnlockOSThread()
		done := make(chan error, 1)
		go func() { done <- g.startOnThread(fork) }()
		return <-done
	}
	own, err := readOwn("/proc/thread-self/cgroup")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("where this thread belongs: %w", err)
	}
	var moved []string // where to go back to
	defer func() {
		var back error
		for _, d := range moved {
			back = errors.Join(back, write(d, "tasks", "0"))
		}
		if back != nil {
			// Still locked, the thread ends with its goroutine, instead of
			// running the caller's work within the sandbox's limits.
			err = errors.Join(err, fmt.Errorf("move the thread back: %w", back))
			return
		}
		runtime.UnlockOSThread()
	}()
	done := map[string]bool{}
	for c, d := range g.dirs {
		if done[d] {
			continue
		}
		done[d] = true
		if err := write(d, "tasks", "0"); err != nil {
			return fmt.Errorf("enter the %s group of %s: %w", c, g.name, err)
		}
		moved = append(moved, g.s.controllers[c].mount.path(own[c]))
	}
	_, err = fork(-1)
	return err
}
