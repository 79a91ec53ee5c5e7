package engine

import (
	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
)

// foreignControls returns the controls of a container that another program made.
func (b *Backend) foreignControls(host Host, c container.InspectResponse) backend.Capabilities {
	h := c.HostConfig
	if h == nil {
		h = &container.HostConfig{}
	}
	control := func(name, by string, enforced bool, why string) backend.Control {
		if enforced {
			return backend.Control{Name: name, Enforced: true, By: by}
		}
		return backend.Control{Name: name, Why: why + "; the container was made by another program", Fix: "make it with this limit, or let a sandbox make its own container"}
	}
	name := b.Name()
	all := []backend.Control{
		control("user", name, c.Config != nil && !rootUser(c.Config.User), "it runs as root"),
		{Name: "agent", Why: "it is not the first process of a container that another program made, so code of its user can end it: the run is then lost",
			Fix: "let a sandbox make its own container"},
		control("filesystem", "mount namespace", h.ReadonlyRootfs, "its root can be written to"),
		control("processes", "pid namespace", !h.PidMode.IsHost(), "it shares the host's processes"),
		control("network", "network namespace", h.NetworkMode.IsNone(), "it has a network"),
		control("ipc", "IPC namespace", !h.IpcMode.IsHost(), "it shares the host's IPC"),
		control("capabilities", name, !h.Privileged && len(h.CapDrop) == 1 && h.CapDrop[0] == "ALL" && len(h.CapAdd) == 0, "not all capabilities are dropped"),
		{Name: "no-new-privs", Enforced: true, By: "agent"},
		{Name: "core-dumps", Enforced: true, By: "RLIMIT_CORE 1"},
		{Name: "seccomp", Enforced: true, By: "the agent's filter", Detail: engineFilter(host)},
		userNamespace(host),
		control("memory", name, h.Memory > 0, "it has no memory limit"),
		control("cpus", name, h.NanoCPUs > 0 || h.CPUQuota > 0, "it has no limit of CPUs"),
		control("pids", name, value(h.PidsLimit) > 0, "it has no limit of processes"),
		control("disk", name, false, "what it may write is not limited"),
	}
	return backend.Capabilities{Backend: name, Isolation: isolation(host, h), Controls: all}
}
