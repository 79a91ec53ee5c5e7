package engine

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
	"github.com/llmsandbox/llmsandbox/internal/engine/await"
)

// volumes are named volumes that are filled once and read-only from then on. A second,
// empty volume beside each tells that it is whole: it is made when all is in it. The
// container through which it is filled is never started; its name is the lock among all
// who would fill it, in this and other processes.
type volumes struct {
	client *client.Client
	mu     sync.Mutex
	whole  map[string]bool
}

const wholeSuffix = "-whole"

// has tells whether the volume is there and whole.
func (v *volumes) has(ctx context.Context, name string) (bool, error) {
	v.mu.Lock()
	known := v.whole[name]
	v.mu.Unlock()
	if known {
		return true, nil
	}
	_, err := v.client.VolumeInspect(ctx, name+wholeSuffix, client.VolumeInspectOptions{})
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for volume %s: %w", name, err)
	}
	v.know(name)
	return true, nil
}

func (v *volumes) know(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.whole == nil {
		v.whole = map[string]bool{}
	}
	v.whole[name] = true
}

// fill makes the volume with what write writes, a tar, unless it is there and whole.
// image is any image of the engine.
func (v *volumes) fill(ctx context.Context, name, role, image string, write func(io.Writer) error) error {
	for {
		if ok, err := v.has(ctx, name); ok || err != nil {
			return err
		}
		id, err := v.lock(ctx, name+"-fill", name, role, image)
		if err != nil {
			return fmt.Errorf("fill volume %s: %w", name, err)
		}
		if id == "" {
			continue // somebody else has been filling it
		}
		err = v.put(ctx, id, name, role, write)
		// A context that ended must not leave the lock.
		_, rerr := v.client.ContainerRemove(context.WithoutCancel(ctx), id, client.ContainerRemoveOptions{Force: true})
		if err == nil {
			err = rerr
		}
		if err != nil {
			return fmt.Errorf("fill volume %s: %w", name, err)
		}
		v.know(name)
		return nil
	}
}

// lock makes the container that fills the volume. It returns "" after it has waited for
// another one of the filler's name.
func (v *volumes) lock(ctx context.Context, filler, name, role, image string) (string, error) {
	// By itself, since not every engine labels the volumes that a container brings.
	_, err := v.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: map[string]string{labelRole: role}})
	if err != nil {
		return "", err
	}
	host := noNetwork()
	host.Mounts = []mount.Mount{{
		Type: mount.TypeVolume, Source: name, Target: agentDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	}}
	made, err := createContainer(ctx, v.client, client.ContainerCreateOptions{
		Name: filler, Config: neverStarted(image), HostConfig: host,
	})
	if err == nil {
		return made.ID, nil
	}
	if !nameTaken(err) {
		return "", err
	}
	return "", v.await(ctx, filler)
}

// await returns when the container that fills a volume is gone, and removes it when its
// owner has died.
func (v *volumes) await(ctx context.Context, filler string) error {
	// Asked for before looking, so that its end cannot be missed.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	removed := await.Container(ctx, v.client, filler, container.WaitConditionRemoved)
	c, err := v.client.ContainerInspect(ctx, filler, client.ContainerInspectOptions{})
	if absent.Container(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if o, err := parseOwner(c.Container.Config.Labels[labelOwner]); err == nil && o.dead() {
		_, err := v.client.ContainerRemove(ctx, c.Container.ID, client.ContainerRemoveOptions{Force: true})
		// Conflict: a collector is at it, too.
		if err != nil && !gone(err) {
			return err
		}
	}
	end := <-removed
	if end.Err == nil || absent.Container(end.Err) {
		return nil
	}
	return fmt.Errorf("wait for another process that fills it: %w", end.Err)
}

// put writes the content and then makes the mark that all of it is there.
func (v *volumes) put(ctx context.Context, id, name, role string, write func(io.Writer) error) error {
	if ok, err := v.has(ctx, name); ok || err != nil { // filled before the lock was ours
		return err
	}
	if err := v.stream(ctx, id, write); err != nil {
		return err
	}
	_, err := v.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name + wholeSuffix, Labels: map[string]string{labelRole: role}})
	return err
}

// stream takes the tar that write writes into the volume, through the container that fills it.
func (v *volumes) stream(ctx context.Context, id string, write func(io.Writer) error) error {
	pr, pw := io.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		pw.CloseWithError(write(pw))
	}()
	_, err := v.client.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: agentDir, Content: pr})
	pr.CloseWithError(io.ErrClosedPipe) // ends a writer that nobody reads from
	<-sent
	return err
}

// neverStarted is a container that is only made to reach files through it.
func neverStarted(image string) *container.Config {
	return &container.Config{
		Image: image, Entrypoint: []string{"/never-started"}, NetworkDisabled: true,
		Labels: map[string]string{labelRole: roleFill, labelOwner: thisProcess().String()},
	}
}

func noNetwork() *container.HostConfig { return &container.HostConfig{NetworkMode: "none"} }
