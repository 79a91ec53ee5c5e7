package local

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

	"golang.org/x/sys/unix"

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

var _ backend.LibraryKeeper = (*Backend)(nil)

func (d dirs) libraries() string { return filepath.Join(d.cache, "libraries") }

// isLibrary tells whether a folder holds the files of a layer of libraries.
func (d dirs) isLibrary(source string) bool {
	return filepath.Base(source) == libraryFiles && filepath.Dir(filepath.Dir(source)) == d.libraries()
}

// NoLibraries implements [backend.LibraryKeeper]: there is always a cache folder.
func (b *Backend) NoLibraries() error { return nil }

// Toolchain implements [backend.LibraryKeeper].
func (b *Backend) Toolchain(ctx context.Context, spec backend.Spec, program string, installed []string) (string, error) {
	print, err := b.Fingerprint(ctx, spec, program)
	if err != nil || print == "" || spec.Image != "" && spec.Image != "host" {
		return print, err
	}
	path, _, _ := strings.Cut(print, "\x00")
	return print + "\x00" + changes(filepath.Dir(filepath.Dir(path)), installed), nil
}

// changes tells when what lies at patterns was changed; relative ones are below prefix.
func changes(prefix string, patterns []string) string {
	var times strings.Builder
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(prefix, pattern)
		}
		found, _ := filepath.Glob(pattern) // a prefix that is a pattern itself matches nothing
		for _, path := range found {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintf(&times, "%s\x00%d\x00", path, info.ModTime().UnixNano())
			}
		}
	}
	return times.String()
}

// Library implements [backend.LibraryKeeper]. Processes that share the cache folder
// share the layers.
func (b *Backend) Library(ctx context.Context, about backend.LibraryLayer, fill func(ctx context.Context, dir string) error) (string, error) {
	if !validKey(about.Key) {
		return "", fmt.Errorf("layer of libraries %q: a key is of a-z, 0-9 and '-'", about.Key)
	}
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	l := layer{dir: d.libraries(), key: about.Key, retry: true}
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
	if about.Image == "" {
		about.Image = "host"
	}
	about.Size, about.Created = size.Bytes, time.Now()
	data, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(files, 0o755), os.WriteFile(filepath.Join(dir, libraryAbout), data, 0o600))
}

// ReadLibrary implements [backend.LibraryKeeper].
func (b *Backend) ReadLibrary(ctx context.Context, source string, w io.Writer) error {
	d, err := b.dirs()
	if err != nil {
		return err
	}
	if !d.isLibrary(source) {
		return fmt.Errorf("%s: %w", source, backend.ErrLibraryNotFound)
	}
	held, err := holdFolder(filepath.Dir(source))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: installing again brings it back", filepath.Base(filepath.Dir(source)), backend.ErrLibraryNotFound)
	}
	if err != nil {
		return err
	}
	defer held.Close()
	return layertree.Pack(ctx, source, "", w)
}

// Libraries implements [backend.LibraryKeeper].
func (b *Backend) Libraries(ctx context.Context) ([]backend.LibraryLayer, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.libraries())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the layers of libraries: %w", err)
	}
	var layers []backend.LibraryLayer
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !e.IsDir() || !validKey(e.Name()) {
			continue // a lock, or what is being made or removed
		}
		about, err := describeLibrary(filepath.Join(d.libraries(), e.Name()))
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
	dir, err := os.Open(path)
	if err != nil {
		return about, err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return about, err
	}
	about.Key, about.LastUsed = filepath.Base(path), info.ModTime()
	err = flock(dir, unix.LOCK_EX|unix.LOCK_NB)
	if about.InUse = errors.Is(err, unix.EWOULDBLOCK); about.InUse {
		err = nil
	}
	return about, err
}

// RemoveLibrary implements [backend.LibraryKeeper].
func (b *Backend) RemoveLibrary(_ context.Context, key string) error {
	d, err := b.dirs()
	if err != nil {
		return err
	}
	path := filepath.Join(d.libraries(), key)
	if !validKey(key) {
		return fmt.Errorf("layer of libraries %q: %w", key, backend.ErrLibraryNotFound)
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("layer of libraries %q: %w", key, backend.ErrLibraryNotFound)
	}
	removed, err := removeUnused(path, 0)
	if err == nil && !removed {
		err = fmt.Errorf("%w: a sandbox uses it", backend.ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("remove the layer of libraries %s: %w", key, err)
	}
	return nil
}
