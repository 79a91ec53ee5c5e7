package nsinit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Config is what the guest agent must know of the sandbox it now lives in.
type Config struct {
	CodeUID, CodeGID uint32
	OwnUsers, Sudo   bool // as in Plan
	// SharedUID reports whether the code has the agent's own uid.
	SharedUID  bool
	Workdir    string
	Seccomp    []byte // as in Plan
	SeccompTCP []byte // as in Plan
	// LandlockRead, LandlockWrite and LandlockSpecial are as in Plan, paths of the new root.
	LandlockRead, LandlockWrite, LandlockSpecial []string
	Process                                      bool   // as in Plan
	Notify                                       []byte // as in Plan
	WatchMemory, WatchDisk                       uint64 // as in Plan
	Rlimits                                      []Rlimit
	Entering                                     []byte // as in Plan
	Adopt                                        string // as in Plan
	Proc                                         Proc
	// Layers are descriptors of the directories with what is written to the root, by where in it they are mounted; none: it is
	// read-only. Nothing else leads to them.
	Layers map[string]int
	// Namespaces are descriptors of those that a process of this sandbox is in, the user namespace first, if Adopt is
	// not empty. They are complete once OnSpawnerThread was called.
	Namespaces *[]int
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
//
// A plan without namespaces is given to confine with the descriptors that came with it. It does not return but with an error, and
// has this process executed again to read that plan from the file again.
func Setup(fd, again int, confine func(plan *Plan, encoded []byte, fds []int) error) (Config, error) {
	config, reply, err := setup(fd, again, confine)
	if _, werr := unix.Write(fd, encodeReply(reply, err)); werr != nil && err == nil {
		err = fmt.Errorf("answer the host: %w", werr)
	}
	return config, err
}

func setup(fd, again int, confine func(*Plan, []byte, []int) error) (Config, Reply, error) {
	text, fds, err := receive(fd, again)
	if err != nil {
		return Config{}, Reply{}, fmt.Errorf("receive set-up plan: %w", err)
	}
	plan, err := Decode(text)
	if err != nil {
		return Config{}, Reply{}, fmt.Errorf("receive set-up plan: %w", err)
	}
	if plan.Process {
		if again < 0 {
			return Config{}, Reply{}, confine(plan, text, fds)
		}
		config, err := stay(plan)
		return config, Reply{}, err
	}
	unix.Umask(0)
	exposed, layers, err := buildRoot(plan, fds)
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
	proc, err := procOf(plan)
	if err != nil {
		return Config{}, Reply{}, fmt.Errorf("look at /proc: %w", err)
	}
	namespaces := new([]int)
	if plan.Adopt != "" {
		if *namespaces, err = openNamespaces("user", "mnt", "net", "ipc", "uts", "pid"); err != nil {
			return Config{}, Reply{}, err
		}
	}
	return Config{
		Entering: plan.Entering, Adopt: plan.Adopt, Namespaces: namespaces, Layers: layers,
		CodeUID: plan.CodeUID, CodeGID: plan.CodeGID, OwnUsers: plan.OwnUsers, Sudo: plan.Sudo, SharedUID: !plan.SetIDs, Workdir: plan.Workdir,
		Seccomp: plan.Seccomp, LandlockRead: plan.LandlockRead, LandlockWrite: plan.LandlockWrite, LandlockSpecial: plan.LandlockSpecial,
		Rlimits: plan.Rlimits, Proc: proc,
		OnSpawnerThread: func() error {
			err := enterSpawner(plan.HideUptime, proc)
			if err == nil && plan.Adopt != "" {
				of := []string{"cgroup"}
				if plan.HideUptime {
					of = append(of, "time_for_children")
				}
				var more []int
				more, err = openNamespaces(of...)
				*namespaces = append(*namespaces, more...)
			}
			return err
		},
	}, Reply{Exposed: uint32(exposed), StartDir: plan.StartDir != "" && canEnter(plan.StartDir, plan), Proc: proc}, nil
}

// stay is set-up without namespaces. What is left of the agent's privileges is to be another user, and to kill.
func stay(plan *Plan) (Config, error) {
	if len(plan.Steps) > 0 {
		return Config{}, fmt.Errorf("%w: steps without a mount namespace", errPlan)
	}
	if plan.SetIDs {
		if err := checkCapsInPlace(); err != nil {
			return Config{}, err
		}
	}
	unix.Umask(0o022)
	if err := noCoreDumps(); err != nil {
		return Config{}, fmt.Errorf("turn core dumps off: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return Config{}, fmt.Errorf("hide the agent's memory: %w", err)
	}
	return Config{
		Process: true, CodeUID: plan.CodeUID, CodeGID: plan.CodeGID, SharedUID: !plan.SetIDs, Workdir: plan.Workdir, Seccomp: plan.Seccomp, SeccompTCP: plan.SeccompTCP, Notify: plan.Notify,
		WatchMemory: plan.WatchMemory, WatchDisk: plan.WatchDisk,
		LandlockRead: plan.LandlockRead, LandlockWrite: plan.LandlockWrite, LandlockSpecial: plan.LandlockSpecial, Rlimits: plan.Rlimits,
	}, nil
}

// capsInPlace are keptCaps without namespaces.
const capsInPlace = keptCaps &^ (1 << unix.CAP_SYS_RESOURCE)

// ReduceCapsInPlace leaves the calling thread what the agent needs without namespaces. With no_new_privs, a program that it executes has no
// more on any of its threads.
func ReduceCapsInPlace() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: capsInPlace, Permitted: capsInPlace}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// checkCapsInPlace fails for a process that has more.
func checkCapsInPlace() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("look at the agent's capabilities: %w", err)
	}
	if more := data[0].Permitted &^ capsInPlace; more != 0 || data[1].Permitted != 0 {
		return fmt.Errorf("the agent has kept capabilities: %#x, %#x", more, data[1].Permitted)
	}
	return nil
}

// openNamespaces opens namespaces of the calling thread.
func openNamespaces(names ...string) (fds []int, err error) {
	for _, name := range names {
		fd, err := unix.Open("/proc/thread-self/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open the %s namespace: %w", name, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// canEnter reports whether the code can have dir as its working directory.
func canEnter(dir string, plan *Plan) bool {
	if plan.SetIDs {
		// To the file system this thread is the code for a moment; with the uid go
		// the capabilities that open every directory.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Setfsgid(int(AgentID(plan.OwnUsers, plan.CodeGID))) != nil || unix.Setfsuid(int(AgentID(plan.OwnUsers, plan.CodeUID))) != nil {
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

// receive reads the plan, one packet with the mount descriptors beside it, or the file again.
func receive(fd, again int) (text []byte, fds []int, err error) {
	if again < 0 {
		return ReceiveFDs(fd)
	}
	file := os.NewFile(uintptr(again), "plan")
	defer file.Close()
	text, err = io.ReadAll(io.LimitReader(file, maxPlan+1))
	return text, nil, err
}

func parseFDs(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range msgs {
		more, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}

// keptCaps are what the agent needs after set-up: to give a process its own user and
// no capabilities, and to kill it.
const keptCaps = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_RESOURCE

// enterSpawner runs on the thread that forks. Its cgroup and time namespaces are
// unshared here and not when the agent was cloned: a time namespace is only entered
// by children, and a cgroup namespace must be made by a process already in its cgroup.
func enterSpawner(hideUptime bool, proc Proc) error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: a kernel without
		return fmt.Errorf("new cgroup namespace: %w", err)
	}
	if hideUptime {
		if err := enterTimeNamespace(); err != nil {
			return fmt.Errorf("new time namespace: %w", err)
		}
	}
	if proc == ProcEmpty {
		if err := emptyProc(); err != nil {
			return fmt.Errorf("an empty /proc: %w", err)
		}
	}
	return ReduceCaps(keptCaps)
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
	self, err := os.Readlink("/proc/thread-self") // PID/task/TID, and only PID has the file, if it is called TID
	if err == nil {
		err = writeExisting("/proc/"+path.Base(self)+"/timens_offsets", offsets)
	}
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

// ReduceCaps leaves every thread only the given capabilities, and none that a
// program executed by mistake could inherit.
func ReduceCaps(keep uint64) error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("clear ambient capabilities: %w", errno)
	}
	if errno := capsetAllThreads(keep); errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
