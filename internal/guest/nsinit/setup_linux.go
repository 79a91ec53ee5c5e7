package nsinit

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Config is what the guest agent must know of the sandbox it now lives in.
type Config struct {
	CodeUID, CodeGID uint32
	// SharedUID reports whether the code has the agent's own uid.
	SharedUID bool
	Workdir   string
	Seccomp   []byte // as in Plan
	// LandlockRead and LandlockWrite are as in Plan, paths of the new root.
	LandlockRead, LandlockWrite []string
	Rlimits                     []Rlimit
	// OnSpawnerThread must be called once, on the locked thread that will fork
	// every process, before the first fork: it gives that thread the namespaces
	// that only its children shall see, and takes the last privileges of set-up
	// away from the whole agent.
	OnSpawnerThread func() error
}

// Setup reads a plan from the socket fd, carries it out, and answers. It must run
// early in main, as pid 1 of new user, mount, pid, network, IPC and UTS namespaces.
// On an error the answer has been sent and the process should exit: what it had
// mounted dies with it.
func Setup(fd int) (Config, error) {
	config, reply, err := setup(fd)
	if _, werr := unix.Write(fd, encodeReply(reply, err)); werr != nil && err == nil {
		err = fmt.Errorf("answer the host: %w", werr)
	}
	return config, err
}

func setup(fd int) (Config, Reply, error) {
	plan, fds, err := receive(fd)
	if err != nil {
		return Config{}, Reply{}, fmt.Errorf("receive set-up plan: %w", err)
	}
	unix.Umask(0)
	exposed, err := buildRoot(plan, fds)
	if err != nil {
		return Config{}, Reply{}, err
	}
	unix.Umask(0o022)
	if err := unix.Sethostname([]byte(plan.Hostname)); err != nil {
		return Config{}, Reply{}, fmt.Errorf("set host name: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return Config{}, Reply{}, fmt.Errorf("bring up loopback: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return Config{}, Reply{}, err
	}
	if err := noCoreDumps(); err != nil {
		return Config{}, Reply{}, fmt.Errorf("turn core dumps off: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return Config{}, Reply{}, fmt.Errorf("hide the agent's memory: %w", err)
	}
	return Config{
		CodeUID: plan.CodeUID, CodeGID: plan.CodeGID, SharedUID: !plan.SetIDs, Workdir: plan.Workdir,
		Seccomp: plan.Seccomp, LandlockRead: plan.LandlockRead, LandlockWrite: plan.LandlockWrite,
		Rlimits:         plan.Rlimits,
		OnSpawnerThread: func() error { return enterSpawner(plan.HideUptime) },
	}, Reply{Exposed: exposed, StartDir: plan.StartDir != "" && canEnter(plan.StartDir, plan)}, nil
}

// canEnter reports whether the code can have dir as its working directory.
func canEnter(dir string, plan *Plan) bool {
	if plan.SetIDs {
		// To the file system this thread is the code for a moment; with the uid go
		// the capabilities that open every directory.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Setfsgid(int(plan.CodeGID)) != nil || unix.Setfsuid(int(plan.CodeUID)) != nil {
			return false
		}
		defer func() { _, _ = unix.Setfsuid(0), unix.Setfsgid(0) }()
	}
	var st unix.Stat_t
	return unix.Stat(dir+"/.", &st) == nil
}

// setIDs makes every thread uid and gid 0 of the namespace. Until then the agent
// still has the identity it had on the host, which it needed to open the host's
// directories.
func setIDs() error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop groups: %w", err)
	}
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		return fmt.Errorf("set gid: %w", err)
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		return fmt.Errorf("set uid: %w", err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// noCoreDumps sets the limit of core files to 1, with which the kernel neither writes
// one nor, as it does with 0, starts a handler of the host's (core(5)).
func noCoreDumps() error {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &r); err != nil {
		return err
	}
	r.Max = min(r.Max, 1)
	r.Cur = r.Max
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &r)
}
