package settings

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

// applyFiles mounts what was asked for. A tmpfs of the defaults gives way to a mount at
// the same place; the other mounts of the defaults, such as the agent's own, do not.
func (s *Settings) applyFiles(host *container.HostConfig) error {
	for _, p := range s.targets() {
		if kept := reserved(host, p.path); kept != "" {
			return fault(p.key, "target %s: the sandbox keeps %s for itself: choose another target", p.path, kept)
		}
	}
	tmpfs := maps.Clone(host.Tmpfs)
	if tmpfs == nil {
		tmpfs = map[string]string{}
	}
	mounts, binds := slices.Clone(host.Mounts), slices.Clone(host.Binds)
	for _, v := range s.Volumes {
		delete(tmpfs, path.Clean(v.Target))
		if v.Source == "" {
			mounts = append(mounts, mount.Mount{Type: mount.TypeVolume, Target: v.Target})
			continue
		}
		from, err := absoluteSource(v.Source)
		if err != nil {
			return fault("volumes", "%v", err)
		}
		bind := from + ":" + v.Target
		if v.Mode != "" {
			bind += ":" + v.Mode
		}
		binds = append(binds, bind)
	}
	for _, m := range s.Mounts {
		delete(tmpfs, path.Clean(m.Target))
		if m.Type == mount.TypeBind {
			var err error
			if m.Source, err = absoluteSource(m.Source); err != nil {
				return fault("mounts", "%v", err)
			}
		}
		mounts = append(mounts, m)
	}
	for target, options := range s.Tmpfs {
		target = path.Clean(target)
		tmpfs[target] = overlaid(tmpfs[target], options)
	}
	host.Tmpfs, host.Mounts, host.Binds = tmpfs, mounts, binds
	host.VolumesFrom = append(slices.Clip(host.VolumesFrom), s.VolumesFrom...)
	setText(&host.VolumeDriver, s.VolumeDriver)
	host.StorageOpt = merged(host.StorageOpt, s.StorageOpt)
	return nil
}

// A place is a path inside and the key that puts something there.
type place struct{ key, path string }

// targets returns every place that is mounted upon.
func (s *Settings) targets() []place {
	var all []place
	for _, v := range s.Volumes {
		all = append(all, place{"volumes", path.Clean(v.Target)})
	}
	for _, m := range s.Mounts {
		all = append(all, place{"mounts", path.Clean(m.Target)})
	}
	for _, target := range slices.Sorted(maps.Keys(s.Tmpfs)) {
		all = append(all, place{"tmpfs", path.Clean(target)})
	}
	return all
}

// reserved returns the place of a mount of the defaults that p would hide or change.
func reserved(host *container.HostConfig, p string) string {
	kept := make([]string, 0, len(host.Mounts)+len(host.Binds))
	for _, m := range host.Mounts {
		kept = append(kept, m.Target)
	}
	for _, b := range host.Binds {
		if parts := strings.Split(b, ":"); len(parts) > 1 {
			kept = append(kept, parts[1])
		}
	}
	for _, k := range kept {
		if within := inside(p, k) || inside(k, p); within {
			return k
		}
	}
	return ""
}

// inside tells whether p is folder or below it.
func inside(p, folder string) bool {
	p, folder = path.Clean(p), path.Clean(folder)
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}
