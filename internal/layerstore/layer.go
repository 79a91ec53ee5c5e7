package layerstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

const (
	aboutName = "about.json"
	filesName = "files"
	// usedAccuracy is how exactly the last use of a layer is known, so that not every
	// use writes to the disk.
	usedAccuracy = time.Hour
)

// Get is [backend.Layers].Get. The source that it returns is a directory of this machine.
func (s Store) Get(ctx context.Context, about backend.LayerInfo, fill func(ctx context.Context, dir string) error) (string, error) {
	if !ValidKey(about.Key) {
		return "", fmt.Errorf("layer %q: a key is of a-z, 0-9 and '-'", about.Key)
	}
	if source, known, err := s.look(about.Key); known || err != nil {
		return source, err
	}
	return s.make(ctx, about, fill)
}

// look reports what is known of a layer: its source, or "" where it could not be made not long
// ago. It is one stat as long as all is well.
func (s Store) look(key string) (source string, known bool, err error) {
	path := s.path(key)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("look for a layer: %w", err)
	case !info.IsDir():
		return "", time.Since(info.ModTime()) < backend.CacheRetry, nil
	}
	MarkUsed(path, info)
	return filepath.Join(path, filesName), true, nil
}

// make makes a layer. Its maker holds KEY.lock and fills KEY.new.
func (s Store) make(ctx context.Context, about backend.LayerInfo, fill func(context.Context, string) error) (source string, err error) {
	// All who reach its files may write to them, so no other user may reach them.
	if err := os.Mkdir(s.layers(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the folder of layers: %w", err)
	}
	path := s.path(about.Key)
	lock, err := Lock(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, dropLock(lock)) }()
	if source, known, err := s.look(about.Key); known || err != nil {
		return source, err // another maker was faster
	}
	half := path + ".new"
	// What a maker that died has left, and the note of an older failure.
	if err := errors.Join(os.RemoveAll(half), removeFile(path), os.Mkdir(half, 0o700)); err != nil {
		return "", fmt.Errorf("make a layer: %w", err)
	}
	if err = fillLayer(ctx, half, about, fill); err == nil {
		if err = errors.Join(os.Chmod(half, 0o755), os.Rename(half, path)); err == nil {
			return filepath.Join(path, filesName), nil
		}
	}
	err = errors.Join(err, os.RemoveAll(half))
	if about.Cache != "" && ctx.Err() == nil {
		err = errors.Join(err, os.WriteFile(path, []byte(err.Error()+"\n"), 0o600))
	}
	return "", err
}

// fillLayer has fill make the files of a layer below dir, and describes them.
func fillLayer(ctx context.Context, dir string, about backend.LayerInfo, fill func(context.Context, string) error) error {
	files := filepath.Join(dir, filesName)
	if err := os.Mkdir(files, 0o755); err != nil {
		return err
	}
	if err := fill(ctx, files); err != nil {
		return err
	}
	size, err := layertree.Measure(files)
	if err != nil {
		return err
	}
	about.Size, about.Created = size.Bytes, time.Now()
	data, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(files, 0o755), os.WriteFile(filepath.Join(dir, aboutName), data, 0o600))
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Hold keeps those of the sources that are layers of this store from being removed, until
// release is called, once. Other sources, which are the caller's own directories, are passed
// over.
func (s Store) Hold(sources ...string) (release func() error, err error) {
	var held []io.Closer
	release = func() error {
		var err error
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	for _, source := range sources {
		path, ok := s.layerOf(source)
		if !ok {
			continue
		}
		h, err := HoldDirectory(path)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		held = append(held, h)
	}
	return release, nil
}

// HoldDirectory keeps a prepared directory, of a store or not, from being removed by
// [RemoveUnused] until it is closed.
func HoldDirectory(path string) (io.Closer, error) {
	f, err := openHeld(path)
	if err == nil {
		if err = sameStill(f, path); err == nil {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("use what was prepared for the sandbox: %w: trying again prepares it anew", err)
}

// sameStill makes sure that an open directory is still the one of that name, and notes that it
// is in use.
func sameStill(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// Between its opening and its locking a collection may have taken it.
	now, err := os.Lstat(path)
	if err == nil && !os.SameFile(info, now) {
		err = &os.PathError{Op: "lock", Path: path, Err: os.ErrNotExist}
	}
	if err != nil {
		return err
	}
	MarkUsed(path, info)
	return nil
}

// MarkUsed notes, by the time of a prepared directory, that it is in use. Only the choice
// of what to remove some day depends on it.
func MarkUsed(path string, info os.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > usedAccuracy {
		_ = os.Chtimes(path, now, now)
	}
}
