package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

const (
	// layerPrefix is followed by the layer's key.
	layerPrefix = "llmsandbox-layer-"
	roleLayer   = "layer"
)

// Fingerprint names an image's content. Whether a program is in it is not known.
func (b *Backend) Fingerprint(ctx context.Context, spec backend.Spec, _ string) (string, error) {
	if b.options.Container != "" {
		return "", nil // nothing can be mounted into it
	}
	img, err := b.resolveImage(ctx, spec)
	if err == nil {
		b.fillImage.Store(img.ID)
	}
	return img.ID, err
}

// Layer makes the prepared folder of that key a volume, which fill fills once for all
// who use the engine. It is "" where filling failed before in this process.
func (b *Backend) Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	name := layerPrefix + key
	if ok, err := b.volumes.has(ctx, name); err != nil {
		return "", b.explain("look for a prepared layer", err)
	} else if ok {
		return name, nil
	}
	var failed bool
	err := b.filling.once(key, func() error { return b.fillLayer(ctx, name, fill) }, &failed)
	if failed {
		return "", nil
	}
	return name, err
}

// fillLayer lets fill fill a folder of this machine and takes it to the engine.
func (b *Backend) fillLayer(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) error {
	return filled(ctx, fill, func(dir string) error {
		image, _ := b.fillImage.Load().(string)
		return b.volumes.fill(ctx, name, roleLayer, image, func(w io.Writer) error { return layertree.Pack(ctx, dir, "", w) })
	})
}

// filled lets fill fill a folder of this machine, hands it to take, and removes it.
func filled(ctx context.Context, fill func(ctx context.Context, dir string) error, take func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "llmsandbox-layer-*")
	if err != nil {
		return fmt.Errorf("make a folder for a layer: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fill(ctx, dir); err != nil {
		return err
	}
	return take(dir)
}

// attempts remembers what failed in this process, so that it is not tried with every
// sandbox.
type attempts struct {
	mu     sync.Mutex
	failed map[string]bool
}

func (a *attempts) once(key string, do func() error, before *bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed[key] {
		*before = true
		return nil
	}
	err := do()
	if err != nil {
		if a.failed == nil {
			a.failed = map[string]bool{}
		}
		a.failed[key] = true
	}
	return err
}
