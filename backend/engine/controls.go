package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// Capabilities returns what a sandbox with the backend's options would be held to.
func (b *Backend) Capabilities(ctx context.Context) (backend.Capabilities, error) {
	host, err := b.host(ctx)
	if err != nil {
		return backend.Capabilities{}, err
	}
	// More than any setting asks for, some of which are below the limit.
	spec := backend.Spec{Limits: backend.Limits{Memory: 1 << 40, CPUs: 1, PIDs: 1 << 20, Disk: 1 << 40}}
	c, h := &container.Config{User: defaultUser}, hostConfig(spec, "")
	if err := b.applySettings(spec, c, h); err != nil {
		return backend.Capabilities{}, err
	}
	return b.controls(host, h, spec), nil
}

// controls returns the controls of a container with that configuration.
func (b *Backend) controls(host Host, h *container.HostConfig, spec backend.Spec) backend.Capabilities {
	name := b.flavor.Name
	on := func(what, by, detail string) backend.Control {
		return backend.Control{Name: what, Enforced: true, By: by, Detail: detail}
	}
	all := []backend.Control{
		on("user", name, "the code is not root inside; the agent is of the same user"),
		agentControl(runtimeOf(host, h)),
		on("filesystem", "mount namespace", "the image read-only; "+workdirOf(spec)+" and "+tempDir+" private"),
		on("processes", "pid namespace", ""),
		on("network", "network namespace", "loopback only; a network that is asked for goes through a proxy of the process that opens the sandbox"),
		on("ipc", "IPC namespace", ""),
		on("capabilities", name, "none are held by the code"),
		on("no-new-privs", name+", agent", ""),
		on("core-dumps", "RLIMIT_CORE 1", ""),
		on("seccomp", "the agent's filter", engineFilter(host)),
		userNamespace(host),
		{Name: "landlock", Why: "it is not used in containers, whose mounts protect the same files", Fix: "where runs must not share files, give each a sandbox of its own"},
	}
	for _, l := range host.Limits {
		all = append(all, limitControl(l, h, spec))
	}
	all = append(all, diskControl(spec))
	if len(spec.Mounts) > 0 {
		all = append(all, hostmount.Control(spec.Mounts, name, "read-only"))
	}
	if len(spec.Volumes) > 0 {
		all = append(all, volumeControls(spec.Volumes, name)...)
	}
	if spec.GPUs != "" {
		all = append(all, gpuControl(spec.GPUs))
	}
	return backend.Capabilities{Backend: name, Isolation: isolation(host, h), Controls: b.loosen(agenthost.Powers(all, agenthost.AsRoot(spec), spec.WritableRoot))}
}

// limitControl is the control of a limit; one that was not asked for is reported as absent.
func limitControl(l backend.Control, h *container.HostConfig, spec backend.Spec) backend.Control {
	asked := map[string]bool{
		"memory": h.Memory > 0 || spec.Limits.Memory > 0, "cpus": h.NanoCPUs > 0 || h.CPUQuota > 0 || spec.Limits.CPUs > 0,
		"pids": value(h.PidsLimit) > 0 || spec.Limits.PIDs > 0,
	}
	if !asked[l.Name] {
		return backend.Control{Name: l.Name, Why: backend.NotAsked}
	}
	return l
}

// engineFilter reports whether the engine's own system call filter is there as well.
func engineFilter(host Host) string {
	if host.Seccomp {
		return "and the engine's own"
	}
	return "the engine has none of its own"
}

func userNamespace(host Host) backend.Control {
	if host.UserNamespace {
		return backend.Control{Name: "user-namespace", Enforced: true, By: "user namespace", Detail: "root inside is nobody in particular outside"}
	}
	return backend.Control{Name: "user-namespace", Why: "the engine runs as root and maps no users",
		Fix: "run the engine rootless, or with userns-remap"}
}

// isolation names the program that makes the containers.
func isolation(host Host, h *container.HostConfig) string {
	if runtime := runtimeOf(host, h); runtime != "" {
		return fmt.Sprintf("container (%s)", runtime)
	}
	return "container"
}

// runtimeOf is the name of the program that makes a container; "" is one that is not known.
func runtimeOf(host Host, h *container.HostConfig) string { return cmp.Or(h.Runtime, host.Runtime) }

// agentControl reports whether code, which is of the agent's user, is kept from ending it and
// from looking into it. Linux does so with the first process of a pid namespace, and gVisor's
// kernel does not.
func agentControl(runtime string) backend.Control {
	if strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor") {
		return backend.Control{Name: "agent",
			Why: "the kernel of runtime " + runtime + " does not protect the first process of a container from code of its user, which can end the agent: its run is then lost, and so is the sandbox",
			Fix: "give code that must not end what else runs in its sandbox one of its own"}
	}
	return backend.Control{Name: "agent", Enforced: true, By: "pid 1, non-dumpable", Detail: "code can neither end it nor look into it"}
}

// loosen takes back what the caller's settings have loosened. What they loosen beside
// the controls of every backend is added.
func (b *Backend) loosen(all []backend.Control) []backend.Control {
	for _, l := range b.options.Settings.Loosened() {
		name := l.Control
		loose := backend.Control{Name: name, Why: "the caller loosened it: " + l.What}
		found := false
		for i := range all {
			// Without isolation nothing of it holds.
			if all[i].Name != name && name != "isolation" {
				continue
			}
			if all[i].Enforced {
				all[i] = backend.Control{Name: all[i].Name, Why: loose.Why}
			} else {
				all[i].Why += "; " + loose.Why
			}
			found = true
		}
		if !found {
			all = append(all, loose)
		}
	}
	return all
}

// foreignControls returns the controls of a container that another program made.
func (b *Backend) foreignControls(host Host, c container.InspectResponse) backend.Capabilities {
	h := cmp.Or(c.HostConfig, &container.HostConfig{})
	control := func(name, by string, enforced bool, why string) backend.Control {
		if enforced {
			return backend.Control{Name: name, Enforced: true, By: by}
		}
		return backend.Control{Name: name, Why: why + "; the container was made by another program", Fix: "make it with this limit, or let a sandbox make its own container"}
	}
	name := b.Name()
	all := []backend.Control{
		control("user", name, c.Config != nil && !agenthost.RootUser(c.Config.User), "it runs as root"),
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
