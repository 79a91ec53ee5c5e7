package podman

import (
	"cmp"
	"context"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/engine"
)

// Name is the backend's name.
const Name = "podman"

// Options say which Podman is used and how its sandboxes are made. The zero value uses
// this user's own service, or the one that Podman's configuration names, with safe
// defaults.
type Options struct {
	engine.Options
	// Connection says how to reach Podman.
	Connection ClientOptions
	// Client is used in place of Connection, and stays the caller's to close.
	Client *client.Client
}

// New returns a backend; nil options are the defaults. It reads Podman's configuration, and asks nothing of its
// service yet. It fails for a configuration that makes no sense and for options that
// exclude each other.
func New(opts *Options) (*engine.Backend, error) {
	o := *cmp.Or(opts, &Options{})
	c := o.Client
	if c == nil {
		var err error
		if c, err = NewClient(&o.Connection); err != nil {
			return nil, err
		}
	}
	return engine.New(c, engine.Flavor{Name: Name, Host: host, Adjust: adjust, Auth: docker.RegistryAuth}, &o.Options)
}

// host asks Podman what it holds containers to.
func host(ctx context.Context, c *client.Client) (engine.Host, error) {
	i, err := askInfo(ctx, c)
	if err != nil {
		return engine.Host{}, err
	}
	return engine.Host{
		Limits: limits(i), Runtime: i.DefaultRuntime, Seccomp: slices.ContainsFunc(i.SecurityOptions, isSeccomp),
		UserNamespace: rootless(i),
		// Of a container without a cgroup of its own Podman reports the machine's usage.
		NoStats: !i.MemoryLimit,
	}, nil
}

// limits returns which limits Podman holds containers to.
func limits(i system.Info) []backend.Control {
	control := func(name string, holds bool) backend.Control {
		if holds {
			return backend.Control{Name: name, Enforced: true, By: "cgroup v" + i.CgroupVersion}
		}
		why, fix := whyNot(i)
		return backend.Control{Name: name, Why: why, Fix: fix}
	}
	memory := control("memory", i.MemoryLimit)
	if memory.Enforced && !i.SwapLimit {
		memory.Why = "swap may not be counted: cgroup v1 counts it only when the kernel was started with swapaccount=1"
	}
	return []backend.Control{memory, control("cpus", i.CPUCfsQuota), control("pids", i.PidsLimit)}
}

// whyNot returns why a limit does not hold, and what to do about it.
func whyNot(i system.Info) (why, fix string) {
	switch {
	case !rootless(i):
		return "the kernel has no cgroup controller for it (cgroup v" + i.CgroupVersion + ")", "enable the controller in the kernel"
	case i.CgroupVersion != "2":
		return "Podman runs as an ordinary user, and cgroup v" + i.CgroupVersion + " cannot be given to one",
			"start the kernel with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or use Podman as root"
	case i.CgroupDriver != "systemd":
		return "Podman runs as an ordinary user without systemd (cgroup manager " + i.CgroupDriver + ")",
			"run Podman's service in a session of systemd's, with cgroup_manager = \"systemd\" in containers.conf; loginctl enable-linger USER keeps one"
	}
	return "systemd has not given the cgroup controller for it to Podman's user",
		"Delegate=cpu cpuset memory pids in user@.service.d/delegate.conf, then log in again"
}

// writableByDefault are directories that Podman makes writable when the root is read-only,
// each a file system in memory without a bound.
var writableByDefault = []string{"/run", "/var/tmp"}

// adjust asks Podman for what Docker does by default.
func adjust(_ *container.Config, h *container.HostConfig) {
	if h.Tmpfs == nil {
		h.Tmpfs = map[string]string{}
	}
	for path, options := range h.Tmpfs {
		// Otherwise what the image has there is copied, and counts as memory.
		h.Tmpfs[path] = options + ",notmpcopyup"
	}
	if !h.ReadonlyRootfs {
		return
	}
	for _, path := range writableByDefault {
		if _, asked := h.Tmpfs[path]; !asked && !mounted(h, path) {
			h.Tmpfs[path] = "ro,noexec,nosuid,nodev,size=64k,mode=755"
		}
	}
}
