package kubernetes

import (
	"fmt"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// holdLayers keeps layers from being removed until release is called, once.
func (b *Backend) holdLayers(layers []backend.Layer) (release func() error, err error) {
	if len(layers) == 0 {
		return func() error { return nil }, nil
	}
	store, err := b.layers()
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
