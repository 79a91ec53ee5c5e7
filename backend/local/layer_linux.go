package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local/hostroot"
	"github.com/llmsandbox/llmsandbox/backend/local/image"
)

const (
	// layerRetry is how long a layer that could not be made is not tried again.
	layerRetry = time.Hour
	// usedAccuracy is how exactly the last use of a layer is known, so that not every
	// use writes to the disk.
	usedAccuracy = time.Hour
)

// Fingerprint names a program of spec's image without running it: of the host's own
// toolchains the file that it is, of an image the whole image, which is fetched when
// it is not there. It is "" when the host has no such program.
func (b *Backend) Fingerprint(ctx context.Context, spec backend.Spec, program string) (string, error) {
	if spec.Image == "" || spec.Image == "host" {
		path := hostroot.Locate(spec.Language, program, hostroot.Options{})
		if path == "" {
			return "", nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", nil // it went away just now
		}
		return path + "\x00" + strconv.FormatInt(info.Size(), 10) + "\x00" + strconv.FormatInt(info.ModTime().UnixNano(), 10), nil
	}
	store, err := b.Images()
	if err != nil {
		return "", err
	}
	img, err := store.Resolve(ctx, spec.Image, image.Options{Progress: spec.Progress})
	if err != nil {
		return "", err
	}
	return img.ID + "\x00" + program, img.Release()
}

// Layer returns the folder of a key, which is of [a-z0-9-], for Spec.Layers. When it
// is not there, fill makes it in an empty folder, once among all processes that share
// the cache folder: the others wait. Until fill has succeeded nobody sees anything of
// it. After fill has failed Layer returns "" for an hour instead of trying again.
func (b *Backend) Layer(ctx context.Context, key string, fill func(ctx context.Context, dir string) error) (string, error) {
	if !validKey(key) {
		return "", fmt.Errorf("layer %q: a key is of a-z, 0-9 and '-'", key)
	}
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	l := layer{dir: d.layers(), key: key}
	if path, known, err := l.look(); known || err != nil {
		return path, err
	}
	return l.make(ctx, fill)
}

func (d dirs) layers() string { return filepath.Join(d.cache, "layers") }

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
	markUsed(l.path(), info)
	return l.path(), true, nil
}

func (l layer) make(ctx context.Context, fill func(context.Context, string) error) (path string, err error) {
	// Its files may be written by whoever reaches them, so nobody else may.
	if err := os.Mkdir(l.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the folder of prepared layers: %w", err)
	}
	lock, err := lockLayer(ctx, l.path()+".lock")
	if err != nil {
		return "", err
	}
	// Removed while it is locked: who waited for it sees that it is no longer the file.
	defer func() { err = errors.Join(err, removeFile(lock.Name()), lock.Close()) }()
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

// lockLayer waits for the lock file at path, or for the end of ctx. flock cannot be
// given up: when ctx ends first, a goroutine stays until it has the lock and then lets
// go of it.
func lockLayer(ctx context.Context, path string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	got := make(chan result, 1)
	go func() {
		f, err := lockNamed(ctx, path, unix.LOCK_EX)
		got <- result{f, err}
	}()
	select {
	case r := <-got:
		return r.f, r.err
	case <-ctx.Done():
		go func() {
			if r := <-got; r.f != nil {
				r.f.Close()
			}
		}()
		return nil, fmt.Errorf("wait for another process that prepares the same layer: %w", context.Cause(ctx))
	}
}

// lockNamed locks the file that is at path once it is locked: others remove theirs. It
// makes none for a caller that has given up.
func lockNamed(ctx context.Context, path string, how int) (*os.File, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f, err := lockFile(path, how)
		if err != nil {
			return nil, err
		}
		locked, err := f.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Lstat(path); err == nil && os.SameFile(locked, named) {
				return f, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}
