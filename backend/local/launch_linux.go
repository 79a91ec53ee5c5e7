package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// setupCaps are what the agent needs, in its own user namespace, until it is set up.
// They are ambient, because to the host it is an ordinary process whose exec would
// drop them.
var setupCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN,
	unix.CAP_KILL, unix.CAP_SYS_CHROOT, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SYS_TIME, unix.CAP_SYS_RESOURCE}

// An agentProcess is the first process of a sandbox.
type agentProcess struct {
	pid   int
	pidfd *os.File
	setup *os.File // the host's end: its closing shows the agent that the owner has ended
	log   string   // path of what the agent writes on its standard error
}

// startAgent executes the agent in new namespaces. It does nothing there before it has
// a plan, so g can still move it. timers are arguments that say when it ends by itself.
func startAgent(ctx context.Context, binary string, f *folder, g group, timers []string) (*agentProcess, error) {
	listener, err := listen(f)
	if err != nil {
		return nil, err
	}
	defer unix.Close(listener)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the agent's set-up socket: %w", err)
	}
	defer unix.Close(pair[1])
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	p := &agentProcess{setup: os.NewFile(uintptr(pair[0]), "set-up socket"), log: f.path + "/agent.log"}
	if err := p.fork(ctx, binary, listener, pair[1], g, timers); err != nil {
		p.setup.Close()
		return nil, err
	}
	return p, nil
}

func (p *agentProcess) fork(ctx context.Context, binary string, listener, setup int, g group, timers []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return inStateFolder("make the agent's log", err)
	}
	defer log.Close()
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{}, // nothing of the host's environment gets inside
		Files: []uintptr{null.Fd(), null.Fd(), log.Fd(), uintptr(listener), uintptr(setup)},
		Sys: &syscall.SysProcAttr{Cloneflags: namespaces, AmbientCaps: setupCaps, PidFD: &pidfd, Setsid: true,
			GidMappingsEnableSetgroups: true},
	}
	err = g.Start(ctx, func(cgroupFD int) (int, error) {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = cgroupFD >= 0, max(cgroupFD, 0)
		var err error
		p.pid, err = syscall.ForkExec(binary, append([]string{"llmsandbox-agent", "--listen-fd", "3", "--setup-fd", "4"}, timers...), attr)
		return p.pid, err
	})
	if err != nil && p.pid > 0 { // born, but not in its group
		return errors.Join(err, unix.Kill(p.pid, unix.SIGKILL), reap(p.pid), closeFD(pidfd))
	}
	if err != nil {
		return explainFork(err)
	}
	if pidfd < 0 {
		err := errors.New("the kernel gives no pidfd (Linux 5.4 or later is needed)")
		return errors.Join(err, unix.Kill(p.pid, unix.SIGKILL), reap(p.pid))
	}
	if err := unix.SetNonblock(pidfd, true); err != nil {
		return errors.Join(err, unix.Kill(p.pid, unix.SIGKILL), reap(p.pid))
	}
	p.pidfd = os.NewFile(uintptr(pidfd), "agent")
	return nil
}

func closeFD(fd int) error {
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}

func reap(pid int) error {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return err
		}
	}
}

// setUp sends the plan and waits until the agent has carried it out.
func (p *agentProcess) setUp(ctx context.Context, plan []byte, mounts []*os.File) (nsinit.Reply, error) {
	fds := make([]int, len(mounts))
	for i, m := range mounts {
		fds[i] = int(m.Fd())
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	stop := context.AfterFunc(ctx, func() { p.kill() })
	defer stop()
	raw, err := p.setup.SyscallConn()
	if err != nil {
		return nsinit.Reply{}, err
	}
	var serr error
	if err := raw.Write(func(fd uintptr) bool {
		serr = unix.Sendmsg(int(fd), plan, oob, nil, unix.MSG_NOSIGNAL)
		return serr != unix.EAGAIN
	}); err != nil {
		return nsinit.Reply{}, err
	}
	if serr != nil {
		return nsinit.Reply{}, p.failed(ctx, fmt.Errorf("send the agent its plan: %w", serr))
	}
	reply := make([]byte, nsinit.MaxReply+1)
	n, err := p.setup.Read(reply)
	if err != nil || n == 0 {
		return nsinit.Reply{}, p.failed(ctx, errors.New("the agent ended during set-up"))
	}
	done, err := nsinit.DecodeReply(reply[:n])
	if err != nil {
		return nsinit.Reply{}, explainSetup(err)
	}
	return done, nil
}

// failed adds what is known to the failure of an agent that did not answer.
func (p *agentProcess) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	const most = 2 << 10
	log, rerr := os.ReadFile(p.log)
	if rerr != nil || len(log) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(log[:min(len(log), most)])))
}

// kill ends the agent and with it, because it is the first of its pid namespace,
// everything in the sandbox.
func (p *agentProcess) kill() error {
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var kerr error
	// Control fails only when the descriptor is closed, which it is once the agent
	// has ended: there is nothing left to kill.
	_ = raw.Control(func(fd uintptr) { kerr = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	if kerr == unix.ESRCH {
		return nil
	}
	return kerr
}

// wait returns when the agent and all of its pid namespace have ended, and reaps it.
func (p *agentProcess) wait() (status unix.WaitStatus, err error) {
	err = awaitPidfd(p.pidfd, func(int) error {
		for { // its pid is its own until it is reaped, here
			pid, err := unix.Wait4(p.pid, &status, unix.WNOHANG, nil)
			switch {
			case err == unix.EINTR:
			case err == nil && pid == 0:
				return unix.EAGAIN
			default:
				return err
			}
		}
	})
	return status, err
}

// awaitPidfd calls try when the process of a pidfd may have ended, until it no longer
// returns EAGAIN. It takes no thread while it waits.
func awaitPidfd(pidfd *os.File, try func(fd int) error) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var werr error
	if err := raw.Read(func(fd uintptr) bool {
		werr = try(int(fd))
		return werr != unix.EAGAIN
	}); err != nil {
		return err
	}
	return werr
}

// listen makes the socket that the agent serves.
func listen(f *folder) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make the agent's socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: shortPath(f.dir, "agent.sock")})
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return -1, inStateFolder("make the agent's socket", err)
	}
	return fd, nil
}

// explainFork says what to do about a kernel that refuses the namespaces.
func explainFork(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES):
		if c := userNamespaces(); !c.Enforced {
			return fmt.Errorf("start a sandbox: %w: %w: %s: %s", err, backend.ErrUnsupported, c.Why, c.Fix)
		}
		return fmt.Errorf("start a sandbox: %w: %w: new namespaces are refused here, perhaps by a container's seccomp profile or an AppArmor rule: allow user namespaces, or use another backend", err, backend.ErrUnsupported)
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("start a sandbox: %w: the machine is out of memory or processes: close other sandboxes, or raise the limit of the caller (ulimit -u, its cgroup)", err)
	default:
		return fmt.Errorf("start a sandbox: %w", err)
	}
}

// explainSetup says what to do about an inside that could not be built.
func explainSetup(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "proc file system") && strings.Contains(text, unix.EPERM.Error()):
		return fmt.Errorf("set up the sandbox: %s: %w: /proc of this place is partly masked, as in a container: run the container with an unmasked /proc (--security-opt systempaths=unconfined), or use another backend", text, backend.ErrUnsupported)
	case strings.Contains(text, unix.ENOSYS.Error()):
		return fmt.Errorf("set up the sandbox: %s: %w: Linux 5.12 or later is needed", text, backend.ErrUnsupported)
	case strings.Contains(text, unix.EPERM.Error()), strings.Contains(text, unix.EACCES.Error()):
		if c := userNamespaces(); !c.Enforced {
			return fmt.Errorf("set up the sandbox: %s: %w: %s: %s", text, backend.ErrUnsupported, c.Why, c.Fix)
		}
		return fmt.Errorf("set up the sandbox: %s: %w: what a new user namespace allows is forbidden here, perhaps by a security module or a container's profile: allow it, or use another backend", text, backend.ErrUnsupported)
	default:
		return fmt.Errorf("set up the sandbox: %s", text)
	}
}
