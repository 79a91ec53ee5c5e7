package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// Commit makes an image of the container's image, of its root file system where that can
// be written to, and of files. The owner of the files in the image does not matter: a
// sandbox of it gets them as its own.
func (h *host) Commit(ctx context.Context, tag, overwrite string, files io.Reader) (string, error) {
	b := h.backend
	c, err := b.client.ContainerInspect(ctx, h.container, client.ContainerInspectOptions{})
	if err != nil {
		return "", b.explain("look at the container", err)
	}
	base, err := b.images.Resolve(ctx, c.Container.Image, "", nil)
	if err != nil {
		return "", b.explain("look at the container's image", err)
	}
	o := image.Commit{Tag: tag, Overwrite: overwrite, Base: base}
	if made := c.Container.HostConfig; made != nil && !made.ReadonlyRootfs {
		if o.Base, err = b.images.Commit(ctx, h.container, o); err != nil {
			return "", b.explain("make an image of the root file system", err)
		}
		o.Overwrite = tag // which is ours now
	}
	o.Workdir = h.workdir
	img, err := b.images.CommitFiles(ctx, files, h.workdir, defaultUID, defaultUID, o)
	return img.ID, b.explain("make an image of the working folder", err)
}

// restoreWorkdir puts the files that a committed image has of its sandbox's working
// directory into this one's, where the image's own directory is hidden by what is mounted.
func (b *Backend) restoreWorkdir(ctx context.Context, s *agenthost.Session, img image.Image) (err error) {
	c := b.client
	// Of a container without mounts, so that it is the image's.
	made, err := createContainer(ctx, c, client.ContainerCreateOptions{
		Config: neverStarted(img.ID), HostConfig: noNetwork(),
	})
	if err != nil {
		return b.explain("read the image's working folder", err)
	}
	defer func() {
		_, rerr := c.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		err = errors.Join(err, b.explain("remove a container that was never started", rerr))
	}()
	// What is in the directory, without the directory: the sandbox's is a mount, and the agent
	// unpacks only into the file system that it was given.
	files, err := c.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: img.Committed + "/."})
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("image %s: %w: its label says that it has %s, and it has not", img.Ref, backend.ErrImageInvalid, img.Committed)
	}
	if err != nil {
		return b.explain("read the image's working folder", err)
	}
	defer files.Content.Close()
	return s.WithAgent(ctx, func(a *agentclient.Client) error {
		result, err := a.TarIn(ctx, s.Inside.Workdir, files.Content, agentclient.TarLimits{Links: true})
		if err == nil && len(result.Skipped) > 0 {
			err = errors.New(result.Skipped[0])
		}
		if err != nil {
			return fmt.Errorf("put the image's working folder into the sandbox: %w", err)
		}
		return nil
	})
}
