package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
)

// A volume is filled once and read-only from then on, and has a name of its own. A second,
// empty volume, its mark, says which one is whole: it is made when all is there, and removed
// first. So a volume that is being filled or removed is never used. The
// container through which it is filled is never started; its name, that of the mark with a
// suffix, is the lock among all fillings, in this and other processes.

// labelVolume is, of a mark, the name of the volume that is whole.
const labelVolume = "llmsandbox.volume"

// A filling is how a volume is made.
type filling struct {
	mark, role string
	image      string            // the id of any image of the engine
	options    map[string]string // of the volume's driver
	// put sends the content, and returns more labels of the mark.
	put func(send sender) (map[string]string, error)
}

// A sender unpacks a tar, which write writes, into a directory of the container through which a
// volume is filled. The volume is at agentDir.
type sender func(dir string, write func(io.Writer) error) error

// wholeVolume returns the volume that a mark names, or "" when there is no such mark.
func (b *Backend) wholeVolume(ctx context.Context, mark string) (string, error) {
	v, err := b.client.VolumeInspect(ctx, mark, client.VolumeInspectOptions{})
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	return v.Volume.Labels[labelVolume], b.explain("look for volume "+mark, err)
}

// fill returns the volume of a mark, and makes it unless it is there and whole.
func (b *Backend) fill(ctx context.Context, f filling) (string, error) {
	for {
		if name, err := b.wholeVolume(ctx, f.mark); err != nil || name != "" {
			return name, err
		}
		if name, err := b.fillOnce(ctx, f); err != nil || name != "" {
			return name, err
		}
	}
}

// fillOnce makes a volume. It returns "" after it has waited for another filling.
func (b *Backend) fillOnce(ctx context.Context, f filling) (_ string, err error) {
	name := f.mark + "-" + strings.ToLower(rand.Text())
	made := false
	defer func() {
		if !made {
			err = errors.Join(err, b.removeVolumes(context.WithoutCancel(ctx), name))
		}
	}()
	id, err := b.lockVolume(ctx, name, f)
	if err != nil || id == "" {
		return "", b.explain("fill volume "+f.mark, err)
	}
	defer func() {
		// A context that ended must not leave the lock.
		_, rerr := b.client.ContainerRemove(context.WithoutCancel(ctx), id, client.ContainerRemoveOptions{Force: true})
		err = errors.Join(err, b.explain("remove a container", rerr))
	}()
	if whole, err := b.wholeVolume(ctx, f.mark); err != nil || whole != "" {
		return whole, err // before the lock was ours
	}
	labels, err := f.put(func(dir string, write func(io.Writer) error) error {
		return b.explain("fill volume "+f.mark, containers.CopyTo(ctx, b.client, id, dir, write))
	})
	if err != nil {
		return "", err
	}
	made, err = b.markVolume(ctx, name, f, labels)
	return name, err
}

// markVolume marks a volume as complete. An engine that has one of the mark's name already
// says that it has made it.
func (b *Backend) markVolume(ctx context.Context, name string, f filling, labels map[string]string) (made bool, err error) {
	all := map[string]string{labelRole: f.role, labelVolume: name}
	maps.Copy(all, labels)
	mark, err := b.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: f.mark, Labels: all})
	if err != nil {
		return false, b.explain("mark a volume as whole", err)
	}
	if mark.Volume.Labels[labelVolume] != name {
		return false, b.inTheWay(f.mark)
	}
	return true, nil
}

func (b *Backend) inTheWay(mark string) error {
	return fmt.Errorf("volume %s was not made by this program and is in its way: remove it with %s volume rm", mark, b.flavor.Name)
}

// lockVolume makes a volume and the container that fills it. It returns "" after it has waited
// for another one of the container's name.
func (b *Backend) lockVolume(ctx context.Context, name string, f filling) (string, error) {
	// By itself, since not every engine labels the volumes that a container brings.
	if _, err := b.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, DriverOpts: f.options, Labels: map[string]string{labelRole: f.role}}); err != nil {
		return "", err
	}
	host := noNetwork()
	host.Mounts = []mount.Mount{volumeMount(name, agentDir, false)}
	filler := f.mark + "-fill"
	made, err := createContainer(ctx, b.client, client.ContainerCreateOptions{
		Name: filler, Config: neverStarted(f.image), HostConfig: host,
	})
	if err == nil {
		return made.ID, nil
	}
	if !nameTaken(err) {
		return "", err
	}
	return "", b.awaitFiller(ctx, f.mark, filler)
}

// awaitFiller returns when the container that fills a volume is gone. When its owner has died
// it removes it, and what it has left.
func (b *Backend) awaitFiller(ctx context.Context, mark, filler string) error {
	// Asked for before looking, so that its end cannot be missed.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	removed := containers.Wait(ctx, b.client, filler, container.WaitConditionRemoved)
	c, err := b.client.ContainerInspect(ctx, filler, client.ContainerInspectOptions{})
	if containers.Absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := parseOwner(c.Container.Config.Labels[labelOwner])
	dead := err == nil && o.dead()
	if dead {
		_, err := b.client.ContainerRemove(ctx, c.Container.ID, client.ContainerRemoveOptions{Force: true})
		// Conflict: a collector is at it, too.
		if err != nil && !gone(err) {
			return err
		}
	}
	if end := <-removed; end.Err != nil && !containers.Absent(end.Err) {
		return fmt.Errorf("wait for another process that fills it: %w", end.Err)
	}
	if !dead {
		return nil
	}
	whole, err := b.wholeVolume(ctx, mark)
	for _, m := range c.Container.Mounts {
		if err == nil && m.Name != whole {
			err = b.removeVolumes(ctx, m.Name)
		}
	}
	return err
}

// removeVolumes removes volumes in this order. One that is gone is no error, nor is one in
// use, which a collection removes later.
func (b *Backend) removeVolumes(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		if _, err := b.client.VolumeRemove(ctx, name, client.VolumeRemoveOptions{}); err != nil && !volumeGone(err) && !errdefs.IsConflict(err) {
			errs = append(errs, b.explain("remove volume "+name, err))
		}
	}
	return errors.Join(errs...)
}

// wholeVolumes are the names of the marks of layers, of the caller's volumes and of own, and of the
// volumes that they mark, as far as both are there.
func wholeVolumes(all []volume.Volume, own map[string]bool) map[string]bool {
	there, whole := map[string]bool{}, map[string]bool{}
	for _, v := range all {
		there[v.Name] = true
	}
	for _, mark := range all {
		if name := mark.Labels[labelVolume]; there[name] && (mark.Labels[labelRole] == roleLayer || mark.Labels[labelRole] == roleVolume || own[mark.Name]) {
			whole[mark.Name], whole[name] = true, true
		}
	}
	return whole
}

// neverStarted is a container that is only made to reach files through it.
func neverStarted(image string) *container.Config {
	return &container.Config{
		Image: image, Entrypoint: []string{"/never-started"}, NetworkDisabled: true,
		Labels: map[string]string{labelRole: roleFill, labelOwner: thisProcess().String()},
	}
}

func noNetwork() *container.HostConfig { return &container.HostConfig{NetworkMode: "none"} }
