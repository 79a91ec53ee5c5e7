//go:build linux

package guest

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()

// The kinds of record that a subreaper writes.
const (
	recStarted uint32 = iota + 1 // the program runs; arg is its pid
	recFailed                    // it could not be started; arg is the step, value the errno
	recExited                    // it ended; value is the wait status, without one no child is left
	recReaped                    // after recExited, and always of a zygote: another child ended; of a zygote as recExited, and arg is its pid
	recEmpty                     // after recExited: no child is left; the last record
)

// A record is what a subreaper reports. It is smaller than PIPE_BUF, so writes of
// it are atomic.
type record struct {
	kind  uint32
	arg   int32
	value uint32
	none  uint32
	cpu   uint64 // microseconds
	rss   uint64 // bytes
}

const recordSize = int(unsafe.Sizeof(record{}))

// decodeRecord reads a record written by a subreaper, which is this same binary, or Python where a process has come in: see
// its ahead.py.
func decodeRecord(b *[recordSize]byte) record { return *(*record)(unsafe.Pointer(b)) }

// The steps of a start, in order.
const (
	stepFork int32 = iota
	stepStdio
	stepTTY
	stepRlimit
	stepUsers
	stepGroups
	stepGID
	stepUID
	stepCaps
	stepDir
	stepNoNewPrivs
	stepLandlock
	stepControl
	stepSeccomp
	stepExec
)

type capHeader struct {
	version uint32
	pid     int32
}

// capData is one half of the effective, permitted and inheritable sets; zero is none.
type capData [3]uint32

// rootCaps are what code that is root may do: what concerns files, users and processes. None is about
// mounts, networks, modules or the system.
const rootCaps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETFCAP

// sudoCaps are what other users have there that may become root.
const sudoCaps = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

type failure struct {
	step  int32
	errno uint32
}

type sockFprog struct {
	len    uint16
	filter *unix.SockFilter
}

// A launch is all that a subreaper and its program need. Everything in it is made
// before the fork, because nothing can be allocated after it: the fields from ws on
// are where the kernel writes in the children's own copies.
type launch struct {
	agentPID uintptr

	argv, envv []*byte
	paths      []*byte // candidates to execute, in order
	dir        *byte
	dirName    string
	keep       []int // descriptors the subreaper keeps, ascending, from 3 on
	status     uintptr
	stdio      [3]uintptr
	hasControl bool
	zygote     bool
	control    [2]uintptr // what become descriptors 3 and 4
	ctty       bool
	rlimits    []rlimit
	procFD     uintptr
	oomText    []byte // what goes to oom_score_adj; empty: nothing
	oomDump    bool   // be dumpable while writing it
	oomFSUID   uintptr
	enter      bool // the user namespace users
	users      uintptr
	sudo       bool    // no no_new_privs
	bound      uintptr // the bounding set's capabilities
	ambient    uintptr // those of data that are ambient
	setIDs     bool
	uid, gid   uintptr
	setGroups  bool
	landlock   uintptr
	restrict   bool
	ownProc    []*byte // what it may read of /proc, of itself, a directory first: the ruleset is made for it alone; none: all that the ruleset has
	rule       unix.LandlockPathBeneathAttr
	seccomp    *sockFprog
	oomPath    *byte

	ws    uint32
	ru    unix.Rusage
	rec   record
	fail  failure
	pipe  [2]int32
	caps  capHeader
	data  [2]capData
	sig   [4]uint64 // a zero struct sigaction: the default
	mask  uint64    // the empty signal mask
	pause unix.Timespec
}

type rlimit struct {
	resource uintptr
	want     uint64
	soft     bool // leave the hard limit
	optional bool // a kernel that does not let it be set has nothing to be held
	old, set unix.Rlimit
}

// forkSubreaper forks the subreaper of l and returns its pid. It is called on the
// spawner's thread. The subreaper has no exit signal, so that SIGCHLD and a plain
// wait4 tell the agent of orphans alone.
//
// After the fork nothing may allocate, grow the stack or write a pointer: the child
// has one thread and whatever state the Go runtime was in. Signals stay blocked in
// the subreaper for ever, so only SIGKILL and SIGSTOP reach it.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkSubreaper(l *launch) (uintptr, unix.Errno) {
	var (
		pid, main, n, fd, prev, i, step uintptr
		err                             unix.Errno
		flags                           uintptr
		tries                           int
		best                            unix.Errno
	)
	runtimeBeforeFork()
	pid, _, err = unix.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if err != 0 || pid != 0 {
		runtimeAfterFork()
		return pid, err
	}

	// The subreaper.
	unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	if n, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); n != l.agentPID {
		goto exit // the agent died before the death signal was requested
	}
	unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	prev = 3
	for i = 0; i < uintptr(len(l.keep)); i++ {
		fd = uintptr(l.keep[i])
		if fd > prev {
			closeRange(prev, fd-1)
		}
		if fd >= prev {
			prev = fd + 1
		}
	}
	closeRange(prev, ^uintptr(0)>>33)
	step = uintptr(stepFork)
	if _, _, err = unix.RawSyscall(unix.SYS_PIPE2, uintptr(unsafe.Pointer(&l.pipe)), unix.O_CLOEXEC, 0); err != 0 {
		goto subreaperFailed
	}
	main, _, err = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if err != 0 {
		goto subreaperFailed
	}
	if main == 0 {
		goto program
	}
	unix.RawSyscall(unix.SYS_CLOSE, uintptr(l.pipe[1]), 0, 0)
	n, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(l.pipe[0]), uintptr(unsafe.Pointer(&l.fail)), unsafe.Sizeof(l.fail))
	if n == unsafe.Sizeof(l.fail) {
		unix.RawSyscall6(unix.SYS_WAIT4, main, 0, unix.WALL, 0, 0, 0)
		step, err = uintptr(l.fail.step), unix.Errno(l.fail.errno)
		goto subreaperFailed
	}
	// The pipe closed with nothing in it: the program is executed, or it was
	// killed before, which the wait reports.
	closeRange(0, l.status-1)
	closeRange(l.status+1, ^uintptr(0)>>33)
	l.rec.kind, l.rec.arg = recStarted, int32(main)
	unix.RawSyscall(unix.SYS_WRITE, l.status, uintptr(unsafe.Pointer(&l.rec)), unsafe.Sizeof(l.rec))
	flags = unix.WALL
	l.rec.kind = 0
	for l.zygote {
		pid, _, err = unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&l.ws)), flags, uintptr(unsafe.Pointer(&l.ru)), 0, 0)
		if err == unix.EINTR {
			continue
		}
		l.rec.kind = recReaped
		switch {
		case err != 0: // ECHILD: nothing is left
			l.rec.kind = recEmpty
		case pid == main:
			main = 0
			l.rec.kind = recExited
		}
		l.rec.arg, l.rec.value = int32(pid), l.ws
		l.rec.cpu = uint64(l.ru.Utime.Sec+l.ru.Stime.Sec)*1e6 + uint64(l.ru.Utime.Usec+l.ru.Stime.Usec)
		l.rec.rss = uint64(l.ru.Maxrss) << 10
		unix.RawSyscall(unix.SYS_WRITE, l.status, uintptr(unsafe.Pointer(&l.rec)), unsafe.Sizeof(l.rec))
		if err != 0 {
			goto exit
		}
	}
	for {
		pid, _, err = unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&l.ws)), flags, uintptr(unsafe.Pointer(&l.ru)), 0, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != 0: // ECHILD: nothing is left
			l.rec.none = 1
			if l.rec.kind != recExited {
				l.rec.kind = recEmpty
			}
			unix.RawSyscall(unix.SYS_WRITE, l.status, uintptr(unsafe.Pointer(&l.rec)), unsafe.Sizeof(l.rec))
			goto exit
		case pid == main && main != 0:
			main = 0
			l.rec.kind, l.rec.value = recExited, l.ws
			l.rec.cpu = uint64(l.ru.Utime.Sec+l.ru.Stime.Sec)*1e6 + uint64(l.ru.Utime.Usec+l.ru.Stime.Usec)
			l.rec.rss = uint64(l.ru.Maxrss) << 10
			flags = unix.WALL | unix.WNOHANG // is anything left?
		case l.rec.kind == recExited && pid != 0:
			// Still collecting what ended together with the program.
		case l.rec.kind == recExited: // something lives on
			unix.RawSyscall(unix.SYS_WRITE, l.status, uintptr(unsafe.Pointer(&l.rec)), unsafe.Sizeof(l.rec))
			l.rec.kind = recReaped
			flags = unix.WALL
		case l.rec.kind == recReaped:
			unix.RawSyscall(unix.SYS_WRITE, l.status, uintptr(unsafe.Pointer(&l.rec)), unsafe.Sizeof(l.rec))
		}
	}

subreaperFailed:
	l.rec.kind, l.rec.arg, l.rec.value = recFailed, int32(step), uint32(err)
	unix.RawSyscall(unix.SYS_WRITE, l.status, uintptr(unsafe.Pointer(&l.rec)), unsafe.Sizeof(l.rec))
exit:
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}

program:
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	step = uintptr(stepStdio)
	for i = 0; i < 3; i++ {
		if _, _, err = unix.RawSyscall(unix.SYS_DUP3, l.stdio[i], i, 0); err != 0 {
			goto programFailed
		}
	}
	if l.ctty {
		step = uintptr(stepTTY)
		if _, _, err = unix.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0); err != 0 {
			goto programFailed
		}
	}
	unix.RawSyscall(unix.SYS_UMASK, 0o022, 0, 0)
	if len(l.oomText) > 0 {
		// A non-dumpable process's files in /proc belong to the root of its user
		// namespace. Where that is not the agent, the file is writable only while
		// the process is dumpable, and it is so only while it still holds the
		// capabilities that keep the code, which has none, from tracing it.
		// Failures are left: the limits hold without it.
		unix.RawSyscall(unix.SYS_SETFSUID, l.oomFSUID, 0, 0)
		if l.oomDump {
			unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0, 0)
		}
		fd, _, err = unix.RawSyscall6(unix.SYS_OPENAT, l.procFD, uintptr(unsafe.Pointer(l.oomPath)), unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if err == 0 {
			unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&l.oomText[0])), uintptr(len(l.oomText)))
			unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
		if l.oomDump {
			unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
		}
	}
	step = uintptr(stepRlimit)
	for i = 0; i < uintptr(len(l.rlimits)); i++ {
		if _, _, err = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, l.rlimits[i].resource, 0, uintptr(unsafe.Pointer(&l.rlimits[i].old)), 0, 0); err != 0 {
			goto programFailed
		}
		// What is above the present hard limit becomes that.
		l.rlimits[i].set.Max = l.rlimits[i].want
		if l.rlimits[i].set.Max > l.rlimits[i].old.Max {
			l.rlimits[i].set.Max = l.rlimits[i].old.Max
		}
		l.rlimits[i].set.Cur = l.rlimits[i].set.Max
		if l.rlimits[i].soft {
			l.rlimits[i].set.Max = l.rlimits[i].old.Max
		}
		if _, _, err = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, l.rlimits[i].resource, uintptr(unsafe.Pointer(&l.rlimits[i].set)), 0, 0, 0); err != 0 && !l.rlimits[i].optional {
			goto programFailed
		}
	}
	// Privileges. In a user namespace of its own a process has all capabilities at first, but only there. The bounding set and ambient capabilities may be out of reach
	// without CAP_SETPCAP or on an old kernel: no_new_privs, which must succeed,
	// makes them worth nothing once the permitted set is empty.
	if l.enter {
		step = uintptr(stepUsers)
		if _, _, err = unix.RawSyscall(unix.SYS_SETNS, l.users, unix.CLONE_NEWUSER, 0); err != 0 {
			goto programFailed
		}
	}
	if l.sudo {
		// What no_new_privs allows takes the capability that this process still has in its own user namespace.
		step = uintptr(stepLandlock)
		if l.restrict {
			if _, _, err = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, l.landlock, 0, 0); err != 0 {
				goto programFailed
			}
		}
		step = uintptr(stepSeccomp)
		if l.seccomp != nil {
			if _, _, err = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(l.seccomp))); err != 0 {
				goto programFailed
			}
		}
	}
	for i = 0; i < 64; i++ {
		if l.bound&(1<<i) != 0 {
			continue
		}
		if _, _, err = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0, 0, 0, 0); err != 0 {
			break
		}
	}
	unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if l.setGroups {
		step = uintptr(stepGroups)
		if _, _, err = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); err != 0 && l.setIDs {
			goto programFailed
		}
	}
	if l.setIDs {
		step = uintptr(stepGID)
		if _, _, err = unix.RawSyscall(unix.SYS_SETRESGID, l.gid, l.gid, l.gid); err != 0 {
			goto programFailed
		}
		step = uintptr(stepUID)
		if _, _, err = unix.RawSyscall(unix.SYS_SETRESUID, l.uid, l.uid, l.uid); err != 0 {
			goto programFailed
		}
	}
	step = uintptr(stepCaps)
	l.caps.version = unix.LINUX_CAPABILITY_VERSION_3
	if _, _, err = unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&l.caps)), uintptr(unsafe.Pointer(&l.data)), 0); err != 0 {
		goto programFailed
	}
	for i = 0; i < 64; i++ {
		if l.ambient&(1<<i) != 0 {
			if _, _, err = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, i, 0, 0, 0); err != 0 {
				goto programFailed
			}
		}
	}
	step = uintptr(stepDir) // as the code's user, so that its permissions count
	if _, _, err = unix.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(l.dir)), 0, 0); err != 0 {
		goto programFailed
	}
	// The subreaper's end is the program's too. This is set after the change of
	// uid, which clears it.
	unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	for i = 1; i <= 64; i++ {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, i, uintptr(unsafe.Pointer(&l.sig)), 0, 8, 0, 0)
	}
	if !l.sudo {
		step = uintptr(stepNoNewPrivs)
		if _, _, err = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); err != 0 {
			goto programFailed
		}
	}
	l.rule.Allowed_access = unix.LANDLOCK_ACCESS_FS_READ_DIR
	for i = 0; i < uintptr(len(l.ownProc)); i++ {
		fd, _, err = unix.RawSyscall6(unix.SYS_OPENAT, l.procFD, uintptr(unsafe.Pointer(l.ownProc[i])), unix.O_PATH|unix.O_CLOEXEC, 0, 0, 0)
		if err == unix.ENOENT {
			continue // a kernel without
		}
		step = uintptr(stepLandlock)
		if err != 0 {
			goto programFailed
		}
		l.rule.Parent_fd = int32(fd)
		if _, _, err = unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, l.landlock, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&l.rule)), 0, 0, 0); err != 0 {
			goto programFailed
		}
		l.rule.Allowed_access = unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	if l.restrict && !l.sudo {
		step = uintptr(stepLandlock)
		if _, _, err = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, l.landlock, 0, 0); err != 0 {
			goto programFailed
		}
	}
	unix.RawSyscall(unix.SYS_CLOSE_RANGE, 3, ^uintptr(0)>>33, unix.CLOSE_RANGE_CLOEXEC) // all are close-on-exec already
	if l.hasControl {
		// What is still needed first goes out of the way of descriptors 3 and 4.
		step = uintptr(stepControl)
		if n, _, err = unix.RawSyscall(unix.SYS_FCNTL, uintptr(l.pipe[1]), unix.F_DUPFD_CLOEXEC, 5); err != 0 {
			goto programFailed
		}
		l.pipe[1] = int32(n)
		for i = 0; i < 2; i++ {
			if n, _, err = unix.RawSyscall(unix.SYS_FCNTL, l.control[i], unix.F_DUPFD_CLOEXEC, 5); err != 0 {
				goto programFailed
			}
			l.control[i] = n
		}
		for i = 0; i < 2; i++ {
			if _, _, err = unix.RawSyscall(unix.SYS_DUP3, l.control[i], 3+i, 0); err != 0 {
				goto programFailed
			}
		}
	}
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&l.mask)), 0, 8, 0, 0)
	if l.seccomp != nil && !l.sudo {
		step = uintptr(stepSeccomp)
		if _, _, err = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(l.seccomp))); err != 0 {
			goto programFailed
		}
	}
	step, best = uintptr(stepExec), unix.ENOENT
	for i = 0; i < uintptr(len(l.paths)); i++ {
		for tries = 0; ; tries++ {
			_, _, err = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(l.paths[i])), uintptr(unsafe.Pointer(&l.argv[0])), uintptr(unsafe.Pointer(&l.envv[0])))
			if err != unix.ETXTBSY || tries == 1000 {
				break
			}
			// A program that the agent has just written: another subreaper,
			// forked while the file was open, is about to close its copy.
			unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&l.pause)), 0, 0)
		}
		if err != unix.ENOENT && err != unix.ENOTDIR && best == unix.ENOENT {
			best = err
		}
	}
	err = best
programFailed:
	l.fail.step, l.fail.errno = int32(step), uint32(err)
	unix.RawSyscall(unix.SYS_WRITE, uintptr(l.pipe[1]), uintptr(unsafe.Pointer(&l.fail)), unsafe.Sizeof(l.fail))
	goto exit
}

// forkUsers forks a process in a new user namespace. It reads from the pipe r, and exits when the other end, w, is closed.
// What forkSubreaper says of a fork holds.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkUsers(r, w uintptr) (uintptr, unix.Errno) {
	var (
		pid uintptr
		err unix.Errno
		b   byte
	)
	runtimeBeforeFork()
	pid, _, err = unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if err != 0 || pid != 0 {
		runtimeAfterFork()
		return pid, err
	}
	unix.RawSyscall(unix.SYS_CLOSE, w, 0, 0)
	unix.RawSyscall(unix.SYS_READ, r, uintptr(unsafe.Pointer(&b)), 1)
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// forkKiller forks the process of a killer, with its end of the socket. It is called on the spawner's thread, and what
// forkSubreaper says of a fork holds. It has no exit signal either.
//
// It kills nothing unless the kernel denies it to signal the agent: then it is confined.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkKiller(agent, fd uintptr) (uintptr, unix.Errno) {
	var (
		pid uintptr
		err unix.Errno
		b   byte
	)
	runtimeBeforeFork()
	pid, _, err = unix.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if err != 0 || pid != 0 {
		runtimeAfterFork()
		return pid, err
	}
	closeRange(0, fd-1)
	closeRange(fd+1, ^uintptr(0)>>33)
	if _, _, err = unix.RawSyscall(unix.SYS_KILL, agent, 0, 0); err != unix.EPERM {
		goto exit
	}
	unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&b)), 1)
	for err = unix.EINTR; err == unix.EINTR; {
		_, _, err = unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&b)), 1)
	}
	unix.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
exit:
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// closeRange closes the descriptors from first to last. Kernels before 5.9 know no
// such call: there every one that the agent can have is closed by itself.
//
//go:nosplit
//go:norace
func closeRange(first, last uintptr) {
	if last < first || last == ^uintptr(0) {
		return
	}
	if _, _, err := unix.RawSyscall(unix.SYS_CLOSE_RANGE, first, last, 0); err == 0 {
		return
	}
	if last > 1<<16 {
		last = 1 << 16
	}
	for fd := first; fd <= last; fd++ {
		unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
}
