package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

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
		on("seccomp", "seccomp filter"), landlockControl(), timeControl(),
	}}
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
