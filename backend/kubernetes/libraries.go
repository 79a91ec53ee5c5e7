package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/existing"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

const (
	// storeDir is below the cache folder.
	storeDir = "kubernetes"
	// keepUnused is how long a layer is kept that nobody uses.
	keepUnused = 30 * 24 * time.Hour
)

// layers is the store on this machine. Layers are sent into each pod that uses them, so
// the cluster needs no volume that pods share.
func (b *Backend) layers() (layerstore.Store, error) {
	dir, err := b.layersDir()
	if err != nil {
		return layerstore.Store{}, err
	}
	return layerstore.Open(dir)
}

// layersDir is where that store is, or will be.
func (b *Backend) layersDir() (string, error) {
	dir := b.options.CacheDir
	if dir == "" {
		var err error
		if dir, err = layerstore.DefaultDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, storeDir), nil
}

// Fingerprint names an image as well as this machine can know it: by its reference and the
// architecture that its pods are held to, if any. An image that moves under the same name
// is taken for the one it was: name it by digest where that matters. Whether a program is
// in it is not known.
func (b *Backend) Fingerprint(_ context.Context, spec backend.Spec, _ string) (string, error) {
	if b.options.Pod != "" {
		return "", nil // nothing can be mounted into it
	}
	image, err := b.options.image(spec)
	if err != nil {
		return "", err
	}
	return image + "\x00" + b.options.NodeSelector["kubernetes.io/arch"] + "\x00" + b.options.RuntimeClass, nil
}

// Layer returns the prepared folder of that key, which fill fills once for all who share
// the cache folder. It is "" where filling failed not long ago.
func (b *Backend) Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	s, err := b.layers()
	if err != nil {
		return "", err
	}
	return s.Layer(ctx, key, fill)
}

// NoLibraries implements [backend.LibraryKeeper].
func (b *Backend) NoLibraries() error {
	if b.options.Pod == "" {
		return nil
	}
	return existing.Pod.NoLibraries()
}

// Toolchain implements [backend.LibraryKeeper]: everything is in the image.
func (b *Backend) Toolchain(ctx context.Context, spec backend.Spec, program string, _ []string) (string, error) {
	return b.Fingerprint(ctx, spec, program)
}

// Library implements [backend.LibraryKeeper].
func (b *Backend) Library(ctx context.Context, about backend.LibraryLayer, fill func(ctx context.Context, dir string) error) (string, error) {
	s, err := b.layers()
	if err != nil {
		return "", err
	}
	return s.Library(ctx, about, fill)
}

// ReadLibrary implements [backend.LibraryKeeper].
func (b *Backend) ReadLibrary(ctx context.Context, source string, w io.Writer) error {
	s, err := b.layers()
	if err != nil {
		return err
	}
	return s.ReadLibrary(ctx, source, w)
}

// Libraries implements [backend.LibraryKeeper]. A layer is in use while a sandbox of this
// machine has it; those of other machines have copies of their own.
func (b *Backend) Libraries(ctx context.Context) ([]backend.LibraryLayer, error) {
	s, err := b.layers()
	if err != nil {
		return nil, err
	}
	return s.Libraries(ctx)
}

// RemoveLibrary implements [backend.LibraryKeeper].
func (b *Backend) RemoveLibrary(ctx context.Context, key string) error {
	s, err := b.layers()
	if err != nil {
		return err
	}
	return s.RemoveLibrary(ctx, key)
}

// collectLayers removes prepared folders that nobody has used for long, and what makers
// that died have left.
func (b *Backend) collectLayers(ctx context.Context) ([]backend.Leftover, error) {
	dir, err := b.layersDir()
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
	err = s.Collect(ctx, keepUnused, func(kind, path string, err error) {
		l := backend.Leftover{Kind: kind, Name: filepath.Base(path), Removed: err == nil}
		if err != nil {
			l.Error = err.Error()
		}
		found = append(found, l)
	})
	if err != nil {
		return found, fmt.Errorf("collect the layers on this machine: %w", err)
	}
	return found, nil
}
