// Package podman runs sandboxes as containers of Podman, of root or of an ordinary user,
// on this machine or another one. It speaks to Podman's service by the Docker API that
// it offers; docs/podman.md describes what differs.
package podman

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/engine/diagnose"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
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
	fix := limitsFix(os.DevNull) // of a machine whose limits are not known
	if runtime.GOOS == "linux" && strings.HasPrefix(c.DaemonHost(), "unix://") {
		fix = limitsFix("/proc")
	}
	return engine.New(c, engine.Flavor{Name: Name, Host: host, Adjust: adjust, Auth: docker.RegistryAuth, LimitsFix: fix, VolumeOptions: volumeOptions}, &o.Options)
}

// volumeOptions make a volume belong to the user that most code is. Else the first container that has it would have Podman give it
// the owner and mode of the directory that its image has in that place.
var volumeOptions = map[string]string{"o": "uid=1000,gid=1000"}

// host asks Podman what it holds containers to.
func host(ctx context.Context, c *client.Client) (engine.Host, error) {
	i, err := knownInfo(ctx, c)
	if err != nil {
		return engine.Host{}, err
	}
	return engine.Host{
		Limits: limits(i), Runtime: i.DefaultRuntime, Seccomp: slices.ContainsFunc(i.SecurityOptions, isSeccomp),
		UserNamespace: rootless(i),
		// Of a container without a cgroup of its own Podman reports the machine's usage.
		NoStats: !i.MemoryLimit,
		Devices: devices(i.ServerVersion),
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
	if len(h.MaskedPaths) > 0 { // a list that it does not look at
		h.SecurityOpt = append(h.SecurityOpt, "mask="+strings.Join(h.MaskedPaths, ":"))
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

// mounted reports whether the caller has put something at that path.
func mounted(h *container.HostConfig, path string) bool {
	return slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool { return m.Target == path }) ||
		slices.ContainsFunc(h.Binds, func(b string) bool {
			fields := strings.Split(b, ":")
			return len(fields) > 1 && fields[1] == path
		})
}

func rootless(i system.Info) bool { return slices.Contains(i.SecurityOptions, "name=rootless") }

func isSeccomp(option string) bool { return strings.HasPrefix(option, "name=seccomp") }

// hints are what errors advise a Podman user to do.
var hints = hintsFor(runtime.GOOS, os.Geteuid() == 0)

func hintsFor(goos string, root bool) dial.Hints {
	h := dial.Hints{
		Engine: "Podman",
		Start:  "start its machine (podman machine start), or name another service with CONTAINER_HOST or CONTAINER_CONNECTION",
		Access: "run as the user whose Podman it is",
		TLS:    "Podman's service speaks no TLS: use ssh://, or put a proxy that does in front of it",
	}
	if goos != "linux" {
		return h
	}
	h.Access = "run as the user whose Podman it is, or use this user's own: unset CONTAINER_HOST and systemctl --user start podman.socket"
	h.Start = "start its service (systemctl --user start podman.socket; without systemd: podman system service --time=0 &), or name another with CONTAINER_HOST"
	if root {
		h.Start = "start its service (systemctl start podman.socket; without systemd: podman system service --time=0 &), or name another with CONTAINER_HOST"
	}
	return h
}

// Diagnose looks, in this order, at the configuration, the connection to the service
// that o names, what this user's own Podman needs of the machine, and what the service
// can. A check that later ones need ends the list when it fails.
func Diagnose(ctx context.Context, opts *ClientOptions) []backend.Finding {
	f, err := cmp.Or(opts, &ClientOptions{}).find()
	e := diagnose.Engine{Endpoint: f.endpoint, Source: f.source, Info: askInfo}
	if err == nil {
		e.Client, err = f.client()
	}
	if f.source == ownService {
		e.Machine = userSetup
	}
	return diagnose.Run(ctx, e, err)
}
