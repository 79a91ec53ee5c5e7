package ociimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

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
	sum := sha256.Sum256([]byte(name + "\n" + platform))
	return s.path("refs", hex.EncodeToString(sum[:])+".json")
}

func (s *Store) readRef(name, platform string) (refRecord, error) {
	var r refRecord
	err := readJSON(s.refPath(name, platform), &r)
	return r, err
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

func (s *Store) newImage(ref refRecord, rec imageRecord, held *os.File) *Image {
	img := &Image{
		Name: ref.Name, Digest: ref.Digest,
		ID: rec.ID, Platform: rec.Platform, Config: rec.Config, Size: rec.Size, Created: rec.Created,
		store: s, held: held,
	}
	for _, l := range rec.Layers {
		img.Layers = append(img.Layers, filepath.Join(s.layerDir(l), "fs"))
	}
	return img
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
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
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
