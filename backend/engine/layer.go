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
	failed, err := b.filling.try(ctx, key, func() error { return b.fillLayer(ctx, name, fill) })
	if failed || err != nil {
		return "", err
	}
	return name, nil
}

// fillLayer lets fill fill a directory of this machine and copies it to the engine, unless another caller just did.
func (b *Backend) fillLayer(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) error {
	if ok, err := b.volumes.has(ctx, name); ok || err != nil {
		return err
	}
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

// attempts let one caller at a time fill a layer. A layer that could not be filled is not
// tried again in this process.
type attempts struct {
	mu   sync.Mutex
	each map[string]*attempt
}

type attempt struct {
	turn   chan struct{} // full while a caller fills the layer
	failed bool          // read and written by the caller that has the turn
}

// try calls fill unless that failed before. It waits for other callers of the same key, and
// no longer than ctx lives. A fill that ended with its ctx is not remembered as a failure.
func (a *attempts) try(ctx context.Context, key string, fill func() error) (failed bool, err error) {
	at := a.of(key)
	select {
	case at.turn <- struct{}{}:
		defer func() { <-at.turn }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if at.failed {
		return true, nil
	}
	err = fill()
	at.failed = err != nil && ctx.Err() == nil
	return false, err
}

func (a *attempts) of(key string) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.each == nil {
		a.each = map[string]*attempt{}
	}
	if a.each[key] == nil {
		a.each[key] = &attempt{turn: make(chan struct{}, 1)}
	}
	return a.each[key]
}
