package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/mount"
)

const useMount = "type=bind|volume|tmpfs|image,source=...,target=...,readonly, or an object with Type, Source, Target and ReadOnly"

func toMount(v any) (mount.Mount, error) {
	if _, ok := v.(map[string]any); ok {
		m, err := toObject[mount.Mount](v, useMount)
		if m.Type == "" {
			m.Type = mount.TypeVolume // as docker-py
		}
		return m, err
	}
	text, err := toText(v)
	if err != nil {
		return mount.Mount{}, errors.New("use " + useMount)
	}
	m := mount.Mount{Type: mount.TypeVolume}
	for field := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(field, "=")
		if err := mountField(&m, name, value, found); err != nil {
			return mount.Mount{}, err
		}
	}
	return m, nil
}

// mountField sets one NAME=VALUE of a mount, or one NAME when given is false.
func mountField(m *mount.Mount, name, value string, given bool) error {
	flag, flagErr := true, error(nil)
	if given {
		flag, flagErr = toBool(value)
	}
	switch name {
	case "type":
		m.Type = mount.Type(value)
	case "source", "src":
		m.Source = value
	case "target", "dst", "destination":
		m.Target = value
	case "readonly", "ro":
		m.ReadOnly = flag
		return flagErr
	case "bind-propagation":
		m.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(value)}
	case "volume-nocopy":
		volumeOptions(m).NoCopy = flag
		return flagErr
	case "volume-subpath":
		volumeOptions(m).Subpath = value
	case "tmpfs-size":
		size, err := toSize(value)
		tmpfsOptions(m).SizeBytes = size
		return err
	case "tmpfs-mode":
		mode, err := strconv.ParseUint(value, 8, 12)
		if err != nil {
			return errors.New("tmpfs-mode: use an octal mode, such as 1777")
		}
		tmpfsOptions(m).Mode = fs.FileMode(mode)
	default:
		return fmt.Errorf("field %q: use %s; for more, an object", shorten(name), useMount)
	}
	return nil
}

func volumeOptions(m *mount.Mount) *mount.VolumeOptions {
	if m.VolumeOptions == nil {
		m.VolumeOptions = &mount.VolumeOptions{}
	}
	return m.VolumeOptions
}

func tmpfsOptions(m *mount.Mount) *mount.TmpfsOptions {
	if m.TmpfsOptions == nil {
		m.TmpfsOptions = &mount.TmpfsOptions{}
	}
	return m.TmpfsOptions
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
		if m.Source == "" || !hostPath(m.Source) {
			return errors.New("a bind mount's source is a path of the host")
		}
		return source(m.Source)
	case mount.TypeVolume:
		if m.Source != "" && !volumeName().MatchString(m.Source) {
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
