package engine

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

const (
	layerPrefix = "llmsandbox-layer-" // of a mark, followed by the layer's key
	roleLayer   = "layer"
	labelAbout  = "llmsandbox.layer" // of a mark: JSON of backend.LayerInfo
)

// Layers implements [backend.Backend]. All who use the engine share them.
func (b *Backend) Layers() (backend.Layers, error) {
	if b.options.Container != "" {
		return nil, agenthost.Container.NoLayers()
	}
	return layers{b}, nil
}

// layers are volumes of the engine.
type layers struct{ *Backend }

// Toolchain is [backend.Layers].Toolchain. Everything is in the image, and whether a program is
// in it is not known.
func (l layers) Toolchain(ctx context.Context, spec backend.Spec, _ string, _ []string) (string, error) {
	img, err := l.resolveImage(ctx, spec)
	if err == nil {
		l.fillImage.Store(img.ID)
	}
	return img.ID, err
}

// Get is [backend.Layers].Get. The engine is asked for the layer each time: another process may
// have removed it.
func (l layers) Get(ctx context.Context, about backend.LayerInfo, fill func(ctx context.Context, dir string) error) (string, error) {
	mark := layerPrefix + about.Key
	if failed, ok := l.failed.Load(about.Key); ok && time.Since(failed.(time.Time)) < backend.CacheRetry {
		return l.wholeVolume(ctx, mark)
	}
	image, _ := l.fillImage.Load().(string)
	source, err := l.fill(ctx, filling{mark: mark, role: roleLayer, image: image,
		put: func(send sender) (map[string]string, error) {
			return putLayer(ctx, about, fill, send)
		}})
	if err != nil && about.Cache != "" && ctx.Err() == nil {
		l.failed.Store(about.Key, time.Now())
	}
	return source, err
}

// putLayer lets fill fill a directory of this machine, sends what is in it, and describes it.
func putLayer(ctx context.Context, about backend.LayerInfo, fill func(context.Context, string) error, send sender) (_ map[string]string, err error) {
	dir, err := os.MkdirTemp("", "llmsandbox-layer-*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a layer: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fill(ctx, dir); err != nil {
		return nil, err
	}
	size, err := layertree.Measure(dir)
	if err != nil {
		return nil, err
	}
	if err := send(agentDir, func(w io.Writer) error { return layertree.Pack(ctx, dir, "", w) }); err != nil {
		return nil, err
	}
	about.Size, about.Created = size.Bytes, time.Now()
	text, err := json.Marshal(about)
	return map[string]string{labelAbout: string(text)}, err
}

// List is [backend.Layers].List. Engines do not report when a volume was last used.
func (l layers) List(ctx context.Context) ([]backend.LayerInfo, error) {
	res, err := l.client.VolumeList(ctx, client.VolumeListOptions{Filters: make(client.Filters).Add("label", labelRole+"="+roleLayer)})
	if err != nil {
		return nil, l.explain("list the volumes", err)
	}
	var all []backend.LayerInfo
	for _, v := range res.Items {
		key, ok := strings.CutPrefix(v.Name, layerPrefix)
		if !ok || v.Labels[labelVolume] == "" {
			continue
		}
		var about backend.LayerInfo
		if err := json.Unmarshal([]byte(v.Labels[labelAbout]), &about); err != nil {
			return nil, fmt.Errorf("label %s of volume %s: %w", labelAbout, v.Name, err)
		}
		about.Key = key
		if about.InUse, err = l.volumeUsed(ctx, v.Labels[labelVolume]); err != nil {
			return nil, err
		}
		all = append(all, about)
	}
	slices.SortFunc(all, func(a, b backend.LayerInfo) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

func (b *Backend) volumeUsed(ctx context.Context, name string) (bool, error) {
	using, err := containers.List(ctx, b.client, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("volume", name)})
	return len(using) > 0, b.explain("list the containers", err)
}

// Remove is [backend.Layers].Remove.
func (l layers) Remove(ctx context.Context, key string) error {
	mark := layerPrefix + key
	name, err := l.wholeVolume(ctx, mark)
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("layer %q: %w", key, backend.ErrLayerNotFound)
	}
	used, err := l.volumeUsed(ctx, name)
	if err == nil && used {
		err = fmt.Errorf("remove the layer %s: %w: a sandbox uses it", key, backend.ErrLocked)
	}
	if err != nil {
		return err
	}
	// A sandbox that got it just now keeps it.
	return l.removeVolumes(ctx, mark, name)
}

// Read is [backend.Layers].Read, through a container that is never started.
func (l layers) Read(ctx context.Context, source string, w io.Writer) error {
	_, err := l.client.VolumeInspect(ctx, source, client.VolumeInspectOptions{})
	if !strings.HasPrefix(source, layerPrefix) || errdefs.IsNotFound(err) {
		return fmt.Errorf("volume %s: %w", source, backend.ErrLayerNotFound)
	}
	if err != nil {
		return l.explain("look for a layer", err)
	}
	image, _ := l.fillImage.Load().(string)
	host := noNetwork()
	host.Mounts = []mount.Mount{volumeMount(source, agentDir, true)}
	return l.inContainer(ctx, neverStarted(image), host, func(id string) error {
		res, err := l.client.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: agentDir})
		if err == nil {
			defer res.Content.Close()
			err = withoutTop(res.Content, w)
		}
		return l.explain("read a layer", err)
	})
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
