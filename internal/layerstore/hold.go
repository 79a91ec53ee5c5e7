package layerstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

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
		h, err := HoldFolder(path)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		held = append(held, h)
	}
	return release, nil
}

// HoldFolder keeps a prepared directory, of a store or not, from being removed by
// [RemoveUnused] until it is closed.
func HoldFolder(path string) (io.Closer, error) {
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
