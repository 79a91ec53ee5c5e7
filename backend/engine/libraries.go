package engine

import (
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
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
	"github.com/llmsandbox/llmsandbox/internal/existing"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// A layer of libraries is a volume with a name of its own. A second, empty volume, named
// by the layer's key, says which one it is and what is in it: it is made when all is
// there, and removed first. So a volume that somebody has begun to fill or to remove is
// never taken for a layer.
const (
	libraryPrefix   = "llmsandbox-libraries-" // followed by the layer's key
	roleLibraries   = "libraries"
	labelAbout      = "llmsandbox.libraries"        // of the second one: JSON of backend.LibraryLayer
	labelLibraryVol = "llmsandbox.libraries.volume" // of the second one: the name of the first
)

var _ backend.LibraryKeeper = (*Backend)(nil)

// NoLibraries implements [backend.LibraryKeeper].
func (b *Backend) NoLibraries() error {
	if b.options.Container == "" {
		return nil
	}
	return existing.Container.NoLibraries()
}

// Toolchain implements [backend.LibraryKeeper]: everything is in the image.
func (b *Backend) Toolchain(ctx context.Context, spec backend.Spec, program string, _ []string) (string, error) {
	return b.Fingerprint(ctx, spec, program)
}

// Library implements [backend.LibraryKeeper]. All who use the engine share the layers.
func (b *Backend) Library(ctx context.Context, about backend.LibraryLayer, fill func(ctx context.Context, dir string) error) (string, error) {
	mark := libraryPrefix + about.Key
	for {
		source, err := b.wholeLibrary(ctx, mark)
		if err != nil || source != "" {
			return source, err
		}
		if source, err = b.makeLibrary(ctx, mark, about, fill); err != nil || source != "" {
			return source, err
		}
	}
}

// wholeLibrary returns the volume that a mark names, or "" when there is no such mark. It
// is asked of the engine each time: another process may have removed it.
func (b *Backend) wholeLibrary(ctx context.Context, mark string) (string, error) {
	v, err := b.client.VolumeInspect(ctx, mark, client.VolumeInspectOptions{})
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", b.explain("look for a layer of libraries", err)
	}
	return v.Volume.Labels[labelLibraryVol], nil
}

// makeLibrary fills a volume. It returns "" after it has waited for somebody else who did.
func (b *Backend) makeLibrary(ctx context.Context, mark string, about backend.LibraryLayer, fill func(context.Context, string) error) (_ string, err error) {
	image, _ := b.fillImage.Load().(string)
	name := mark + "-" + strings.ToLower(rand.Text())
	made := false
	defer func() {
		if !made {
			_, rerr := b.client.VolumeRemove(context.WithoutCancel(ctx), name, client.VolumeRemoveOptions{})
			if !errdefs.IsNotFound(rerr) {
				err = errors.Join(err, b.explain("remove a volume", rerr))
			}
		}
	}()
	id, err := b.volumes.lock(ctx, mark+"-fill", name, roleLibraries, image)
	if err != nil {
		return "", b.explain("make a volume for libraries", err)
	}
	if id == "" {
		return "", nil
	}
	defer func() {
		_, rerr := b.client.ContainerRemove(context.WithoutCancel(ctx), id, client.ContainerRemoveOptions{Force: true})
		err = errors.Join(err, b.explain("remove a container", rerr))
	}()
	if source, err := b.wholeLibrary(ctx, mark); err != nil || source != "" {
		return source, err // before the lock was ours
	}
	if err := b.putLibrary(ctx, id, &about, fill); err != nil {
		return "", err
	}
	if err := b.markLibrary(ctx, mark, name, about); err != nil {
		return "", err
	}
	made = true
	return name, nil
}

// putLibrary lets fill fill a folder of this machine and takes it to the engine.
func (b *Backend) putLibrary(ctx context.Context, id string, about *backend.LibraryLayer, fill func(context.Context, string) error) error {
	return filled(ctx, fill, func(dir string) error {
		size, err := layertree.Measure(dir)
		if err != nil {
			return err
		}
		about.Size = size.Bytes
		err = b.volumes.stream(ctx, id, func(w io.Writer) error { return layertree.Pack(ctx, dir, "", w) })
		return b.explain("take libraries to the engine", err)
	})
}

func (b *Backend) markLibrary(ctx context.Context, mark, name string, about backend.LibraryLayer) error {
	about.Created = time.Now()
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	_, err = b.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: mark, Labels: map[string]string{
		labelRole: roleLibraries, labelAbout: string(text), labelLibraryVol: name,
	}})
	return b.explain("make the mark of a layer of libraries", err)
}

// Libraries implements [backend.LibraryKeeper]. Engines do not tell when a volume was last
// used.
func (b *Backend) Libraries(ctx context.Context) ([]backend.LibraryLayer, error) {
	res, err := b.client.VolumeList(ctx, client.VolumeListOptions{Filters: make(client.Filters).Add("label", labelRole+"="+roleLibraries)})
	if err != nil {
		return nil, b.explain("list the volumes", err)
	}
	var layers []backend.LibraryLayer
	for _, v := range res.Items {
		key, ok := strings.CutPrefix(v.Name, libraryPrefix)
		if !ok || v.Labels[labelLibraryVol] == "" {
			continue
		}
		var about backend.LibraryLayer
		if err := json.Unmarshal([]byte(v.Labels[labelAbout]), &about); err != nil {
			return nil, fmt.Errorf("label %s of volume %s: %w", labelAbout, v.Name, err)
		}
		about.Key = key
		if about.InUse, err = b.volumeUsed(ctx, v.Labels[labelLibraryVol]); err != nil {
			return nil, err
		}
		layers = append(layers, about)
	}
	slices.SortFunc(layers, func(a, b backend.LibraryLayer) int { return strings.Compare(a.Key, b.Key) })
	return layers, nil
}

func (b *Backend) volumeUsed(ctx context.Context, name string) (bool, error) {
	using, err := absent.List(ctx, b.client, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("volume", name)})
	return len(using) > 0, b.explain("list the containers", err)
}

// RemoveLibrary implements [backend.LibraryKeeper].
func (b *Backend) RemoveLibrary(ctx context.Context, key string) error {
	mark := libraryPrefix + key
	name, err := b.wholeLibrary(ctx, mark)
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("layer of libraries %q: %w", key, backend.ErrLibraryNotFound)
	}
	used, err := b.volumeUsed(ctx, name)
	if err == nil && used {
		err = fmt.Errorf("remove the layer of libraries %s: %w: a sandbox uses it", key, backend.ErrLocked)
	}
	if err != nil {
		return err
	}
	for _, v := range []string{mark, name} {
		// Conflict: a sandbox got it just now; a collection removes it when that has ended.
		if _, err := b.client.VolumeRemove(ctx, v, client.VolumeRemoveOptions{}); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			return b.explain("remove a layer of libraries", err)
		}
	}
	return nil
}

// wholeLibraries are the names of the volumes that make up whole layers of libraries.
func wholeLibraries(volumes []volume.Volume) map[string]bool {
	whole := map[string]bool{}
	for _, v := range volumes {
		if name := v.Labels[labelLibraryVol]; name != "" && v.Labels[labelRole] == roleLibraries {
			whole[v.Name], whole[name] = true, true
		}
	}
	return whole
}
