package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// inPlace has a process use its parent's memory until its exec, during which the thread that
// forks waits, as for every other program that Go starts. Package syscall leaves this out with a
// new user namespace, since it may have to write its mappings before the exec, and so copies the
// page tables of the whole process: here, they are written afterwards.
const inPlace = unix.CLONE_VM | unix.CLONE_VFORK

// namespaces isolate by the kernel's namespaces, seccomp and Landlock. The agent is forked
// into them and receives over a socket what to mount.
type namespaces struct{}

// A newAgent is one that waits for its plan.
type newAgent struct {
	process    process
	log        string // path of what the agent writes on its standard error
	namespaces bool   // it has its own
}

// start implements isolator.
func (n namespaces) start(ctx context.Context, l *launch) (*process, error) {
	p, err := n.tryStart(ctx, l)
	if errors.Is(err, backend.ErrUnsupported) && errInPlace() == nil {
		err = fmt.Errorf("%w; or use the isolation process, which works here with the programs of this place and is weaker (--isolation process)", err)
	}
	return p, err
}

func (namespaces) tryStart(ctx context.Context, l *launch) (*process, error) {
	filter := concurrently(func() ([]byte, error) { return seccomp.Filter(runtime.GOARCH) })
	a := &newAgent{namespaces: true}
	return a.start(ctx, l, func() error { return a.boot(ctx, l, filter) })
}

// start starts the agent and has boot give it its plan. When that fails, it has ended.
func (a *newAgent) start(ctx context.Context, l *launch, boot func() error) (*process, error) {
	owner, setup, err := packetPair("set-up socket")
	if err != nil {
		return nil, err
	}
	a.process.owner, a.log = owner, filepath.Join(l.dir, "agent.log")
	err = a.fork(ctx, l, setup)
	setup.Close() // with a copy here, the end of an agent that dies would not be seen
	if err != nil {
		a.process.owner.Close()
		return nil, err
	}
	if err := boot(); err != nil {
		kerr := a.process.kill()
		_, werr := a.process.wait()
		a.process.close()
		return nil, errors.Join(err, kerr, werr)
	}
	return &a.process, nil
}

// boot gives the agent its users and its plan.
func (a *newAgent) boot(ctx context.Context, l *launch, filter func() ([]byte, error)) error {
	users, err := l.users()
	if err != nil {
		return err
	}
	if l.parent == nil {
		err = users.write(a.process.pid)
	}
	if err != nil {
		return fmt.Errorf("give the sandbox its users: %w", err)
	}
	c, err := l.contents()
	if err != nil {
		return err
	}
	program, err := filter()
	if err != nil {
		return fmt.Errorf("system call filter: %w", err)
	}
	in := planInput{identity: users, detached: privileged(), diskSize: c.diskSize, empty: l.empty, workdir: c.workdir, descriptors: map[int]uint32{}, startDir: c.startDir, sudo: c.sudo,
		seccomp: program, rlimits: c.rlimits, timens: hasTimeNamespaces(), tag: l.tag}
	if l.entrance != nil {
		if in.entering, err = seccomp.Entering(runtime.GOARCH); err != nil {
			return fmt.Errorf("system call filter: %w", err)
		}
	}
	if in.mounts, err = addMountPoints(filepath.Join(l.dir, "points"), c.mounts); err != nil {
		return err
	}
	var send []*os.File
	if c.disk != nil {
		in.descriptors[diskDescriptor] = 0
		send = append(send, c.disk)
	}
	own := owners{agent: l.agent, users: users}
	defer own.close()
	for i, m := range in.mounts {
		writable := m.kind == mountOverlay && !m.readOnly
		if m.opened == nil && !(writable && privileged()) {
			continue
		}
		in.descriptors[i] = uint32(len(send))
		if !privileged() {
			send = append(send, m.opened)
			continue
		}
		trees, err := own.detachedTrees(m)
		send = append(send, trees...)
		for _, f := range trees {
			defer f.Close()
		}
		if err != nil {
			return fmt.Errorf("mount for %s: %w", m.target, err)
		}
	}
	plan := makePlan(in)
	exposed := 0
	if l.parent != nil && privileged() {
		var opened []*os.File
		if opened, exposed, err = openForOther(plan.Steps, len(send)); err != nil {
			return err
		}
		for _, f := range opened {
			defer f.Close()
		}
		send = append(send, opened...)
	}
	if len(send) > nsinit.MaxFDs {
		return fmt.Errorf("%d layers and mounts are more than %d", len(send), nsinit.MaxFDs-1)
	}
	b, err := plan.Encode()
	if err != nil {
		return err
	}
	done, err := a.setUp(ctx, b, send)
	if err != nil {
		return err
	}
	if l.parent != nil {
		if err := a.takeIn(ctx, l); err != nil {
			return err
		}
	}
	a.process.controls, a.process.startDir = []backend.Control{hostPathsControl(int(done.Exposed)+exposed, in.mounts), procControl(done.Proc)}, done.StartDir
	a.process.proc = done.Proc
	return nil
}

// fork starts the agent, which does nothing before it has a plan, so the group can still
// move it.
func (a *newAgent) fork(ctx context.Context, l *launch, setup *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	log, err := os.OpenFile(a.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return inStateDir("make the agent's log", err)
	}
	defer log.Close()
	pidfd := -1
	args := append([]string{"llmsandbox-agent", "--listen-fd", "3", "--setup-fd", "4"}, l.timers...)
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{}, // nothing of the host's environment gets inside
		Files: []uintptr{null.Fd(), null.Fd(), log.Fd(), l.socket.Fd(), setup.Fd()},
		Sys:   &syscall.SysProcAttr{PidFD: &pidfd, Setsid: true},
	}
	if a.namespaces {
		attr.Sys.Cloneflags, attr.Sys.AmbientCaps = inPlace|nsinit.CloneFlags, nsinit.SetupCaps
	}
	if l.parent != nil {
		p, err := l.parent.launch(ctx, l, args, attr.Files)
		if err != nil {
			return err
		}
		a.process.pid, a.process.pidfd, a.process.parent, a.process.launched = p.pid, p.pidfd, p.parent, p.launched
		return nil
	}
	if l.entrance != nil {
		attr.Files = append(attr.Files, l.entrance.Fd())
		args = append(args, "--entrance-fd", "5")
	}
	err = l.group.Start(ctx, func(cgroupFD int) (int, error) {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = cgroupFD >= 0, max(cgroupFD, 0)
		var err error
		a.process.pid, err = syscall.ForkExec(l.agent, args, attr)
		return a.process.pid, err
	})
	if err != nil && a.process.pid <= 0 {
		return explainFork(err)
	}
	if err == nil && pidfd < 0 {
		err = errors.New("the kernel gives no pidfd (Linux 5.4 or later is needed)")
	}
	if err == nil {
		err = unix.SetNonblock(pidfd, true)
	}
	if pidfd >= 0 {
		a.process.pidfd = os.NewFile(uintptr(pidfd), "agent")
	}
	if err != nil { // born, but of no use
		a.process.pidfd.Close() // nil is an error that says nothing more
		return errors.Join(err, unix.Kill(a.process.pid, unix.SIGKILL), reap(a.process.pid))
	}
	return nil
}

func reap(pid int) error {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return err
		}
	}
}

// setUp sends the plan and waits until the agent has carried it out.
func (a *newAgent) setUp(ctx context.Context, plan []byte, mounts []*os.File) (nsinit.Reply, error) {
	fds := make([]int, len(mounts))
	for i, m := range mounts {
		fds[i] = int(m.Fd())
	}
	stop := context.AfterFunc(ctx, func() { a.process.kill() })
	defer stop()
	if err := sendPacket(a.process.owner, plan, fds); err != nil {
		return nsinit.Reply{}, a.failed(ctx, fmt.Errorf("send the agent its plan: %w", err))
	}
	reply := make([]byte, nsinit.MaxReply+1)
	n, err := a.process.owner.Read(reply)
	if err != nil || n == 0 {
		return nsinit.Reply{}, a.failed(ctx, errors.New("the agent ended during set-up"))
	}
	done, err := nsinit.DecodeReply(reply[:n])
	if err != nil {
		return nsinit.Reply{}, explainSetup(err)
	}
	return done, nil
}

// failed adds what is known to the failure of an agent that did not answer.
func (a *newAgent) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	const most = 2 << 10
	log, rerr := os.ReadFile(a.log)
	if rerr != nil || len(log) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(log[:min(len(log), most)])))
}

// explainFork says what to do about a kernel that refuses the namespaces.
func explainFork(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES):
		if c := userNamespaces(); !c.Enforced {
			return fmt.Errorf("start a sandbox: %w: %w: %s: %s", err, backend.ErrUnsupported, c.Why, c.Fix)
		}
		return fmt.Errorf("start a sandbox: %w: %w: new namespaces are refused here, perhaps by a container's seccomp profile or an AppArmor rule: allow user namespaces (docs/containers.md shows how for a container), or use another backend", err, backend.ErrUnsupported)
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
	case strings.Contains(text, nsinit.HiddenProcesses):
		return fmt.Errorf("set up the sandbox: %s: %w: mount /proc without hidepid, %s", text, backend.ErrUnsupported, unmaskProc)
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

// capabilities are the same for every sandbox of a user on this machine.
func (namespaces) capabilities(id identity) backend.Capabilities {
	on := func(name, by string) backend.Control { return backend.Control{Name: name, Enforced: true, By: by} }
	uid := on("separate-uid", "user namespace")
	uid.Detail = "the code's user is neither the agent's nor one of the host's"
	if !id.separate {
		uid = backend.Control{Name: "separate-uid", Why: "the code and the agent are both the caller's own user, as no subordinate ids are set up for it",
			Fix: "install uidmap and add the user to /etc/subuid and /etc/subgid (usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER)"}
	} else if id.helpers {
		uid.By = "newuidmap"
	}
	network := on("network", "network namespace")
	network.Detail = "loopback only; a network that is asked for goes through a proxy of the process that opens the sandbox"
	return backend.Capabilities{Isolation: "namespace", Controls: []backend.Control{
		userNamespaces(), uid, on("agent", "pid 1, non-dumpable"),
		on("filesystem", "mount namespace and pivot_root"), on("processes", "pid namespace"), network,
		on("ipc", "IPC namespace"), on("capabilities", "none are held by the code"), on("no-new-privs", "prctl"),
		on("core-dumps", "RLIMIT_CORE 1, and seccomp"),
		on("seccomp", "seccomp filter"), landlockControl(landlock.ABI()), timeControl(),
	}}
}

// hostPathsControl reports whether the mount table inside names directories of the host.
func hostPathsControl(exposed int, mounts []mount) backend.Control {
	if exposed == 0 {
		detail := "the mount table names no folder of a user"
		if slices.ContainsFunc(mounts, func(m mount) bool { return m.opened != nil && m.kind == mountBind }) {
			detail += " but the sources of read-only mounts"
		}
		return backend.Control{Name: "host-paths", Enforced: true, By: "overlay", Detail: detail}
	}
	return backend.Control{Name: "host-paths",
		Why: fmt.Sprintf("the mount table names where %d of the mounted folders are on the host, as the kernel lays no overlay over them", exposed),
		Fix: "use Linux 5.11 or later with overlayfs, with nothing mounted below the toolchains; or install the toolchains below /usr"}
}

// unmaskProc is what gives sandboxes a /proc of their own in a container.
const unmaskProc = "run the container with an unmasked /proc (--security-opt systempaths=unconfined; docs/containers.md has more), or use another backend"

// procControl reports whose processes are in /proc.
func procControl(proc nsinit.Proc) backend.Control {
	c := backend.Control{Name: "proc", Fix: unmaskProc}
	const why = "the kernel refuses the sandbox a /proc of its own, as the one of this place is partly masked: "
	switch proc {
	case nsinit.ProcClosed:
		c.Why = why + "code has that one, closed by Landlock: it can tell which processes there are here and whose, and can open no file about processes, not even its own"
	case nsinit.ProcEmpty:
		c.Why = why + "it is empty, so programs do not find themselves (/proc/self/exe) and their descriptors (/dev/stdin, /dev/fd)"
	default:
		return backend.Control{Name: "proc", Enforced: true, By: "pid namespace"}
	}
	return c
}

// landlockControl reports on Landlock of this ABI; 0: the kernel has none.
func landlockControl(abi int) backend.Control {
	if abi == 0 {
		return backend.Control{Name: "landlock", Why: "the kernel has no Landlock, or has it turned off",
			Fix: "use Linux 5.13 or later with landlock in its lsm= list; the mounts protect the same files"}
	}
	c := backend.Control{Name: "landlock", Enforced: true, By: "Landlock", Detail: "ABI " + strconv.Itoa(abi)}
	if lacks := landlock.Unenforced(abi); len(lacks) > 0 {
		c.Detail += ", which does not restrict " + strings.Join(lacks, ", ")
	}
	return c
}

func timeControl() backend.Control {
	if !hasTimeNamespaces() {
		return backend.Control{Name: "hidden-uptime", Why: "the kernel has no time namespaces", Fix: "use Linux 5.6 or later"}
	}
	return backend.Control{Name: "hidden-uptime", Enforced: true, By: "time namespace"}
}

func hasTimeNamespaces() bool {
	_, err := os.Lstat("/proc/self/ns/time")
	return err == nil
}

// userNamespaces reports whether they can be made.
func userNamespaces() backend.Control { return userNamespacesBy("/proc", os.Geteuid()) }

// userNamespacesBy reports it for a user from the kernel's settings and what it says of this process.
func userNamespacesBy(proc string, uid int) backend.Control {
	for _, s := range []struct {
		path, bad string
		spared    bool
		why, fix  string
	}{
		{"sys/user/max_user_namespaces", "0", false, "user namespaces are turned off (user.max_user_namespaces is 0)", "as root: sysctl -w user.max_user_namespaces=15000"},
		{"sys/kernel/unprivileged_userns_clone", "0", uid == 0, "user namespaces are only for root here (kernel.unprivileged_userns_clone is 0)", "as root: sysctl -w kernel.unprivileged_userns_clone=1"},
		{"sys/kernel/apparmor_restrict_unprivileged_userns", "1", uid == 0 || profiled(proc), "AppArmor allows user namespaces only to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)", "as root: llmsandbox setup apparmor (another program needs a profile of its own with 'userns,')"},
	} {
		b, err := os.ReadFile(filepath.Join(proc, s.path))
		if err == nil && strings.TrimSpace(string(b)) == s.bad && !s.spared {
			return backend.Control{Name: "user-namespace", Why: s.why, Fix: s.fix}
		}
	}
	if _, err := os.Lstat(filepath.Join(proc, "self/ns/user")); err != nil {
		return backend.Control{Name: "user-namespace", Why: "the kernel has no user namespaces", Fix: "use a kernel with CONFIG_USER_NS"}
	}
	return backend.Control{Name: "user-namespace", Enforced: true, By: "user namespace"}
}

// profiled tells whether this process has a profile of AppArmor, which then decides.
func profiled(proc string) bool {
	label, err := os.ReadFile(filepath.Join(proc, "self/attr/apparmor/current"))
	return err == nil && strings.TrimSpace(string(label)) != "unconfined"
}
