package engine

import (
	"slices"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// findMounts resolves and checks the caller's mounts. The engine opens the paths again, so a user who
// can rename files in their parent directories can still replace them.
func (b *Backend) findMounts(spec backend.Spec) ([]backend.Mount, error) {
	if len(spec.Mounts) == 0 {
		return nil, nil
	}
	why := ""
	switch {
	case !strings.HasPrefix(b.client.DaemonHost(), "unix://"):
		why = b.flavor.Name + " may run on another machine, as it is not reached by a unix socket"
	case b.options.Micromamba != nil:
		why = "the micromamba backend has no mounts"
	case slices.ContainsFunc(spec.Mounts, func(m backend.Mount) bool { return m.Mode == backend.MountCopyOnWrite }):
		why = "mode cow needs the local backend; this one has only ro"
	}
	if why != "" {
		return nil, hostmount.Unsupported(spec.Mounts, why)
	}
	if err := hostmount.Check(spec.Mounts, spec.Layers); err != nil {
		return nil, err
	}
	opened, err := hostmount.Open(spec.Mounts)
	hostmount.Close(opened)
	return hostmount.Mounts(opened), err
}

// readOnlyBind shows a directory or file of the host, without what is mounted below it.
func readOnlyBind(m backend.Mount) mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: true,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationPrivate, NonRecursive: true}}
}
