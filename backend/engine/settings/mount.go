package settings

import (
	"errors"
	"fmt"
	"slices"

	"github.com/docker/cli/opts"
	"github.com/moby/moby/api/types/mount"
)

const useMount = "type=bind|volume|tmpfs|image,source=...,target=..., with readonly[=true or false], bind-propagation, volume-subpath, tmpfs-size, an octal tmpfs-mode and the like, or an object with Type, Source, Target and ReadOnly"

// toMount decodes an object, or text as the docker command's --mount takes it.
func toMount(v any) (mount.Mount, error) {
	text, err := toText(v)
	if err != nil {
		m, err := toObject[mount.Mount](v, useMount)
		if m.Type == "" {
			m.Type = mount.TypeVolume // as docker-py
		}
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
