package engine

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// A volume of the caller is made as those in volume.go are, and its mark has what the caller
// said of it. No engine removes a volume that a container has. Then only the mark is removed:
// the name is free, and the rest goes with the last sandbox that has it, or by GC.
const (
	// volumePrefix is of a mark, followed by the volume's name. No sandbox's container can have
	// the name of a filler, since ids have no underscore.
	volumePrefix = "llmsandbox-volume_"
	roleVolume   = "volume"
	labelVolumes = "llmsandbox.volumes" // of a sandbox: JSON of []backend.VolumeMount; none: it has none
)

// maxVolumeLabels bounds the labels of a volume, in bytes.
const maxVolumeLabels = 1 << 20

var _ backend.Volumes = (*Backend)(nil)

// checkVolumes is why a backend has no volumes.
func (b *Backend) checkVolumes() error {
	if b.options.Container == "" {
		return nil
	}
	return fmt.Errorf("volumes: %w: an existing container has its mounts already: open a sandbox from its image, or copy files in and out", backend.ErrUnsupported)
}

// CreateVolume implements [backend.Volumes].
func (b *Backend) CreateVolume(ctx context.Context, v backend.Volume) (backend.Volume, error) {
	if err := b.checkVolumes(); err != nil {
		return v, err
	}
	if err := hostmount.CheckVolumeName(v.Name); err != nil {
		return v, err
	}
	own, err := json.Marshal(v.Labels)
	switch {
	case err != nil:
		return v, err
	case len(own) > maxVolumeLabels:
		return v, errclass.Errorf(backend.ErrInvalid, "volume %s: its labels have more than %d bytes", v.Name, maxVolumeLabels)
	case v.Size < 0:
		return v, errclass.Errorf(backend.ErrInvalid, "volume %s: its size is negative", v.Name)
	case v.Size > 0:
		return v, fmt.Errorf("volume %s: size: %w: %s: leave it out", v.Name, backend.ErrNotEnforced, whyNoVolumeSize)
	}
	image, err := b.anyImage(ctx)
	if err != nil {
		return v, err
	}
	made := false
	_, err = b.fill(ctx, filling{mark: volumePrefix + v.Name, role: roleVolume, image: image, options: b.flavor.VolumeOptions,
		put: func(send sender) (map[string]string, error) {
			made, v.Created = true, time.Now().Round(0)
			labels := map[string]string{labelCreated: v.Created.Format(time.RFC3339Nano), labelLabels: string(own)}
			return labels, openToAll(send)
		}})
	if err != nil || made {
		return v, err
	}
	if _, err = b.findVolume(ctx, v.Name); err == nil {
		err = errclass.Errorf(backend.ErrVolumeExists, "there is a volume %s already: choose another name, or remove it", v.Name)
	} else if errors.Is(err, backend.ErrVolumeNotFound) {
		err = b.inTheWay(volumePrefix + v.Name)
	}
	return v, err
}

// anyImage returns an image for containers that are never started: of those that the engine has the last of its list, which
// begins with those that come and go, else the one that is pulled for a sandbox of the shell.
func (b *Backend) anyImage(ctx context.Context) (string, error) {
	list, err := b.client.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return "", b.explain("list the images", err)
	}
	if n := len(list.Items); n > 0 {
		return list.Items[n-1].ID, nil
	}
	img, err := b.resolveImage(ctx, backend.Spec{Language: "bash"})
	return img.ID, err
}

// openToAll gives the directory of a new volume, which is root's, to the user that most code is, and lets all others write to it.
// Docker leaves the directory that it unpacks in as it is, and Podman unpacks into a volume from nowhere else.
func openToAll(send sender) error {
	for dir, name := range map[string]string{"/": strings.TrimPrefix(agentDir, "/"), agentDir: "."} {
		err := send(dir, func(w io.Writer) error {
			t := tar.NewWriter(w)
			h := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o777, Uid: defaultUID, Gid: defaultUID}
			return errors.Join(t.WriteHeader(h), t.Close())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ListVolumes implements [backend.Volumes].
func (b *Backend) ListVolumes(ctx context.Context) ([]backend.Volume, error) {
	if err := b.checkVolumes(); err != nil {
		return nil, err
	}
	res, err := b.client.VolumeList(ctx, client.VolumeListOptions{Filters: make(client.Filters).Add("label", labelRole+"="+roleVolume)})
	if err != nil {
		return nil, b.explain("list the volumes", err)
	}
	all := []backend.Volume{}
	for _, mark := range res.Items {
		name, ok := strings.CutPrefix(mark.Name, volumePrefix)
		if !ok || mark.Labels[labelVolume] == "" {
			continue
		}
		v := backend.Volume{Name: name}
		if v.Created, err = time.Parse(time.RFC3339Nano, mark.Labels[labelCreated]); err == nil {
			err = json.Unmarshal([]byte(mark.Labels[labelLabels]), &v.Labels)
		}
		if err != nil {
			return nil, fmt.Errorf("labels of volume %s: %w", mark.Name, err)
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b backend.Volume) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// findVolume returns the engine's volume with the files of one of the caller's.
func (b *Backend) findVolume(ctx context.Context, name string) (string, error) {
	mark := volume.Volume{}
	if hostmount.CheckVolumeName(name) == nil {
		res, err := b.client.VolumeInspect(ctx, volumePrefix+name, client.VolumeInspectOptions{})
		if err != nil && !volumeGone(err) {
			return "", b.explain("look for volume "+name, err)
		}
		mark = res.Volume
	}
	if mark.Labels[labelRole] != roleVolume || mark.Labels[labelVolume] == "" { // none, or another program's
		return "", noVolume(name)
	}
	return mark.Labels[labelVolume], nil
}

func noVolume(name string) error {
	return errclass.Errorf(backend.ErrVolumeNotFound, "there is no volume %.80q", name)
}

// findVolumes finds the volumes of a sandbox and checks where they are to be.
func (b *Backend) findVolumes(ctx context.Context, spec backend.Spec) (found []mount.Mount, err error) {
	if err := hostmount.CheckVolumes(spec.Volumes, spec.Mounts, spec.Layers, spec.Workdir); err != nil {
		return nil, err
	}
	for _, v := range spec.Volumes {
		source, err := b.findVolume(ctx, v.Name)
		if errors.Is(err, backend.ErrVolumeNotFound) {
			err = fmt.Errorf("%w: create it first", err)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, volumeMount(source, v.Target, v.ReadOnly))
	}
	return found, nil
}

// binds are mounts of volumes in the form in which Podman, too, leaves out what the image has there.
func binds(volumes []mount.Mount) (list []string) {
	for _, m := range volumes {
		list = append(list, m.Source+":"+m.Target+":nocopy,"+map[bool]string{true: "ro", false: "rw"}[m.ReadOnly])
	}
	return list
}

// holdVolumes makes sure that a container which has been made has the volumes that were found: of one that was removed
// before, the engine has made another, without labels.
func (c *creation) holdVolumes(ctx context.Context, id string) error {
	b := c.backend
	for _, m := range c.volumes {
		res, err := b.client.VolumeInspect(ctx, m.Source, client.VolumeInspectOptions{})
		if err == nil && res.Volume.Labels[labelRole] == roleVolume {
			continue
		}
		if err == nil || volumeGone(err) {
			err = errclass.Errorf(backend.ErrVolumeNotFound, "the volume for %s was removed meanwhile", m.Target)
		}
		return errors.Join(b.explain("look for the volumes", err), c.unmake(ctx, id), b.removeVolumes(context.WithoutCancel(ctx), m.Source))
	}
	return nil
}

// RemoveVolume implements [backend.Volumes].
func (b *Backend) RemoveVolume(ctx context.Context, name string, force bool) error {
	if err := b.checkVolumes(); err != nil {
		return err
	}
	source, err := b.findVolume(ctx, name)
	if err != nil {
		return err
	}
	_, err = b.client.VolumeRemove(ctx, source, client.VolumeRemoveOptions{})
	inUse := errdefs.IsConflict(err)
	if err != nil && !inUse && !volumeGone(err) {
		return b.explain("remove volume "+name, err)
	}
	var users []container.Summary
	if inUse {
		if users, err = containers.List(ctx, b.client, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("volume", source)}); err != nil {
			return b.explain("list the containers", err)
		}
		if !force {
			return volumeInUse(name, users)
		}
	}
	if _, err := b.client.VolumeRemove(ctx, volumePrefix+name, client.VolumeRemoveOptions{}); err != nil && !volumeGone(err) {
		return b.explain("remove volume "+name, err)
	}
	if len(users) == 0 {
		return b.removeVolumes(ctx, source) // its container has gone meanwhile, if there was one
	}
	if err := b.emptyVolume(ctx, source, users[0].ImageID); err != nil {
		return fmt.Errorf("volume %s is gone, but not all of its files are: once no container has it, llmsandbox gc removes them: %w", name, err)
	}
	return b.removeVolumes(ctx, source)
}

// marked reports whether a volume with files of the caller has its mark, and so a name.
func (b *Backend) marked(ctx context.Context, source string) (bool, error) {
	i := strings.LastIndexByte(source, '-')
	if i <= 0 {
		return false, nil
	}
	whole, err := b.wholeVolume(ctx, source[:i])
	return whole == source, err
}

// dropVolumes removes what is left of the volumes of a sandbox that has ended which were removed while it had them.
func (c *creation) dropVolumes(ctx context.Context) error {
	var errs []error
	for _, m := range c.volumes {
		marked, err := c.backend.marked(ctx, m.Source)
		if err == nil && !marked {
			err = c.backend.removeVolumes(ctx, m.Source)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// volumeInUse is the error of a volume that containers have.
func volumeInUse(name string, users []container.Summary) error {
	var ids []string
	for _, c := range users {
		ids = append(ids, cmp.Or(c.Labels[labelID], "container "+containerNames(c)))
	}
	who := "a container that is being made or removed has"
	if len(ids) > 0 {
		who = fmt.Sprintf("%s %s", strings.Join(ids[:min(len(ids), 8)], ", "), map[bool]string{true: "has", false: "have"}[len(ids) == 1])
	}
	return errclass.Errorf(backend.ErrVolumeInUse, "%s volume %s: remove the sandbox first, or force it", who, name)
}

// volumeTarget is where a volume is in the sandbox that empties it.
const volumeTarget = "/volume"

// emptyVolume removes all files of a volume that containers have, in a sandbox of an image that the engine has, as root of
// that: they belong to any users, and may be deeper and meaner than the engine's own tools can take.
func (b *Backend) emptyVolume(ctx context.Context, source, image string) error {
	plain, err := New(b.client, b.flavor, nil) // no runtime option applies
	if err != nil {
		return err
	}
	c := &creation{
		backend: plain, spec: backend.Spec{ID: "volume-" + strings.ToLower(rand.Text()), User: "0:0", BestEffort: true},
		volumes: []mount.Mount{volumeMount(source, volumeTarget, false)},
	}
	if c.image, err = b.images.Resolve(ctx, image, "", nil); err != nil {
		return b.explainImage(err)
	}
	m, err := c.run(ctx)
	if err != nil {
		return err
	}
	err = m.(*agenthost.Session).WithAgent(ctx, func(agent *agentclient.Client) error {
		for {
			list, err := agent.List(ctx, volumeTarget)
			if err != nil {
				return err
			}
			for _, f := range list.Files {
				if err := agent.Remove(ctx, volumeTarget+"/"+f.Name, agentclient.RemoveOptions{Recursive: true, Missing: true}); err != nil {
					return err
				}
			}
			if !list.Truncated {
				return nil
			}
		}
	})
	return errors.Join(err, m.Destroy(context.WithoutCancel(ctx)))
}

// whyNoVolumeSize is why there is no limit for the size of a volume.
const whyNoVolumeSize = "what is in a volume is bounded by the file system of the engine's volumes only"

// volumeControls report on the volumes of a sandbox.
func volumeControls(volumes []backend.VolumeMount, by string) []backend.Control {
	// Podman mounts them nosuid and nodev, and Docker cannot.
	all := []backend.Control{hostmount.VolumesControlHow(volumes, by, "set-user-ID bits and devices in them have no effect")}
	if slices.ContainsFunc(volumes, func(v backend.VolumeMount) bool { return !v.ReadOnly }) {
		all = append(all, backend.Control{Name: "volume-size", Why: whyNoVolumeSize, Fix: "have these on a file system of their own, or mount volumes read-only"})
	}
	return all
}
