package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

const (
	useVolume = "SOURCE:TARGET[:MODE], such as /srv/data:/data:ro, or a map of SOURCE to {bind: TARGET, mode: MODE}"
	useMount  = "type=bind|volume|tmpfs|image,source=...,target=..., with readonly[=true or false], bind-propagation, volume-subpath, tmpfs-size, an octal tmpfs-mode and the like, or an object with Type, Source, Target and ReadOnly"

	drivePath  = `[A-Za-z]:[\\/](.|\n)*`
	volumeName = `[a-zA-Z0-9][a-zA-Z0-9_.-]*`
)

// volumeModes are the modes of volumes that engines know.
var volumeModes = strings.Fields("ro rw z Z U nocopy copy cached delegated consistent private rprivate shared rshared slave rslave noexec exec nodev dev nosuid suid")

// toVolumes decodes SOURCE:TARGET[:MODE], a target alone, or docker-py's map.
func toVolumes(v any) ([]Volume, error) {
	m, ok := v.(map[string]any)
	if !ok {
		text, err := toText(v)
		if err != nil {
			return nil, errors.New("use " + useVolume)
		}
		volume, err := parseVolume(text)
		return []Volume{volume}, err
	}
	var volumes []Volume
	for _, source := range slices.Sorted(maps.Keys(m)) {
		volume, err := volumeEntry(source, m[source])
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", shorten(source), err)
		}
		volumes = append(volumes, volume)
	}
	return volumes, nil
}

// cutDrive cuts the drive of a Windows path.
func cutDrive(text string) (drive, rest string) {
	if matches(drivePath, text) {
		return text[:2], text[2:]
	}
	return "", text
}

func parseVolume(text string) (Volume, error) {
	drive, text := cutDrive(text)
	switch parts := strings.Split(text, ":"); {
	case len(parts) == 1 && drive == "":
		return Volume{Target: parts[0]}, nil
	case len(parts) == 2:
		return Volume{Source: drive + parts[0], Target: parts[1]}, nil
	case len(parts) == 3:
		return Volume{Source: drive + parts[0], Target: parts[1], Mode: parts[2]}, nil
	}
	return Volume{}, errors.New("use " + useVolume)
}

func volumeEntry(source string, v any) (Volume, error) {
	if target, err := toText(v); err == nil {
		return Volume{Source: source, Target: target}, nil
	}
	o, err := toObject[struct {
		Bind, Mode string
		RO         *bool
	}](v, useVolume)
	if err == nil && o.RO != nil && o.Mode != "" {
		err = errors.New("give either mode or ro")
	}
	switch {
	case is(o.RO, true):
		o.Mode = "ro"
	case is(o.RO, false):
		o.Mode = "rw"
	}
	return Volume{Source: source, Target: o.Bind, Mode: o.Mode}, err
}

func validVolume(v Volume) error {
	if err := target(v.Target); err != nil {
		return err
	}
	if strings.Contains(v.Target, ":") {
		return errors.New("a target with a colon needs the mounts key")
	}
	for _, m := range strings.Split(v.Mode, ",") {
		if v.Mode != "" && !slices.Contains(volumeModes, m) {
			return fmt.Errorf("mode %q: use ro or rw, and of %s", shorten(m), strings.Join(volumeModes[2:], ", "))
		}
	}
	switch _, rest := cutDrive(v.Source); {
	case v.Source == "" && v.Mode != "":
		return errors.New("a mode needs a source")
	case v.Source == "":
		return nil
	case strings.Contains(rest, ":"):
		return errors.New("a source with a colon needs the mounts key")
	}
	return source(v.Source)
}

// mount is the volume as the longer form has it, without what else its mode says.
func (v Volume) mount() mount.Mount {
	m := mount.Mount{Type: mount.TypeVolume, Source: v.Source, Target: v.Target, ReadOnly: slices.Contains(strings.Split(v.Mode, ","), "ro")}
	if hostPath(v.Source) {
		m.Type = mount.TypeBind
	}
	return m
}

// toMount decodes an object, or text as the docker command's --mount takes it.
func toMount(v any) (mount.Mount, error) {
	text, err := toText(v)
	if err != nil {
		m, err := toObject[mount.Mount](v, useMount)
		m.Type = cmp.Or(m.Type, mount.TypeVolume) // as docker-py
		return m, err
	}
	var parsed opts.MountOpt
	if err := parsed.Set(text); err != nil {
		return mount.Mount{}, fmt.Errorf("%w: use %s", err, useMount)
	}
	return parsed.Value()[0], nil
}

func validMount(m mount.Mount) error {
	if err := target(m.Target); err != nil {
		return err
	}
	if m.BindOptions != nil && m.BindOptions.Propagation != "" && !slices.Contains(mount.Propagations, m.BindOptions.Propagation) {
		return errors.New("propagation: use private, rprivate, slave, rslave, shared or rshared")
	}
	switch m.Type {
	case mount.TypeBind:
		if !hostPath(m.Source) {
			return errors.New("a bind mount's source is a path of the host")
		}
		return source(m.Source)
	case mount.TypeVolume:
		if m.Source != "" && !matches(volumeName, m.Source) {
			return errors.New("a volume's source is its name; for a path of the host use type bind")
		}
	case mount.TypeImage:
		if m.Source == "" {
			return errors.New("an image mount's source is the image")
		}
	case mount.TypeTmpfs:
		if m.Source != "" {
			return errors.New("a tmpfs has no source")
		}
	default:
		return fmt.Errorf("type %q: use bind, volume, tmpfs or image", shorten(string(m.Type)))
	}
	return nil
}

// hostPath reports whether a source is a path of the host and not a volume's name.
func hostPath(source string) bool {
	return strings.ContainsAny(source, `/\`) || strings.HasPrefix(source, ".")
}

// source allows a host path or a volume's name.
func source(s string) error {
	switch {
	case noControls(s) != nil:
		return errors.New("control characters are not allowed")
	case strings.HasPrefix(s, "~"):
		return errors.New("~ is not expanded: write the home folder out")
	case !hostPath(s) && !matches(volumeName, s):
		return errors.New("a source is a path, absolute or with a slash as in ./data, or a volume's name of letters, digits, _, . and -")
	}
	return nil
}

// absoluteSource makes a relative host path absolute; a volume's name it leaves alone.
func absoluteSource(key, s string) (string, error) {
	if !hostPath(s) || path.IsAbs(s) || matches(drivePath, s) {
		return s, nil
	}
	abs, err := filepath.Abs(s)
	if err != nil {
		return "", fault(key, "source %q: no working folder to take it from: %v: use an absolute path", shorten(s), err)
	}
	return abs, nil
}

// target allows what can be mounted upon.
func target(p string) error {
	if absolute(p) != nil {
		return errors.New("use an absolute path as the target inside")
	}
	if path.Clean(p) == "/" {
		return errors.New("the root cannot be mounted upon: the sandbox's image is there")
	}
	return nil
}

func validTmpfs(name, options string) error {
	if err := target(name); err != nil || options == "" {
		return err
	}
	for option := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(option, "=")
		if word(key) != nil || noControls(option) != nil {
			return errors.New("options: use NAME or NAME=VALUE with commas between, such as size=64m,mode=1777")
		}
		if _, err := bytesize.Parse(value); key == "size" && err != nil && !strings.HasSuffix(value, "%") {
			return errors.New("option size: use bytes or a number with k, m or g behind it, such as size=64m")
		}
	}
	return nil
}

// opposite are mount options that replace each other.
var opposite = map[string]string{
	"exec": "noexec", "suid": "nosuid", "dev": "nodev", "rw": "ro", "noexec": "exec", "nosuid": "suid", "nodev": "dev", "ro": "rw",
}

// overlaid returns the options base with those of add laid over them.
func overlaid(base, add string) string {
	if base == "" || add == "" {
		return base + add
	}
	named := map[string]bool{}
	for option := range strings.SplitSeq(add, ",") {
		key, _, _ := strings.Cut(option, "=")
		named[key], named[opposite[key]] = true, true
	}
	kept := slices.DeleteFunc(strings.Split(base, ","), func(option string) bool {
		key, _, _ := strings.Cut(option, "=")
		return named[key]
	})
	return strings.Join(append(kept, add), ",")
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

func (s *Settings) filesConflict() error {
	taken := map[string]string{}
	for _, p := range s.targets() {
		if other, twice := taken[p.path]; twice {
			return fault(p.key, "target %s is mounted upon twice, by %s too: choose another target", p.path, other)
		}
		taken[p.path] = p.key
	}
	if s.VolumeDriver != "" && !slices.ContainsFunc(s.Volumes, func(v Volume) bool { return v.Source != "" && !hostPath(v.Source) }) {
		return fault("volume_driver", "there is no named volume in volumes that it could be for")
	}
	return nil
}

// applyFiles mounts what was asked for. A tmpfs of the defaults gives way to a mount at
// the same place; the other mounts of the defaults, such as the agent's own, do not.
func (s *Settings) applyFiles(host *container.HostConfig) error {
	for _, p := range s.targets() {
		if kept := reserved(host, p.path); kept != "" {
			return fault(p.key, "target %s: the sandbox keeps %s for itself: choose another target", p.path, kept)
		}
	}
	tmpfs := map[string]string{}
	maps.Copy(tmpfs, host.Tmpfs)
	mounts, binds := slices.Clone(host.Mounts), slices.Clone(host.Binds)
	for _, v := range s.Volumes {
		delete(tmpfs, path.Clean(v.Target))
		if v.Source == "" {
			mounts = append(mounts, v.mount())
			continue
		}
		bind, err := absoluteSource("volumes", v.Source)
		if err != nil {
			return err
		}
		if bind += ":" + v.Target; v.Mode != "" {
			bind += ":" + v.Mode
		}
		binds = append(binds, bind)
	}
	for _, m := range s.Mounts {
		delete(tmpfs, path.Clean(m.Target))
		if m.Type == mount.TypeBind {
			var err error
			if m.Source, err = absoluteSource("mounts", m.Source); err != nil {
				return err
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
	host.VolumeDriver = cmp.Or(s.VolumeDriver, host.VolumeDriver)
	host.StorageOpt = merged(host.StorageOpt, s.StorageOpt)
	return nil
}

// reserved returns the place of a mount of the defaults that p would hide or change.
func reserved(host *container.HostConfig, p string) string {
	var kept []string
	for _, m := range host.Mounts {
		kept = append(kept, m.Target)
	}
	for _, b := range host.Binds {
		if parts := strings.Split(b, ":"); len(parts) > 1 {
			kept = append(kept, parts[1])
		}
	}
	if i := slices.IndexFunc(kept, func(k string) bool { return inside(p, k) || inside(k, p) }); i >= 0 {
		return kept[i]
	}
	return ""
}

// inside reports whether p is dir or below it.
func inside(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
