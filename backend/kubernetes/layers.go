package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

const (
	// storeDir is below the cache directory.
	storeDir = "kubernetes"
	// keepUnused is how long a layer is kept that no sandbox uses.
	keepUnused = 30 * 24 * time.Hour
)

// Layers implements [backend.Backend]. They are kept on this machine and sent into each pod
// that uses them, so the cluster needs no volume that pods share. One is in use while a
// sandbox of this machine has it.
func (b *Backend) Layers() (backend.Layers, error) {
	if b.options.Pod != "" {
		return nil, agenthost.Pod.NoLayers()
	}
	s, err := b.store()
	if err != nil {
		return nil, err
	}
	return layers{s, b.options}, nil
}

func (b *Backend) store() (layerstore.Store, error) {
	dir, err := b.storeDir()
	if err != nil {
		return layerstore.Store{}, err
	}
	return layerstore.Open(dir)
}

// storeDir is where the store is, or will be.
func (b *Backend) storeDir() (string, error) {
	dir := b.options.CacheDir
	if dir == "" {
		var err error
		if dir, err = layerstore.DefaultDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, storeDir), nil
}

// layers are those of the store. They know images by name.
type layers struct {
	layerstore.Store
	options Options
}

// Toolchain is [backend.Layers].Toolchain. It names an image as well as this machine can know
// it: by its reference and the architecture that its pods are held to, if any. An image that
// moves under the same name is taken for the one it was: name it by digest where that
// matters. Whether a program is in it is not known.
func (l layers) Toolchain(_ context.Context, spec backend.Spec, _ string, _ []string) (string, error) {
	image, err := l.options.image(spec)
	if err != nil {
		return "", err
	}
	return image + "\x00" + l.options.NodeSelector["kubernetes.io/arch"] + "\x00" + l.options.RuntimeClass, nil
}

// holdLayers keeps layers from being removed until release is called, once.
func (b *Backend) holdLayers(layers []backend.Layer) (release func() error, err error) {
	if len(layers) == 0 {
		return func() error { return nil }, nil
	}
	store, err := b.store()
	if err != nil {
		return nil, err
	}
	return store.Hold(sources(layers)...)
}

func sources(layers []backend.Layer) []string {
	dirs := make([]string, len(layers))
	for i, l := range layers {
		dirs[i] = l.Source
	}
	return dirs
}

// diskBlock is what a file takes on a disk beyond its content, at most, in bytes.
const diskBlock = 4 << 10

// layersSize is what the files of layers take on a disk, in bytes.
func layersSize(layers []backend.Layer) (int64, error) {
	var all int64
	for _, l := range layers {
		size, err := layertree.Measure(l.Source)
		if err != nil {
			return 0, fmt.Errorf("measure a layer: %w", err)
		}
		all += size.Bytes + int64(size.Files)*diskBlock
	}
	return all, nil
}

// collectLayers removes layers that no sandbox has used for long, and what makers that died
// have left.
func (b *Backend) collectLayers(ctx context.Context) ([]backend.Leftover, error) {
	dir, err := b.storeDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nor need there be a place for one, as in a pod that only collects
	}
	s, err := layerstore.Open(dir)
	if err != nil {
		return nil, err
	}
	var found []backend.Leftover
	err = s.Collect(ctx, keepUnused, func(path string, err error) {
		l := backend.Leftover{Kind: "layer", Name: filepath.Base(path), Removed: err == nil}
		if err != nil {
			l.Reason = err.Error()
		}
		found = append(found, l)
	})
	if err != nil {
		return found, fmt.Errorf("collect the layers on this machine: %w", err)
	}
	return found, nil
}
