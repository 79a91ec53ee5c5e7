package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// MaxVolumeName is how long a name may be that a project gives a volume. On the backend it has a prefix.
const MaxVolumeName = 46

// volumePrefix begins the names that a project's volumes have on the backend, so that projects can give the same name to different ones.
func volumePrefix(project string) string {
	sum := sha256.Sum256([]byte("volumes of " + project))
	return hex.EncodeToString(sum[:8]) + "-"
}

// volumeName is what a project's volume is called on the backend.
func volumeName(project, name string) (string, error) {
	if len(name) > MaxVolumeName {
		return "", errclass.Errorf(llmsandbox.ErrInvalid, "volume %.80q: its name has at most %d characters", name, MaxVolumeName)
	}
	return volumePrefix(project) + name, hostmount.CheckVolumeName(name)
}

// asAsked is an error of a project's volumes with the names that the project gave them.
func asAsked(project string, err error) error {
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(err.Error(), volumePrefix(project), "")
	if text == err.Error() {
		return err
	}
	return errclass.Of(err, errors.New(text))
}

// boundVolumes has volumes that a project asks for be its own.
func (c *Config) boundVolumes(project string, asked []llmsandbox.VolumeMount) (own []llmsandbox.VolumeMount, err error) {
	if len(asked) > 0 && c.MaxVolumes == 0 {
		return nil, errNoVolumes
	}
	for _, v := range asked {
		if v.Name, err = volumeName(project, v.Name); err != nil {
			return nil, err
		}
		own = append(own, v)
	}
	return own, nil
}

var errNoVolumes = fmt.Errorf("volumes: %w: projects have none", ErrNotAllowed)

// UserVolumes are the volumes of a sandbox that its project asked for, by the names that the project gave them.
func UserVolumes(i *backend.Info) (asked []llmsandbox.VolumeMount) {
	prefix := volumePrefix(i.Labels[projectLabel])
	for _, v := range i.Volumes {
		if name, ok := strings.CutPrefix(v.Name, prefix); ok {
			v.Name = name
			asked = append(asked, v)
		}
	}
	return asked
}

// Volumes returns a project's volumes, sorted by name.
func (s *Service) Volumes(ctx context.Context, project string) ([]llmsandbox.Volume, error) {
	all, err := llmsandbox.ListVolumes(ctx, s.cfg.Sandbox.Backend)
	if err != nil {
		return nil, err
	}
	prefix := volumePrefix(project)
	own := slices.DeleteFunc(all, func(v llmsandbox.Volume) bool {
		return v.Labels[projectLabel] != project || !strings.HasPrefix(v.Name, prefix)
	})
	for i := range own {
		own[i] = ofUser(project, own[i])
	}
	return own, nil
}

// ofUser is a project's volume as the project knows it.
func ofUser(project string, v llmsandbox.Volume) llmsandbox.Volume {
	v.Name, v.Labels = strings.TrimPrefix(v.Name, volumePrefix(project)), UserLabels(v.Labels)
	return v
}

// CreateVolume makes a volume of a project. It fails with ErrNotAllowed where projects have none, with ErrQuota where it has as many as it may, and as
// llmsandbox.CreateVolume does.
func (s *Service) CreateVolume(ctx context.Context, project string, v llmsandbox.Volume) (llmsandbox.Volume, error) {
	if s.cfg.MaxVolumes == 0 {
		return v, errNoVolumes
	}
	if err := checkLabels(v.Labels); err != nil {
		return v, err
	}
	name, err := volumeName(project, v.Name)
	if err != nil {
		return v, err
	}
	s.makingVolume.Lock() // so that all that there are were counted
	defer s.makingVolume.Unlock()
	list, err := s.Volumes(ctx, project)
	if err != nil {
		return v, err
	}
	there := slices.ContainsFunc(list, func(other llmsandbox.Volume) bool { return other.Name == v.Name })
	if len(list) >= s.cfg.MaxVolumes && !there {
		return v, fmt.Errorf("%w: the project has %d volumes, of at most %d: remove one first", ErrQuota, len(list), s.cfg.MaxVolumes)
	}
	labels := maps.Clone(v.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[projectLabel] = project
	made, err := llmsandbox.CreateVolume(ctx, s.cfg.Sandbox.Backend, llmsandbox.Volume{Name: name, Labels: labels, Size: v.Size})
	return ofUser(project, made), asAsked(project, err)
}

// RemoveVolume removes a project's volume as llmsandbox.RemoveVolume does.
func (s *Service) RemoveVolume(ctx context.Context, project, name string, force bool) error {
	full, err := volumeName(project, name)
	if err != nil {
		return errclass.Errorf(llmsandbox.ErrVolumeNotFound, "there is no volume %.80q", name) // as none can have that name
	}
	return asAsked(project, llmsandbox.RemoveVolume(ctx, s.cfg.Sandbox.Backend, full, force))
}

// TarToVolume unpacks a tar archive into a directory of a project's volume. As it takes a sandbox, it waits for a place as programs do.
func (s *Service) TarToVolume(ctx context.Context, project string, r io.Reader, name, path string) (llmsandbox.CopyResult, error) {
	return s.inVolume(ctx, project, name, func(full string) (llmsandbox.CopyResult, error) {
		return llmsandbox.TarToVolume(ctx, s.cfg.Sandbox.Backend, r, full, path)
	})
}

// TarFromVolume writes a file or directory of a project's volume to w as a tar archive, in which it is called member, or by its own name. As it takes a
// sandbox, it waits for a place as programs do.
func (s *Service) TarFromVolume(ctx context.Context, project, name, path, member string, w io.Writer) (llmsandbox.CopyResult, error) {
	if member == "" && strings.Trim(path, "/") == "" {
		member = name
	}
	return s.inVolume(ctx, project, name, func(full string) (llmsandbox.CopyResult, error) {
		return llmsandbox.TarFromVolume(ctx, s.cfg.Sandbox.Backend, full, path, member, w)
	})
}

func (s *Service) inVolume(ctx context.Context, project, name string, do func(full string) (llmsandbox.CopyResult, error)) (llmsandbox.CopyResult, error) {
	full, err := volumeName(project, name)
	if err != nil {
		return llmsandbox.CopyResult{}, errclass.Errorf(llmsandbox.ErrVolumeNotFound, "there is no volume %.80q", name)
	}
	leave, err := s.Enter(ctx, project)
	if err != nil {
		return llmsandbox.CopyResult{}, err
	}
	defer leave()
	res, err := do(full)
	return res, asAsked(project, err)
}
