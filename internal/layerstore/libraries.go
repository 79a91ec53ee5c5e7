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

// A layer of libraries is a folder with its description and its files.
const (
	libraryAbout = "about.json"
	libraryFiles = "files"
	// maxAbout bounds a description: a list of libraries is no longer.
	maxAbout = 1 << 20
)

// Library is [backend.LibraryKeeper].Library. The source that it returns is a folder of
// this machine.
func (s Store) Library(ctx context.Context, about backend.LibraryLayer, fill func(ctx context.Context, dir string) error) (string, error) {
	if !ValidKey(about.Key) {
		return "", fmt.Errorf("layer of libraries %q: a key is of a-z, 0-9 and '-'", about.Key)
	}
	l := layer{dir: s.libraries(), key: about.Key, retry: true}
	path, known, err := l.look()
	if err == nil && !known {
		path, err = l.make(ctx, func(ctx context.Context, dir string) error { return fillLibrary(ctx, dir, about, fill) })
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(path, libraryFiles), nil
}

func fillLibrary(ctx context.Context, dir string, about backend.LibraryLayer, fill func(context.Context, string) error) error {
	files := filepath.Join(dir, libraryFiles)
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
	return errors.Join(os.Chmod(files, 0o755), os.WriteFile(filepath.Join(dir, libraryAbout), data, 0o600))
}

// ReadLibrary is [backend.LibraryKeeper].ReadLibrary.
func (s Store) ReadLibrary(ctx context.Context, source string, w io.Writer) error {
	if !s.isLibrary(source) {
		return fmt.Errorf("%s: %w", source, backend.ErrLibraryNotFound)
	}
	release, err := s.Hold(source)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: installing again brings it back", filepath.Base(filepath.Dir(source)), backend.ErrLibraryNotFound)
	}
	if err != nil {
		return err
	}
	return errors.Join(layertree.Pack(ctx, source, "", w), release())
}

// Libraries is [backend.LibraryKeeper].Libraries.
func (s Store) Libraries(ctx context.Context) ([]backend.LibraryLayer, error) {
	entries, err := os.ReadDir(s.libraries())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the layers of libraries: %w", err)
	}
	var layers []backend.LibraryLayer
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !e.IsDir() || !ValidKey(e.Name()) {
			continue // a lock, or what is being made or removed
		}
		about, err := describeLibrary(filepath.Join(s.libraries(), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err != nil {
			return nil, fmt.Errorf("layer of libraries %s: %w: llmsandbox cache rm %s removes it", e.Name(), err, e.Name())
		}
		layers = append(layers, about)
	}
	return layers, nil
}

func describeLibrary(path string) (backend.LibraryLayer, error) {
	var about backend.LibraryLayer
	f, err := os.Open(filepath.Join(path, libraryAbout))
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

// RemoveLibrary is [backend.LibraryKeeper].RemoveLibrary.
func (s Store) RemoveLibrary(_ context.Context, key string) error {
	if !ValidKey(key) {
		return fmt.Errorf("layer of libraries %q: %w", key, backend.ErrLibraryNotFound)
	}
	path := filepath.Join(s.libraries(), key)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("layer of libraries %q: %w", key, backend.ErrLibraryNotFound)
	}
	removed, err := RemoveUnused(path, 0)
	if err == nil && !removed {
		err = fmt.Errorf("%w: a sandbox uses it", backend.ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("remove the layer of libraries %s: %w", key, err)
	}
	return nil
}
