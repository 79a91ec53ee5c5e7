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
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// maxAbout bounds a description: a list of libraries is no longer.
const maxAbout = 1 << 20

// Read is [backend.Layers].Read.
func (s Store) Read(ctx context.Context, source string, w io.Writer) error {
	path, ok := s.layerOf(source)
	if !ok {
		return fmt.Errorf("%s: %w", source, backend.ErrLayerNotFound)
	}
	release, err := s.Hold(source)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: installing again brings it back", filepath.Base(path), backend.ErrLayerNotFound)
	}
	if err != nil {
		return err
	}
	return errors.Join(layertree.Pack(ctx, source, "", w), release())
}

// List is [backend.Layers].List.
func (s Store) List(ctx context.Context) ([]backend.LayerInfo, error) {
	entries, err := os.ReadDir(s.layers())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the layers: %w", err)
	}
	var layers []backend.LayerInfo
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !e.IsDir() || !ValidKey(e.Name()) {
			continue // a lock, a failure, or what is being made or removed
		}
		about, err := describe(s.path(e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w: llmsandbox cache rm %s removes it", e.Name(), err, e.Name())
		}
		layers = append(layers, about)
	}
	return layers, nil
}

func describe(path string) (backend.LayerInfo, error) {
	var about backend.LayerInfo
	f, err := os.Open(filepath.Join(path, aboutName))
	if err != nil {
		return about, err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxAbout)).Decode(&about); err != nil {
		return about, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return about, err
	}
	about.Key, about.LastUsed = filepath.Base(path), info.ModTime()
	alone, err := openAlone(path)
	if about.InUse = errors.Is(err, errBusy); about.InUse {
		return about, nil
	}
	if err != nil {
		return about, err
	}
	return about, alone.Close()
}

// Remove is [backend.Layers].Remove.
func (s Store) Remove(_ context.Context, key string) error {
	if !ValidKey(key) {
		return fmt.Errorf("layer %q: %w", key, backend.ErrLayerNotFound)
	}
	if _, err := os.Lstat(s.path(key)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("layer %q: %w", key, backend.ErrLayerNotFound)
	}
	removed, err := RemoveUnused(s.path(key), 0)
	if err == nil && !removed {
		err = fmt.Errorf("%w: a sandbox uses it", backend.ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("remove the layer %s: %w", key, err)
	}
	return nil
}

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
