package engine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Read is [backend.Layers].Read, through a container that is never started.
func (l layers) Read(ctx context.Context, source string, w io.Writer) (err error) {
	_, err = l.client.VolumeInspect(ctx, source, client.VolumeInspectOptions{})
	if !strings.HasPrefix(source, layerPrefix) || errdefs.IsNotFound(err) {
		return fmt.Errorf("volume %s: %w", source, backend.ErrLayerNotFound)
	}
	if err != nil {
		return l.explain("look for a layer", err)
	}
	image, _ := l.fillImage.Load().(string)
	host := noNetwork()
	host.Mounts = []mount.Mount{readOnlyVolume(source, agentDir)}
	made, err := createContainer(ctx, l.client, client.ContainerCreateOptions{Config: neverStarted(image), HostConfig: host})
	if err != nil {
		return l.explain("make a container", err)
	}
	defer func() {
		_, rerr := l.client.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true})
		err = errors.Join(err, l.explain("remove a container", rerr))
	}()
	res, err := l.client.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: agentDir})
	if err != nil {
		return l.explain("read a layer", err)
	}
	defer res.Content.Close()
	return l.explain("read a layer", withoutTop(res.Content, w))
}

// withoutTop copies a tar stream of one directory as one of what is in it. Docker names what
// is in it below the directory's own name, Podman below "/"; either names the directory first.
func withoutTop(r io.Reader, w io.Writer) error {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	top := ""
	for first := true; ; first = false {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		name := path.Clean("/" + h.Name)
		if first {
			top = strings.TrimSuffix(name, "/")
			continue
		}
		below, ok := strings.CutPrefix(name, top+"/")
		if !ok {
			return fmt.Errorf("the engine sent %.200q, which is not in %q", h.Name, top)
		}
		if h.Name = below; h.Typeflag == tar.TypeDir {
			h.Name += "/"
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}
