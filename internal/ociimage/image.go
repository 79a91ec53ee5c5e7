package ociimage

import (
	"os"
	"sync"
	"time"
)

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

	store *Store
	mu    sync.Mutex
	held  *os.File
}

// Acquire takes another, independent hold of the image. It fails with
// backend.ErrImageNotFound when the image was released and removed meanwhile.
func (i *Image) Acquire() (*Image, error) {
	rec, held, err := i.store.openImage(hexOf(i.ID))
	if err != nil {
		return nil, err
	}
	return i.store.newImage(refRecord{Name: i.Name, Digest: i.Digest}, rec, held), nil
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
