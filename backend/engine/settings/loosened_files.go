package settings

import (
	"path"

	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

func (s *Settings) loosenedFiles(l *loosenings) {
	for _, v := range s.Volumes {
		from := mount.TypeVolume
		if hostPath(v.Source) {
			from = mount.TypeBind
		}
		l.addMount("volumes", from, v.Source, v.Target, v.readOnly())
	}
	for _, m := range s.Mounts {
		if m.Type == mount.TypeTmpfs {
			size := int64(0)
			if m.TmpfsOptions != nil {
				size = m.TmpfsOptions.SizeBytes
			}
			l.addTmpfs("mounts", m.Target, size)
			continue
		}
		if dir := driverPath(m); dir != "" {
			m.Type, m.Source = mount.TypeBind, dir
		}
		l.addMount("mounts", m.Type, m.Source, m.Target, m.ReadOnly)
	}
	for _, p := range s.targets() {
		if p.key == "tmpfs" {
			l.tmpfs(p.path, s.Tmpfs)
		}
	}
	for _, from := range s.VolumesFrom {
		l.add("filesystem", "volumes_from: the volumes of container %s", from)
	}
}

// driverPath is what of the host a volume's driver mounts, as that of local volumes does
// when it is given a device: the volume is then as much as a bind mount of it.
func driverPath(m mount.Mount) string {
	if o := m.VolumeOptions; m.Type == mount.TypeVolume && o != nil && o.DriverConfig != nil && path.IsAbs(o.DriverConfig.Options["device"]) {
		return o.DriverConfig.Options["device"]
	}
	return ""
}

func (l *loosenings) tmpfs(target string, all map[string]string) {
	for t, options := range all {
		if path.Clean(t) == target {
			size, _ := bytesize.Parse(tmpfsOption(options, "size"))
			l.addTmpfs("tmpfs", target, size)
		}
	}
}

func (l *loosenings) addTmpfs(key, target string, size int64) {
	if size == 0 {
		l.add("disk", "%s: the size of %s is limited as before, or by the memory limit", key, target)
		return
	}
	l.add("disk", "%s: %s holds up to %s besides", key, target, bytesize.Format(size))
}

func (l *loosenings) addMount(key string, from mount.Type, source, target string, readOnly bool) {
	what := "volume " + source
	switch {
	case from == mount.TypeImage:
		what = "image " + source
	case from == mount.TypeBind:
		what = "the host's " + source
	case source == "":
		what = "a volume of its own"
	}
	access := "writable"
	if readOnly {
		access = "read-only"
	}
	if from == mount.TypeBind && escapes(source, readOnly) {
		l.add("isolation", "%s: %s at %s: whoever has it is as good as root on the engine's host", key, what, target)
	}
	if source != "" {
		l.add("filesystem", "%s: %s at %s, %s", key, what, target, access)
	}
	if !readOnly {
		l.add("disk", "%s: what is written to %s is not limited", key, target)
	}
}
