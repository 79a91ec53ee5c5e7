package podman

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// minIDs is how many ids of its own a user needs, so that the usual users of images have
// one.
const minIDs = 65536

// userSetup looks at what an ordinary user's Podman needs of this machine: ids of its
// own and the two programs that hand them out. Root needs neither, but must be able to raise limits;
// on other systems Podman runs in a virtual machine.
func userSetup() []backend.Finding {
	switch {
	case runtime.GOOS != "linux":
		return nil
	case os.Geteuid() == 0:
		return rootSetup("/proc")
	}
	u, err := user.Current()
	if err != nil {
		return []backend.Finding{{Check: "user", Level: backend.LevelFailure, Detail: err.Error(), Fix: "give this uid a name in the user database"}}
	}
	return []backend.Finding{
		ids("/etc/subuid", u), ids("/etc/subgid", u), idProgram("newuidmap"), idProgram("newgidmap"),
	}
}

// ids looks up how many ids a user may hand out.
func ids(file string, u *user.User) backend.Finding {
	f := backend.Finding{Check: file, Level: backend.LevelOK}
	content, err := os.Open(file)
	if err != nil {
		f.Level, f.Detail, f.Fix = backend.LevelFailure, err.Error(), giveIDs(u)
		return f
	}
	defer content.Close()
	n := 0
	lines := bufio.NewScanner(content)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 3 || fields[0] != u.Username && fields[0] != u.Uid {
			continue
		}
		if count, err := strconv.Atoi(fields[2]); err == nil && count > 0 {
			n += count
		}
	}
	f.Detail = fmt.Sprintf("%d ids for %s", n, u.Username)
	if err := lines.Err(); err != nil {
		f.Level, f.Detail, f.Fix = backend.LevelFailure, err.Error(), "correct the file"
	} else if n < minIDs {
		f.Level, f.Fix = backend.LevelFailure, giveIDs(u)
		f.Detail += fmt.Sprintf(", Podman needs %d", minIDs)
	}
	return f
}

func giveIDs(u *user.User) string {
	return fmt.Sprintf("as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s (a range that nobody else has), then podman system migrate", u.Username)
}

// idProgram looks for a program that makes a user's ids its own; it needs root's rights
// for it, by the set-user-id bit or by a file capability.
func idProgram(name string) backend.Finding {
	path, err := exec.LookPath(name)
	if err != nil {
		return backend.Finding{Check: name, Level: backend.LevelFailure, Detail: "it is not installed",
			Fix: "install it (Debian: uidmap; Fedora: shadow-utils)"}
	}
	return backend.Finding{Check: name, Level: backend.LevelOK, Detail: path}
}

// sysResource is the bit of CAP_SYS_RESOURCE.
const sysResource = 24

// rootSetup looks whether root may raise limits of processes, as Podman does for each container.
func rootSetup(proc string) []backend.Finding {
	status, err := os.ReadFile(filepath.Join(proc, "self/status"))
	if err != nil {
		return nil // what is not known is no finding
	}
	_, effective, _ := strings.Cut(string(status), "\nCapEff:")
	effective, _, _ = strings.Cut(effective, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(effective), 16, 64)
	if err != nil || set&(1<<sysResource) != 0 {
		return nil
	}
	return []backend.Finding{{Check: "process limits", Level: backend.LevelWarning,
		Detail: "root lacks CAP_SYS_RESOURCE here, so containers do not start unless containers.conf lowers their limits", Fix: limitsFix(proc)}}
}

// limitsFix is the line of containers.conf for a root that may not raise limits. Podman lowers its own
// limit of processes to pid_max, and so may not give more to a container.
func limitsFix(proc string) string {
	files, processes := "N", "M"
	if limits, err := os.ReadFile(filepath.Join(proc, "self/limits")); err == nil {
		files, processes = hardLimit(string(limits), "Max open files", files), hardLimit(string(limits), "Max processes", processes)
	}
	most, err := os.ReadFile(filepath.Join(proc, "sys/kernel/pid_max"))
	if pids, perr := strconv.Atoi(strings.TrimSpace(string(most))); err == nil && perr == nil {
		if n, err := strconv.Atoi(processes); err != nil || n > pids {
			processes = strconv.Itoa(pids)
		}
	}
	return fmt.Sprintf("set default_ulimits = [\"nofile=%s:%[1]s\", \"nproc=%s:%[2]s\"] in the [containers] table of containers.conf", files, processes)
}

// hardLimit returns a hard limit of /proc/PID/limits that is a number.
func hardLimit(limits, name, otherwise string) string {
	_, rest, found := strings.Cut(limits, name)
	if fields := strings.Fields(rest); found && len(fields) > 1 {
		if _, err := strconv.Atoi(fields[1]); err == nil {
			return fields[1]
		}
	}
	return otherwise
}
