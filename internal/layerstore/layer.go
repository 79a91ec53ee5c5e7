package layerstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// layerRetry is how long a layer that could not be made is not tried again.
	layerRetry = time.Hour
	// usedAccuracy is how exactly the last use of a layer is known, so that not every
	// use writes to the disk.
	usedAccuracy = time.Hour
)

// Layer returns the folder of a key, see [ValidKey], for backend.Spec.Layers. When it is
// not there, fill makes it in an empty folder, once among all processes that share the
// store: the others wait. Until fill has succeeded nobody sees anything of it. After fill
// has failed Layer returns "" for an hour instead of trying again.
func (s Store) Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	if !ValidKey(key) {
		return "", fmt.Errorf("layer %q: a key is of a-z, 0-9 and '-'", key)
	}
	l := layer{dir: s.layers(), key: key}
	if path, known, err := l.look(); known || err != nil {
		return path, err
	}
	return l.make(ctx, fill)
}

// A layer is a folder at dir/key; a file there says why it could not be made. Its
// maker holds dir/key.lock and fills dir/key.new.
type layer struct {
	dir, key string
	// retry tells that a failure is not noted: who comes next tries again.
	retry bool
}

func (l layer) path() string { return filepath.Join(l.dir, l.key) }
func (l layer) temp() string { return l.path() + ".new" }

// look tells what is known of the layer; it is one stat as long as all is well.
func (l layer) look() (path string, known bool, err error) {
	info, err := os.Lstat(l.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("look for a prepared layer: %w", err)
	case !info.IsDir():
		return "", time.Since(info.ModTime()) < layerRetry, nil
	}
	MarkUsed(l.path(), info)
	return l.path(), true, nil
}

func (l layer) make(ctx context.Context, fill func(context.Context, string) error) (path string, err error) {
	// Its files may be written by whoever reaches them, so nobody else may.
	if err := os.Mkdir(l.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the folder of prepared layers: %w", err)
	}
	lock, err := waitLock(ctx, l.path()+".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, dropLock(lock)) }()
	if path, known, err := l.look(); known || err != nil {
		return path, err // another maker was faster
	}
	// What a maker that died has left, and the note of an older failure.
	if err := errors.Join(os.RemoveAll(l.temp()), removeFile(l.path()), os.Mkdir(l.temp(), 0o700)); err != nil {
		return "", fmt.Errorf("make a prepared layer: %w", err)
	}
	err = fill(ctx, l.temp())
	if err == nil {
		if err = errors.Join(os.Chmod(l.temp(), 0o755), os.Rename(l.temp(), l.path())); err == nil {
			return l.path(), nil
		}
	}
	err = errors.Join(err, os.RemoveAll(l.temp()))
	if ctx.Err() == nil && !l.retry {
		err = errors.Join(err, os.WriteFile(l.path(), []byte(err.Error()+"\n"), 0o600))
	}
	return "", err
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
