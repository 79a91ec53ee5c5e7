//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/wire"
)

// launch starts agents in new namespaces below its own, as the owner asks for on descriptor 3. It is in the user and
// pid namespaces of a sandbox from which others are forked, and of the host otherwise, and ends with the owner.
func launch() error {
	const socket = 3
	unix.CloseOnExec(socket)
	if err := guest.Harden(); err != nil {
		return err
	}
	runtime.LockOSThread() // no agent is started by the main thread, which lives on
	for {
		text, fds, err := nsinit.ReceiveFDs(socket)
		if err != nil {
			return nil // the owner has gone
		}
		answer, pidfd := answerLaunch(text, fds)
		for _, fd := range fds {
			unix.Close(fd)
		}
		var rights []byte
		if pidfd >= 0 {
			rights = unix.UnixRights(pidfd)
		}
		err = unix.Sendmsg(socket, wire.Append(nil, &answer), rights, nil, unix.MSG_NOSIGNAL)
		if pidfd >= 0 {
			unix.Close(pidfd)
		}
		if err != nil {
			return err
		}
	}
}

func answerLaunch(text []byte, fds []int) (answer nsinit.Launched, pidfd int) {
	var l nsinit.Launch
	pidfd = -1
	_, err := wire.Decode(text, &l)
	switch {
	case err != nil:
	case l.Wait > 0:
		answer.Status, err = wait(int(l.Wait))
	case len(fds) < 1+int(l.Files):
		err = errors.New("descriptors are missing")
	default:
		// On a thread of its own, which ends with it: it joins the agent's control groups and has the uid that is to own
		// its user namespace.
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			var pid int
			pid, pidfd, err = fork(&l, fds)
			answer.PID = uint32(pid)
		}()
		<-done
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer, pidfd
}

func wait(pid int) (uint32, error) {
	for {
		var ws unix.WaitStatus
		if _, err := unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
			return uint32(ws), err
		}
	}
}

func fork(l *nsinit.Launch, fds []int) (pid, pidfd int, err error) {
	pidfd = -1
	files, groups := fds[1:1+l.Files], fds[1+l.Files:]
	for _, group := range groups {
		if _, err := unix.Write(group, []byte("0")); err != nil {
			return 0, -1, fmt.Errorf("join the control group: %w", err)
		}
	}
	if err := becomeOwner(l); err != nil {
		return 0, -1, fmt.Errorf("become the user of the process that comes in: %w", err)
	}
	if !l.Groups {
		// There is no root to whom the agent's files in /proc belong, by which its users are written: they must be its own.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
			return 0, -1, err
		}
		defer func() { err = errors.Join(err, guest.Harden()) }()
	}
	attr := &syscall.ProcAttr{Dir: "/", Env: []string{}, Sys: &syscall.SysProcAttr{
		Cloneflags: nsinit.CloneFlags, AmbientCaps: nsinit.SetupCaps, PidFD: &pidfd, Setsid: true,
		UidMappings: mappings(l.UIDs), GidMappings: mappings(l.GIDs), GidMappingsEnableSetgroups: l.Groups,
	}}
	if l.AsRoot {
		attr.Sys.Credential = &syscall.Credential{NoSetGroups: true}
	}
	for _, fd := range files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	program, err := unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 64) // out of the way of its descriptors
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(program)
	if pid, err = syscall.ForkExec("/proc/self/fd/"+strconv.Itoa(program), l.Args, attr); err != nil {
		return 0, -1, err
	}
	if pidfd < 0 {
		err = errors.Join(errors.New("the kernel gives no pidfd (Linux 5.4 or later is needed)"), unix.Kill(pid, unix.SIGKILL))
		_, werr := wait(pid)
		return 0, -1, errors.Join(err, werr)
	}
	return pid, pidfd, nil
}

// becomeOwner gives this thread its uid and lets it keep its capabilities.
func becomeOwner(l *nsinit.Launch) error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	gid, uid := uintptr(l.GID), uintptr(l.UID)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return e
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective, data[1].Effective = data[0].Permitted, data[1].Permitted
	return unix.Capset(&header, &data[0])
}

func mappings(all []nsinit.IDs) (m []syscall.SysProcIDMap) {
	for _, id := range all {
		m = append(m, syscall.SysProcIDMap{ContainerID: int(id.Inside), HostID: int(id.Outside), Size: 1})
	}
	return m
}
