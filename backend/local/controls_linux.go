package local

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

const (
	byRlimitData  = "RLIMIT_DATA of each process"
	byRlimitNproc = "RLIMIT_NPROC of the sandbox's user"
)

// Capabilities reports what a sandbox with every limit would be held to here.
func (b *Backend) Capabilities(ctx context.Context) (backend.Capabilities, error) {
	d, err := b.dirs()
	if err != nil {
		return backend.Capabilities{}, err
	}
	id := userIdentity()
	diskWhy := errNoLoop
	if privileged() {
		id = rootIdentity("")
		var f *os.File
		if f, diskWhy = b.disks.newDisk(d.cache, 64<<20, 0, 0); diskWhy == nil {
			f.Close()
		}
	}
	limits := substitutes(groupControls(), id)
	limits = append(limits, diskControl(diskWhy, limits))
	return backend.Capabilities{Backend: "local", Isolation: "namespace", Controls: append(machineControls(id), limits...)}, nil
}

// describe reports what limits this sandbox, or fails when a limit that was required is
// not enforced.
func (c *creation) describe(diskWhy error) ([]backend.Control, error) {
	limits := substitutes(c.group.Controls(), c.identity)
	if c.spec.Limits.Disk > 0 {
		limits = append(limits, diskControl(diskWhy, limits))
	} else {
		limits = append(limits, backend.Control{Name: "disk", Why: "no limit was asked for"})
	}
	if err := agenthost.CheckLimits(c.spec, limits); err != nil {
		return nil, err
	}
	return append(machineControls(c.identity), limits...), nil
}

// substitutes puts the per-process limits in place of cgroup controls that are
// missing. They are weaker and never count as enforced.
func substitutes(controls []backend.Control, id identity) []backend.Control {
	for i, k := range controls {
		if k.Enforced || k.Fix == "" { // nothing to fix: no limit was asked for
			continue
		}
		switch k.Name {
		case "memory":
			controls[i].By = byRlimitData
			controls[i].Detail = "a process that sets aside half as much again gets no more memory; several processes together are not limited"
		case "pids":
			if limitsProcesses(id) {
				controls[i].By = byRlimitNproc
				controls[i].Detail = "counts the processes of the sandbox's user"
			}
		}
	}
	return controls
}

// limitsProcesses reports whether RLIMIT_NPROC says something about the sandbox.
func limitsProcesses(id identity) bool { return id.separate || countsPerNamespace() }

// countsPerNamespace reports whether RLIMIT_NPROC counts what a user runs in one user
// namespace. Before Linux 5.14 it counts all of the user's processes on the machine,
// which say nothing about the sandbox when the code has the caller's own uid.
var countsPerNamespace = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return releaseAtLeast(unix.ByteSliceToString(u.Release[:]), 5, 14)
})

func releaseAtLeast(release string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// diskControl reports what limits the disk. Without a file system of its own (why) it is
// memory, which another of the limits may or may not count.
func diskControl(why error, limits []backend.Control) backend.Control {
	const what = "/sandbox, /tmp and /dev/shm together"
	if why == nil {
		return backend.Control{Name: "disk", Enforced: true, By: "ext4 on a loop device", Detail: what}
	}
	counted := "which nothing else limits here"
	for _, k := range limits {
		if k.Name == "memory" && k.Enforced {
			counted = "and count against the memory limit"
		}
	}
	return backend.Control{Name: "disk", Enforced: true, By: "tmpfs", Detail: what,
		Why: "files take memory, " + counted + ": " + why.Error()}
}

// machineControls are the same for every sandbox of a user on this machine.
func machineControls(id identity) []backend.Control {
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
	return []backend.Control{
		userNamespaces(), uid, on("agent", "pid 1, non-dumpable"),
		on("filesystem", "mount namespace and pivot_root"), on("processes", "pid namespace"), network,
		on("ipc", "IPC namespace"), on("capabilities", "none are held by the code"), on("no-new-privs", "prctl"),
		on("core-dumps", "RLIMIT_CORE 1, and seccomp"),
		on("seccomp", "seccomp filter"), landlockControl(), timeControl(),
	}
}

// hostPathsControl reports whether the mount table inside names directories of the host.
func hostPathsControl(exposed int) backend.Control {
	if exposed == 0 {
		return backend.Control{Name: "host-paths", Enforced: true, By: "overlay", Detail: "the mount table names no folder of a user"}
	}
	return backend.Control{Name: "host-paths",
		Why: fmt.Sprintf("the mount table names where %d of the mounted folders are on the host, as the kernel lays no overlay over them", exposed),
		Fix: "use Linux 5.11 or later with overlayfs, with nothing mounted below the toolchains; or install the toolchains below /usr"}
}

func landlockControl() backend.Control {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return backend.Control{Name: "landlock", Why: "the kernel has no Landlock: " + errno.Error(),
			Fix: "use Linux 5.13 or later with landlock in its lsm= list; the mounts protect the same files"}
	}
	return backend.Control{Name: "landlock", Enforced: true, By: "Landlock", Detail: "ABI " + strconv.Itoa(int(abi))}
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

// userNamespaces reports from the kernel's settings whether they can be made.
func userNamespaces() backend.Control {
	for _, s := range []struct {
		path, bad string
		anyone    bool // root is forbidden too
		why, fix  string
	}{
		{"/proc/sys/user/max_user_namespaces", "0", true, "user namespaces are turned off (user.max_user_namespaces is 0)", "as root: sysctl -w user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", false, "user namespaces are only for root here (kernel.unprivileged_userns_clone is 0)", "as root: sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", false, "AppArmor allows user namespaces only to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)", "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give the program a profile with 'userns,'"},
	} {
		b, err := os.ReadFile(s.path)
		if err == nil && strings.TrimSpace(string(b)) == s.bad && (s.anyone || os.Geteuid() != 0) {
			return backend.Control{Name: "user-namespace", Why: s.why, Fix: s.fix}
		}
	}
	if _, err := os.Lstat("/proc/self/ns/user"); err != nil {
		return backend.Control{Name: "user-namespace", Why: "the kernel has no user namespaces", Fix: "use a kernel with CONFIG_USER_NS"}
	}
	return backend.Control{Name: "user-namespace", Enforced: true, By: "user namespace"}
}
