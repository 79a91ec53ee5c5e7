package podman

import (
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/system"
)

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
