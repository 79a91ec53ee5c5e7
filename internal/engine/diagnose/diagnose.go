// Package diagnose looks at a container engine and says what of it is fit for
// sandboxes, what is not, and what to do about it.
package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// MinAPIVersion is the oldest version of the engine's API that sandboxes work with.
const MinAPIVersion = "1.41"

// An Engine is what is looked at.
type Engine struct {
	Endpoint dial.Endpoint
	Source   string         // what named it
	Client   *client.Client // of the endpoint
	// Machine looks at what else the engine needs of this machine; nil means nothing.
	Machine func() []backend.Finding
	// Info asks the engine what it can; nil means by the API's own call.
	Info func(context.Context, *client.Client) (system.Info, error)
}

// Run looks, in this order, at the configuration that led to e or failed with err, the
// connection to the engine, and what the engine can. A check that later ones need ends the
// list when it fails. It closes the client.
func Run(ctx context.Context, e Engine, err error) []backend.Finding {
	if err != nil {
		return []backend.Finding{{Check: "configuration", Level: backend.LevelFailure, Detail: err.Error(),
			Fix: "correct what the message names: the option, the variable or the file"}}
	}
	all := []backend.Finding{{Check: "configuration", Level: backend.LevelOK, Detail: fmt.Sprintf("%s (%s)", e.Endpoint.Host, e.Source)}}
	if e.Machine != nil {
		all = append(all, e.Machine()...)
	}
	all = append(all, connection(ctx, e.Endpoint)...)
	if all[len(all)-1].Level != backend.LevelFailure {
		all = append(all, engine(ctx, e.Client, e.Info)...)
	}
	if err := e.Client.Close(); err != nil {
		all = append(all, backend.Finding{Check: "client", Level: backend.LevelWarning, Detail: "closing it: " + err.Error(), Fix: "try again"})
	}
	return all
}

// connection checks that the engine can be connected to: for a local socket that it
// exists, and that the caller may open it; for another host that it can be reached. A
// check that failed is the last finding.
func connection(ctx context.Context, e dial.Endpoint) []backend.Finding {
	check := "connection"
	local := strings.HasPrefix(e.Host, "unix:") || strings.HasPrefix(e.Host, "npipe:")
	if local {
		check = "socket"
	}
	passed := backend.Finding{Check: check, Level: backend.LevelOK, Detail: e.Host}
	err := e.Connect(ctx)
	var known *dial.Error
	switch {
	case err == nil && local:
		return []backend.Finding{passed, {Check: "permission", Level: backend.LevelOK, Detail: "the caller may open the socket"}}
	case err == nil:
		return []backend.Finding{passed}
	case errors.As(err, &known) && known.Kind == dial.Permission:
		return []backend.Finding{passed, failed("permission", err)}
	}
	return []backend.Finding{failed(check, err)}
}

// failed is a check that failed with err.
func failed(check string, err error) backend.Finding {
	if e, ok := errors.AsType[*dial.Error](err); ok {
		return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: fmt.Sprintf("%s: %s", e.Host, e.Why), Fix: e.Fix}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: "there was no answer in the time there was", Fix: "see whether the engine hangs, and restart it; one on another machine may be slow to reach"}
	}
	return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: err.Error(), Fix: "see the engine's own log"}
}

// engine checks, over a client, that the engine answers and what it can. When it does
// not answer, or is not one that sandboxes work on, that is the last finding. ask is how
// the engine is asked what it can; nil means by the API's own call.
func engine(ctx context.Context, c *client.Client, ask func(context.Context, *client.Client) (system.Info, error)) []backend.Finding {
	if ask == nil {
		ask = askInfo
	}
	ping, err := c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		return []backend.Finding{failed("answer", err)}
	}
	info, err := ask(ctx, c)
	if err != nil {
		return []backend.Finding{failed("answer", err)}
	}
	all := []backend.Finding{
		{Check: "answer", Level: backend.LevelOK, Detail: "version " + info.ServerVersion},
		apiVersion(ping.APIVersion, c.ClientVersion()),
		platform(info),
	}
	for _, f := range all {
		if f.Level == backend.LevelFailure {
			return all
		}
	}
	return append(all, cgroup(info), limits(info), storage(info), rootless(info), seccomp(info), confinement(info), runtimes(info))
}

func askInfo(ctx context.Context, c *client.Client) (system.Info, error) {
	res, err := c.Info(ctx, client.InfoOptions{})
	return res.Info, err
}

// apiVersion looks at the version the engine offers and the one in use.
func apiVersion(offered, used string) backend.Finding {
	f := backend.Finding{Check: "API version", Level: backend.LevelOK, Detail: used}
	switch {
	case offered != "" && versions.LessThan(offered, MinAPIVersion):
		f.Level, f.Detail = backend.LevelFailure, fmt.Sprintf("the engine offers %s, sandboxes need %s", offered, MinAPIVersion)
		f.Fix = "install a newer engine: Docker 20.10, Podman 4, or later"
	case versions.LessThan(used, MinAPIVersion):
		f.Level, f.Detail = backend.LevelFailure, fmt.Sprintf("%s is set to be used, sandboxes need %s", used, MinAPIVersion)
		f.Fix = "take back the setting of the API's version (DOCKER_API_VERSION)"
	}
	return f
}

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
	version := cmp.Or(i.CgroupVersion, "1") // what engines without the field have
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
