package layerstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// DeadPrefix begins the name of what is being removed.
const DeadPrefix = ".dead-"

// Collect removes the layers that no process holds and that were not used for so long, and
// what makers that died have left. note gets reports of each that was removed or could not be.
func (s Store) Collect(ctx context.Context, unused time.Duration, note func(path string, err error)) error {
	entries, err := os.ReadDir(s.layers())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path, removed := s.path(e.Name()), true
		var err error
		maker, half := strings.CutSuffix(path, ".new")
		if !half {
			maker, half = strings.CutSuffix(path, ".lock")
		}
		switch {
		case half:
			path = maker
			removed, err = collectMaker(ctx, maker)
		case strings.HasPrefix(e.Name(), DeadPrefix):
			err = os.RemoveAll(path)
		default: // a layer, or the note that it failed
			removed, err = RemoveUnused(path, unused)
		}
		if removed || err != nil {
			note(path, err)
		}
	}
	return nil
}

// collectMaker removes what the maker of the layer at path has left, if it is dead.
func collectMaker(ctx context.Context, path string) (removed bool, err error) {
	lock, err := lockNamed(ctx, path+".lock", false)
	if errors.Is(err, errBusy) {
		return false, nil // it lives
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, dropLock(lock)) }()
	if _, err := os.Lstat(path + ".new"); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, os.RemoveAll(path + ".new")
}

// RemoveUnused removes a prepared directory or file, of a store or not, that was not used for
// so long and that no process holds; removed is false when it stays.
func RemoveUnused(path string, unused time.Duration) (removed bool, err error) {
	info, err := os.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < unused {
		return false, nil // a directory that just went away is not unused either
	}
	f, err := openAlone(path)
	if errors.Is(err, errBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if !strings.HasPrefix(filepath.Base(path), DeadPrefix) {
		// So that no process finds a half-removed one.
		gone := filepath.Join(filepath.Dir(path), DeadPrefix+filepath.Base(path))
		if err := os.Rename(path, gone); err != nil {
			return false, err
		}
		path = gone
	}
	return true, os.RemoveAll(path)
}
