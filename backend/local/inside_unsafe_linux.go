package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

//go:linkname runtimeBeforeFork syscall.runtime_BeforeFork
func runtimeBeforeFork()

//go:linkname runtimeAfterFork syscall.runtime_AfterFork
func runtimeAfterFork()

// An inside start executes a program in the user and pid namespaces of a sandbox, with a /proc of these, and otherwise where this process is. Package
// syscall cannot, as a process with threads enters no user namespace. Everything in it is made before the fork: after it nothing
// can be allocated.
type inside struct {
	user, pid  uintptr // the namespaces
	program    uintptr
	argv, envv []*byte
	empty      *byte
	proc       [2]*byte  // "proc", "/proc"
	files      []uintptr // what are its descriptors from 0 on

	caps   struct{ version, pid uint32 }
	data   [2]struct{ effective, permitted, inheritable uint32 }
	sig    [4]uint64 // a zero struct sigaction: the default
	mask   uint64    // the empty signal mask
	socket uintptr
	say    insideReport
}

// An insideReport tells by who sends it of the program's process, or of the step that failed.
type insideReport struct{ step, errno uint32 }

const (
	insideUser uint32 = iota
	insidePID
	insideFork
	insideProc
	insideFiles
	insideCaps
	insideExec
	insideStarted
)

var insideSteps = [...]string{"enter its user namespace", "enter its pid namespace", "fork", "mount its /proc", "set up descriptors", "keep capabilities", "execute the agent"}

// start returns the pid of the program, which is a child of this process.
func (n *inside) start() (pid int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pair[0])
	n.socket = uintptr(pair[1])
	err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	var between uintptr
	if err == nil {
		var errno unix.Errno
		if between, errno = n.fork(); errno != 0 {
			err = errno
		}
	}
	runtime.KeepAlive(n)
	unix.Close(pair[1])
	if err != nil {
		return 0, err
	}
	for { // to the end of the one between, and the exec
		from, r, rerr := readInsideReport(pair[0])
		if rerr == io.EOF {
			break
		}
		switch {
		case rerr != nil:
			err = errors.Join(err, rerr)
		case r.step == insideStarted:
			pid = from
		case r.step == insideProc && unix.Errno(r.errno) == unix.EPERM:
			err = errors.Join(err, fmt.Errorf("%s: %w: %w: the one of this place is partly masked, as in a container: %s", insideSteps[r.step], unix.EPERM, backend.ErrUnsupported, unmaskProc))
		default:
			err = errors.Join(err, fmt.Errorf("%s: %w", insideSteps[r.step], unix.Errno(r.errno)))
		}
		if rerr != nil {
			break
		}
	}
	err = errors.Join(err, reap(int(between)))
	if err == nil && pid == 0 {
		err = errors.New("it has been killed")
	}
	if err != nil && pid > 0 {
		err = errors.Join(err, unix.Kill(pid, unix.SIGKILL), reap(pid))
	}
	return pid, err
}

// readInsideReport returns a report, and the pid of who has written it as it is called here.
func readInsideReport(socket int) (from int, r insideReport, err error) {
	b := make([]byte, unsafe.Sizeof(r))
	oob := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n, oobn int
	for {
		if n, oobn, _, _, err = unix.Recvmsg(socket, b, oob, 0); err != unix.EINTR {
			break
		}
	}
	switch {
	case err != nil:
		return 0, r, err
	case n == 0:
		return 0, r, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 || n != len(b) {
		return 0, r, errors.Join(errors.New("a report is malformed"), err)
	}
	cred, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return 0, r, err
	}
	return int(cred.Pid), *(*insideReport)(unsafe.Pointer(&b[0])), nil
}

// fork is as package syscall's: see there.
//
//go:noinline
//go:norace
//go:nocheckptr
func (n *inside) fork() (uintptr, unix.Errno) {
	var (
		pid, i, fd uintptr
		err        unix.Errno
		step       uint32
	)
	runtimeBeforeFork()
	pid, _, err = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if err != 0 || pid != 0 {
		runtimeAfterFork()
		return pid, err
	}
	for i = 1; i <= 64; i++ {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, i, uintptr(unsafe.Pointer(&n.sig)), 0, 8, 0, 0)
	}
	step = insideUser
	if _, _, err = unix.RawSyscall(unix.SYS_SETNS, n.user, unix.CLONE_NEWUSER, 0); err != 0 {
		goto failed
	}
	step = insidePID
	if _, _, err = unix.RawSyscall(unix.SYS_SETNS, n.pid, unix.CLONE_NEWPID, 0); err != 0 {
		goto failed
	}
	step = insideFork // only a child is in the pid namespace
	pid, _, err = unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_PARENT|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if err != 0 {
		goto failed
	}
	if pid != 0 {
		goto exit
	}
	n.say.step = insideStarted
	unix.RawSyscall(unix.SYS_WRITE, n.socket, uintptr(unsafe.Pointer(&n.say)), unsafe.Sizeof(n.say))
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	step = insideProc // in the one of before, processes have other numbers
	if _, _, err = unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0); err != 0 {
		goto failed
	}
	if _, _, err = unix.RawSyscall6(unix.SYS_MOUNT, uintptr(unsafe.Pointer(n.proc[0])), uintptr(unsafe.Pointer(n.proc[1])), uintptr(unsafe.Pointer(n.proc[0])), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0, 0); err != 0 {
		goto failed
	}
	step = insideFiles
	for i = 0; i < uintptr(len(n.files)); i++ {
		if fd, _, err = unix.RawSyscall(unix.SYS_FCNTL, n.files[i], unix.F_DUPFD_CLOEXEC, 64); err != 0 {
			goto failed
		}
		n.files[i] = fd
	}
	if fd, _, err = unix.RawSyscall(unix.SYS_FCNTL, n.socket, unix.F_DUPFD_CLOEXEC, 64); err != 0 {
		goto failed
	}
	n.socket = fd
	if fd, _, err = unix.RawSyscall(unix.SYS_FCNTL, n.program, unix.F_DUPFD_CLOEXEC, 64); err != 0 {
		goto failed
	}
	n.program = fd
	for i = 0; i < uintptr(len(n.files)); i++ {
		if _, _, err = unix.RawSyscall(unix.SYS_DUP3, n.files[i], i, 0); err != 0 {
			goto failed
		}
	}
	step = insideCaps
	n.caps.version = unix.LINUX_CAPABILITY_VERSION_3
	if _, _, err = unix.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&n.caps)), uintptr(unsafe.Pointer(&n.data)), 0); err != 0 {
		goto failed
	}
	for i = 0; i < uintptr(len(nsinit.SetupCaps)); i++ {
		n.data[nsinit.SetupCaps[i]/32].inheritable |= 1 << (nsinit.SetupCaps[i] % 32)
	}
	if _, _, err = unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&n.caps)), uintptr(unsafe.Pointer(&n.data)), 0); err != 0 {
		goto failed
	}
	for i = 0; i < uintptr(len(nsinit.SetupCaps)); i++ {
		if _, _, err = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, nsinit.SetupCaps[i], 0, 0, 0); err != 0 {
			goto failed
		}
	}
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&n.mask)), 0, 8, 0, 0)
	step = insideExec
	_, _, err = unix.RawSyscall6(unix.SYS_EXECVEAT, n.program, uintptr(unsafe.Pointer(n.empty)), uintptr(unsafe.Pointer(&n.argv[0])), uintptr(unsafe.Pointer(&n.envv[0])), unix.AT_EMPTY_PATH, 0)

failed:
	n.say.step, n.say.errno = step, uint32(err)
	unix.RawSyscall(unix.SYS_WRITE, n.socket, uintptr(unsafe.Pointer(&n.say)), unsafe.Sizeof(n.say))
exit:
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// startInside starts a program in the namespaces of a sandbox, and returns its pid.
func startInside(user, pid, program *os.File, argv []string, files []uintptr) (int, error) {
	n := &inside{user: user.Fd(), pid: pid.Fd(), program: program.Fd(), files: files, envv: []*byte{nil}, empty: new(byte)}
	for _, s := range argv {
		b, err := unix.BytePtrFromString(s)
		if err != nil {
			return 0, err
		}
		n.argv = append(n.argv, b)
	}
	n.argv = append(n.argv, nil)
	n.proc = [2]*byte{&[]byte("proc\x00")[0], &[]byte("/proc\x00")[0]}
	started, err := n.start()
	if err != nil {
		return 0, fmt.Errorf("start a program in another sandbox's namespaces: %w", err)
	}
	return started, nil
}
