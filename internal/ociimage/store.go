package ociimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Store keeps images in a directory. Its methods may be called concurrently, and
// any number of processes may use one directory. The directory is made when the first
// image is fetched. Everything but Linux fails with backend.ErrUnsupported.
type Store struct {
	dir string
	// Limits bound each image fetched. Set them before the first use.
	Limits Limits
}

// NewStore returns the store in dir. It does not touch the disk.
func NewStore(dir string) *Store {
	return &Store{dir: dir, Limits: DefaultLimits}
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *Store) layerDir(hex string) string { return s.path("layers", hex) }

// prepare makes the store's directories. Others may pass through them but not list
// them: in a sandbox that root starts, the overlay is read by another user.
func (s *Store) prepare() error {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return fmt.Errorf("make the image store: %w", err)
	}
	for _, d := range []string{"", "locks", "refs", "images", "layers", "tmp"} {
		mode := fs.FileMode(0o700)
		if d == "" || d == "layers" {
			mode = 0o711
		}
		err := os.Mkdir(s.path(d), mode)
		if err == nil {
			err = os.Chmod(s.path(d), mode) // whatever the umask is
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("make the image store: %w", err)
		}
	}
	return nil
}

// lockPull keeps removals away while an image is fetched. Where no other pull is
// under way it first clears what died in the middle of one.
func (s *Store) lockPull(ctx context.Context) (unlock func(), err error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	f, err := openLock(s.path("lock"))
	if err != nil {
		return nil, err
	}
	if ok, err := f.tryExclusive(); err == nil && ok {
		_, err = s.clearTemp()
		if err != nil {
			f.Close()
			return nil, err
		}
	}
	// A failed try says nothing that the wait below would not say better.
	if err := f.shared(ctx); err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lockRemove keeps pulls away while something is removed.
func (s *Store) lockRemove() (unlock func(), err error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	f, err := openLock(s.path("lock"))
	if err != nil {
		return nil, err
	}
	ok, err := f.tryExclusive()
	if err == nil && !ok {
		err = fmt.Errorf("an image is being fetched into %s; try again when that is done: %w", s.dir, backend.ErrLocked)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// clearTemp removes what dead processes left. The caller holds the lock exclusively,
// so nothing in tmp belongs to a live one.
func (s *Store) clearTemp() (removed int, err error) {
	entries, err := os.ReadDir(s.path("tmp"))
	if err != nil {
		return 0, fmt.Errorf("clear the image store's leftovers: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(s.path("tmp", e.Name())); err != nil {
			return removed, fmt.Errorf("clear the image store's leftovers: %w", err)
		}
		removed++
	}
	return removed, nil
}
