// Package ociimage keeps OCI images on this machine without an engine or a daemon:
// it pulls them from a registry, or reads an OCI layout directory or a `docker save`
// tar, and unpacks each layer once into a directory that an overlay mount can use.
//
// # What a layer directory looks like
//
// Every layer directory is the lower directory of an overlay mounted with the option
// userxattr: a deleted name is a character device 0:0, an opaque directory has the
// extended attribute user.overlay.opaque. Kernels let ordinary users make both,
// so there is one format for root and rootless. Where root unpacks, opaque directories
// also have trusted.overlay.opaque, for mounts without userxattr.
//
// All files belong to the user who unpacked them; setuid and setgid bits, device
// files and every other extended attribute are left out.
//
// # Store
//
//	lock            flock: shared while pulling, exclusive while removing
//	locks/          one flock a layer, so that two pulls unpack it once
//	refs/           one file a name: which image it means
//	images/         one file an image; a process that uses the image holds its lock
//	layers/<hex>/   layer.json and fs/, named by the digest of the uncompressed tar
//	tmp/            what is being unpacked; renamed into layers/ when complete
//
// Lock order: lock, then one of locks/, then a file of images/.
//
// Any number of processes may use one store. A layer directory that exists is complete
// and on disk.
package ociimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

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
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the image store: %w", err)
		}
	}
	return nil
}

// openStoreLock opens the lock of all of the store, which it makes first.
func (s *Store) openStoreLock() (fileLock, error) {
	if err := s.prepare(); err != nil {
		return fileLock{}, err
	}
	return openLock(s.path("lock"))
}

// lockPull keeps removals away while an image is fetched. Where no other pull is
// under way it first clears what died in the middle of one.
func (s *Store) lockPull(ctx context.Context) (unlock func(), err error) {
	f, err := s.openStoreLock()
	if err != nil {
		return nil, err
	}
	if ok, err := f.tryExclusive(); err == nil && ok {
		if _, err := s.clearTemp(); err != nil {
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
	f, err := s.openStoreLock()
	if err != nil {
		return nil, err
	}
	return f.claim(fmt.Sprintf("an image is being fetched into %s; try again when that is done", s.dir))
}

// claim takes the lock; it fails with backend.ErrLocked and why when another process has
// it. When it fails, the file is closed.
func (l fileLock) claim(why string) (release func(), err error) {
	ok, err := l.tryExclusive()
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", why, backend.ErrLocked)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return func() { l.Close() }, nil
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

// An imageRecord is the file images/<hex of the id>.json.
type imageRecord struct {
	ID       string    `json:"id"`
	Platform string    `json:"platform"`
	Created  time.Time `json:"created"`
	Layers   []string  `json:"layers"` // hex of the diff ids, bottom first
	Size     int64     `json:"size"`
	Config   Config    `json:"config"`
}

// A refRecord is a file of refs/: what a name meant when it was fetched.
type refRecord struct {
	Name     string    `json:"name"`
	Platform string    `json:"platform"` // as asked for, not as found
	ID       string    `json:"id"`
	Digest   string    `json:"digest"`
	Pulled   time.Time `json:"pulled"`
	// Fingerprint identifies the directory or tar that was read, to notice when it changes.
	Fingerprint string `json:"fingerprint,omitempty"`
}

func (s *Store) refPath(name, platform string) string {
	return s.path("refs", digestOf([]byte(name+"\n"+platform)).Hex+".json")
}

// openImage takes the image's shared lock and reads its record. It fails with
// backend.ErrImageNotFound when the store does not have all of it.
func (s *Store) openImage(hex string) (imageRecord, *os.File, error) {
	var rec imageRecord
	missing := fmt.Errorf("image sha256:%s is not in the store: %w", hex, backend.ErrImageNotFound)
	f, err := os.OpenFile(s.path("images", hex+".json"), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, nil, missing
	}
	if err != nil {
		return rec, nil, fmt.Errorf("open an image of the store: %w", err)
	}
	// This lock is held exclusively only for the moment of a removal.
	lock := fileLock{f}
	if err := lock.shared(context.Background()); err != nil {
		return rec, nil, err
	}
	fail := func(err error) (imageRecord, *os.File, error) {
		f.Close()
		return imageRecord{}, nil, err
	}
	here, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	// It may have been removed, or written anew, before the lock was ours.
	there, err := os.Stat(f.Name())
	if err != nil || !os.SameFile(here, there) {
		return fail(missing)
	}
	if err := json.NewDecoder(f).Decode(&rec); err != nil {
		return fail(fmt.Errorf("image store: %s is damaged, remove it: %w", f.Name(), err))
	}
	for _, l := range rec.Layers {
		if _, err := os.Lstat(s.layerDir(l)); err != nil {
			return fail(missing)
		}
	}
	return rec, f, nil
}

// use takes a hold of the image that ref means.
func (s *Store) use(ref refRecord) (*Image, error) {
	rec, held, err := s.openImage(hexOf(ref.ID))
	if err != nil {
		return nil, err
	}
	img := &Image{
		Name: ref.Name, Digest: ref.Digest,
		ID: rec.ID, Platform: rec.Platform, Config: rec.Config, Size: rec.Size, Created: rec.Created, held: held,
	}
	for _, l := range rec.Layers {
		img.Layers = append(img.Layers, filepath.Join(s.layerDir(l), "fs"))
	}
	return img, nil
}

// hexOf is the hex part of a digest.
func hexOf(digest string) string {
	_, h, _ := strings.Cut(digest, ":")
	return h
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("image store: %s is damaged, remove it: %w", path, err)
	}
	return nil
}

// writeJSON writes the file at once: readers see all of it or none, and so does the
// machine after a crash. An image's record is never replaced, since others may hold
// its lock: publish is os.Link there and os.Rename elsewhere.
func (s *Store) writeJSON(path string, v any, publish func(from, to string) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.path("tmp"), "record-*")
	if err != nil {
		return fmt.Errorf("write to the image store: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = publish(f.Name(), path)
	}
	os.Remove(f.Name()) // after a rename there is nothing
	if err != nil {
		return fmt.Errorf("write to the image store: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename into dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write to the image store: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write to the image store: %w", err)
	}
	return nil
}

// An Image is an unpacked image that this process uses: as long as it is not
// released, no process removes it from the store. Its methods may be called
// concurrently.
type Image struct {
	// Name is the reference in full, e.g. "127.0.0.1:5000/tools:1".
	Name string
	// ID is the digest of the image's config; equal IDs are equal images.
	ID string
	// Digest is the digest of the manifest or index that Name meant when it was
	// fetched; for a `docker save` tar, which has none, it is ID.
	Digest string
	// Platform is e.g. "linux/amd64".
	Platform string
	// Layers are the unpacked directories, bottom first, for an overlay mounted
	// with userxattr. An image may have none. They must not be written to.
	Layers []string
	// Config is the image's own configuration.
	Config Config
	// Size is the unpacked size in bytes; layers shared with other images count.
	Size int64
	// Created is when the image was built, as it says itself.
	Created time.Time

	mu   sync.Mutex
	held *os.File
}

// Release ends the use of the image. It is idempotent.
func (i *Image) Release() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held == nil {
		return nil
	}
	err := i.held.Close()
	i.held = nil
	return err
}
