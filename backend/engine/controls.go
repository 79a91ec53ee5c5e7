package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
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
		on("filesystem", "mount namespace", "the image read-only; "+workdir+" and "+tempDir+" private"),
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
	disk := on("disk", "tmpfs", workdir+" and "+tempDir+" each; what they hold counts as memory")
	if spec.Limits.Disk == 0 {
		disk = backend.Control{Name: "disk", Why: "no limit was asked for"}
	}
	all = append(all, disk)
	return backend.Capabilities{Backend: name, Isolation: isolation(host, h), Controls: b.loosen(all)}
}

// limitControl is the control of a limit; one that was not asked for is reported as absent.
func limitControl(l backend.Control, h *container.HostConfig, spec backend.Spec) backend.Control {
	asked := map[string]bool{
		"memory": h.Memory > 0 || spec.Limits.Memory > 0, "cpus": h.NanoCPUs > 0 || h.CPUQuota > 0 || spec.Limits.CPUs > 0,
		"pids": value(h.PidsLimit) > 0 || spec.Limits.PIDs > 0,
	}
	if !asked[l.Name] {
		return backend.Control{Name: l.Name, Why: "no limit was asked for"}
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
