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

// Collect removes the layers that nobody holds and that were not used for so long, and
// what makers that died have left. note is told of each, whose kind is "layer" or
// "libraries", that was removed or could not be.
func (s Store) Collect(ctx context.Context, unused time.Duration, note func(kind, path string, err error)) error {
	for _, l := range []struct{ kind, dir string }{{"layer", s.layers()}, {"libraries", s.libraries()}} {
		err := collectFolder(ctx, l.dir, unused, func(path string, removed bool, err error) {
			if removed || err != nil {
				note(l.kind, path, err)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func collectFolder(ctx context.Context, dir string, unused time.Duration, note func(path string, removed bool, err error)) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path := filepath.Join(dir, e.Name())
		maker, half := strings.CutSuffix(path, ".new")
		if !half {
			maker, half = strings.CutSuffix(path, ".lock")
		}
		switch {
		case half:
			removed, err := collectMaker(ctx, maker)
			note(maker, removed, err)
		case strings.HasPrefix(e.Name(), DeadPrefix):
			note(path, true, os.RemoveAll(path))
		default: // a layer, or the note that it failed
			removed, err := RemoveUnused(path, unused)
			note(path, removed, err)
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

// RemoveUnused removes a prepared folder or file, of a store or not, that was not used for
// so long and that nobody holds; removed is false when it stays.
func RemoveUnused(path string, unused time.Duration) (removed bool, err error) {
	info, err := os.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < unused {
		return false, nil // a folder that just went away is not unused either
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
		// Nobody finds a half-removed one.
		gone := filepath.Join(filepath.Dir(path), DeadPrefix+filepath.Base(path))
		if err := os.Rename(path, gone); err != nil {
			return false, err
		}
		path = gone
	}
	return true, os.RemoveAll(path)
}
