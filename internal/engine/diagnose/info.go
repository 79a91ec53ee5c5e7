package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/llmsandbox/llmsandbox/backend"
)

// platform looks at what kind of containers the engine runs.
func platform(i system.Info) backend.Finding {
	f := backend.Finding{Check: "platform", Level: backend.LevelOK, Detail: fmt.Sprintf("%s, %s, Linux %s", i.OperatingSystem, i.Architecture, i.KernelVersion)}
	if i.OSType != "linux" {
		f.Level, f.Detail = backend.LevelFailure, fmt.Sprintf("the engine runs %s containers, sandboxes are Linux containers", i.OSType)
		f.Fix = "switch the engine to Linux containers"
	}
	return f
}

// cgroup looks at how the engine limits its containers.
func cgroup(i system.Info) backend.Finding {
	version := i.CgroupVersion
	if version == "" {
		version = "1" // what engines without the field have
	}
	f := backend.Finding{Check: "cgroup", Level: backend.LevelOK, Detail: fmt.Sprintf("v%s, driver %s", version, i.CgroupDriver)}
	switch {
	case i.CgroupDriver == "none" || i.CgroupDriver == "":
		f.Level, f.Detail = backend.LevelWarning, fmt.Sprintf("v%s, and the engine has no driver for it: no limit of a container is enforced", version)
		f.Fix = "rootless needs cgroup v2 and systemd with delegation (Delegate=cpu memory pids of user@.service)"
	case version == "1" && isRootless(i):
		f.Level, f.Detail = backend.LevelWarning, "v1, which an engine without root cannot use: no limit of a container is enforced"
		f.Fix = "start the kernel with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or use an engine that runs as root"
	}
	return f
}

// limits looks at which limits the engine says it cannot enforce.
func limits(i system.Info) backend.Finding {
	var missing []string
	for _, l := range []struct {
		name string
		has  bool
	}{{"memory", i.MemoryLimit}, {"CPU", i.CPUCfsQuota}, {"processes", i.PidsLimit}} {
		if !l.has {
			missing = append(missing, l.name)
		}
	}
	if len(missing) > 0 {
		return backend.Finding{Check: "limits", Level: backend.LevelWarning, Detail: "the engine cannot limit: " + strings.Join(missing, ", "),
			Fix: "enable these cgroup controllers in the kernel, or delegate them to the engine's user"}
	}
	if !i.SwapLimit {
		return backend.Finding{Check: "limits", Level: backend.LevelWarning, Detail: "memory, CPU, processes; swap is not limited",
			Fix: "start the kernel with swapaccount=1, or turn swap off"}
	}
	return backend.Finding{Check: "limits", Level: backend.LevelOK, Detail: "memory, swap, CPU, processes"}
}

// storage looks at the driver that images and containers are stored with.
func storage(i system.Info) backend.Finding {
	f := backend.Finding{Check: "storage", Level: backend.LevelOK, Detail: i.Driver}
	if i.Driver == "vfs" {
		f.Level, f.Detail = backend.LevelWarning, "vfs, which copies the whole image for each container"
		f.Fix = "put the engine's data on a file system that overlay2 (rootless: fuse-overlayfs) works on"
	}
	return f
}

// rootless reports whether the engine runs without root.
func rootless(i system.Info) backend.Finding {
	detail := "no: the engine runs as root"
	switch {
	case isRootless(i):
		detail = "yes: the engine runs as an ordinary user"
	case slices.ContainsFunc(i.SecurityOptions, named("userns")):
		detail = "no, but root inside is another user outside (userns-remap)"
	}
	return backend.Finding{Check: "rootless", Level: backend.LevelOK, Detail: detail}
}

// seccomp looks at the system call filter that containers get.
func seccomp(i system.Info) backend.Finding {
	at := slices.IndexFunc(i.SecurityOptions, named("seccomp"))
	if at < 0 {
		return backend.Finding{Check: "seccomp", Level: backend.LevelWarning, Detail: "the engine filters no system calls; only the agent's own filter is in force",
			Fix: "use a kernel and an engine with seccomp"}
	}
	profile := "default"
	for _, field := range strings.Split(i.SecurityOptions[at], ",") {
		if p, ok := strings.CutPrefix(field, "profile="); ok {
			profile = p
		}
	}
	if profile == "unconfined" {
		return backend.Finding{Check: "seccomp", Level: backend.LevelWarning, Detail: "the engine's default profile filters nothing (unconfined); only the agent's own filter is in force",
			Fix: "remove seccomp-profile from the engine's configuration"}
	}
	return backend.Finding{Check: "seccomp", Level: backend.LevelOK, Detail: "profile " + profile}
}

// confinement looks at AppArmor and SELinux, which a machine has one or none of.
func confinement(i system.Info) backend.Finding {
	var has []string
	for name, shown := range map[string]string{"apparmor": "AppArmor", "selinux": "SELinux"} {
		if slices.ContainsFunc(i.SecurityOptions, named(name)) {
			has = append(has, shown)
		}
	}
	if len(has) == 0 {
		return backend.Finding{Check: "confinement", Level: backend.LevelWarning, Detail: "neither AppArmor nor SELinux confines containers",
			Fix: "enable AppArmor or SELinux in the kernel and the engine, as a second wall"}
	}
	slices.Sort(has)
	return backend.Finding{Check: "confinement", Level: backend.LevelOK, Detail: strings.Join(has, ", ")}
}

// runtimes returns what containers can be run by.
func runtimes(i system.Info) backend.Finding {
	names := slices.Sorted(maps.Keys(i.Runtimes))
	return backend.Finding{Check: "runtimes", Level: backend.LevelOK, Detail: fmt.Sprintf("%s (default %s)", strings.Join(names, ", "), i.DefaultRuntime)}
}

func isRootless(i system.Info) bool {
	return slices.ContainsFunc(i.SecurityOptions, named("rootless"))
}

// named returns which security option, of the form name=NAME[,KEY=VALUE], is of that
// name. Engines before API 1.27 wrote the name alone.
func named(name string) func(string) bool {
	return func(option string) bool {
		first, _, _ := strings.Cut(option, ",")
		return first == name || first == "name="+name
	}
}
