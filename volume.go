package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Volume is a directory with a name that stays until it is removed; see [backend.Volume].
type Volume = backend.Volume

// A VolumeMount is where a sandbox has a volume; see [backend.VolumeMount].
type VolumeMount = backend.VolumeMount

// CreateVolume makes an empty volume of a backend (nil: the embedded local one) with the name, labels and size of v. It fails with ErrVolumeExists, with
// ErrInvalid for a name that no volume can have, with ErrNotEnforced for a size on a backend that cannot hold it to that, as the local one and engines
// cannot, and with ErrUnsupported where there are no volumes: with the isolation process, and in existing containers. On a cluster it is a claim: its size
// is accepted, and whether it holds is up to the storage driver.
func CreateVolume(ctx context.Context, b backend.Backend, v Volume) (Volume, error) {
	keeper, err := volumesOf(b)
	if err != nil {
		return Volume{}, err
	}
	return keeper.CreateVolume(ctx, v)
}

// ListVolumes returns the volumes of a backend (nil: the embedded local one), sorted by name.
func ListVolumes(ctx context.Context, b backend.Backend) ([]Volume, error) {
	keeper, err := volumesOf(b)
	if err != nil {
		return nil, err
	}
	return keeper.ListVolumes(ctx)
}

// RemoveVolume removes a volume of a backend (nil: the embedded local one) with all that is in it. It fails with ErrVolumeNotFound, and with ErrVolumeInUse
// while a sandbox has it, whose id the error names. With force it is removed nevertheless, and the sandbox lives on without the files; on an engine, what
// that writes to it from then on is removed when it is closed, or by [GC], and on a cluster it has the files until it ends.
func RemoveVolume(ctx context.Context, b backend.Backend, name string, force bool) error {
	keeper, err := volumesOf(b)
	if err != nil {
		return err
	}
	return keeper.RemoveVolume(ctx, name, force)
}

// CopyToVolume copies a file or directory of the host to a path in a volume, which "/" is the directory of, as [Sandbox.CopyIn] copies to one of a
// sandbox. It opens a sandbox for that, in which no code runs. It also fails with ErrVolumeNotFound.
func CopyToVolume(ctx context.Context, b backend.Backend, hostPath, name, path string) (CopyResult, error) {
	return inVolume(ctx, b, VolumeMount{Name: name}, path, func(sb *Sandbox, path string) (CopyResult, error) {
		return sb.CopyIn(ctx, hostPath, path)
	})
}

// CopyFromVolume copies a file or directory of a volume to the host as [Sandbox.CopyOut] copies one of a sandbox. A copy of "/" is called like the volume. It
// opens a sandbox for that, in which no code runs. It also fails with ErrVolumeNotFound.
func CopyFromVolume(ctx context.Context, b backend.Backend, name, path, hostPath string) (CopyResult, error) {
	return inVolume(ctx, b, VolumeMount{Name: name, ReadOnly: true}, path, func(sb *Sandbox, path string) (CopyResult, error) {
		return sb.CopyOut(ctx, path, hostPath)
	})
}

// TarToVolume unpacks a tar archive that it reads from r into a directory of a volume as [Sandbox.TarIn] does into one of a sandbox. It opens a sandbox for
// that, in which no code runs. It also fails with ErrVolumeNotFound.
func TarToVolume(ctx context.Context, b backend.Backend, r io.Reader, name, path string) (CopyResult, error) {
	return inVolume(ctx, b, VolumeMount{Name: name}, path, func(sb *Sandbox, path string) (CopyResult, error) {
		return sb.TarIn(ctx, r, path)
	})
}

// TarFromVolume writes a file or directory of a volume to w as a tar archive as [Sandbox.TarOut] does with one of a sandbox. It opens a sandbox for that, in
// which no code runs. It also fails with ErrVolumeNotFound.
func TarFromVolume(ctx context.Context, b backend.Backend, name, path, member string, w io.Writer) (CopyResult, error) {
	return inVolume(ctx, b, VolumeMount{Name: name, ReadOnly: true}, path, func(sb *Sandbox, path string) (CopyResult, error) {
		return sb.TarOut(ctx, path, member, w)
	})
}

// volumesDir is where a volume is in a sandbox that is opened for it.
const volumesDir = "/volumes/"

// inVolume calls do with a sandbox that has the volume, and the path in it of one in the volume.
func inVolume(ctx context.Context, b backend.Backend, v VolumeMount, path string, do func(sb *Sandbox, path string) (CopyResult, error)) (res CopyResult, err error) {
	if _, err := volumesOf(b); err != nil {
		return res, err
	}
	v.Target = volumesDir + v.Name
	sb, err := Open(ctx, &Options{Backend: b, Language: "bash", Volumes: []VolumeMount{v}, BestEffort: true})
	if err != nil {
		return res, err
	}
	if res, err = do(sb, v.Target+"/"+strings.TrimLeft(path, "/")); err != nil {
		err = fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return res, errors.Join(err, sb.Close())
}

// volumesOf is a backend (nil: the embedded local one) as one that has volumes.
func volumesOf(b backend.Backend) (backend.Volumes, error) {
	b, err := backendOrDefault(b)
	if err != nil {
		return nil, err
	}
	keeper, ok := b.(backend.Volumes)
	if !ok {
		return nil, fmt.Errorf("volumes: %w: the %s backend has none: use another backend, or copy files in and out", ErrUnsupported, b.Name())
	}
	return keeper, nil
}
