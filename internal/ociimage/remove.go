package ociimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Removed reports what Remove or Prune took out of the store.
type Removed struct {
	Names  []string `json:"names,omitempty"`  // names forgotten
	Images []string `json:"images,omitempty"` // ids
	Layers int      `json:"layers"`
	Temp   int      `json:"temp"`  // leftovers of pulls that died
	Bytes  int64    `json:"bytes"` // unpacked bytes of the layers
	// InUse are the ids of images that were to go but are used.
	InUse []string `json:"in_use,omitempty"`
}

// Remove forgets a name, or with an id all names of the image. An image without a
// name goes, with the layers that no other image has. It fails with
// backend.ErrLocked while the image is used or another one is being fetched, and
// with backend.ErrImageNotFound.
func (s *Store) Remove(ref string) (Removed, error) {
	var out Removed
	info, err := s.Inspect(ref)
	if err != nil {
		return out, err
	}
	unlock, err := s.lockRemove()
	if err != nil {
		return out, err
	}
	defer unlock()
	refs, err := s.refs()
	if err != nil {
		return out, err
	}
	named, name := info.matches(ref)
	var forget []refRecord
	rest := 0
	for _, r := range refs {
		switch {
		case r.ID != info.ID:
		case !named || r.Name == name:
			forget = append(forget, r)
		default:
			rest++
		}
	}
	hex := hexOf(info.ID)
	if rest == 0 {
		release, err := s.claim(hex)
		if err != nil {
			return out, fmt.Errorf("remove image %q: %w", ref, err)
		}
		defer release()
	}
	if err := s.forget(forget, &out); err != nil || rest > 0 {
		return out, err
	}
	if err := s.drop(hex, &out); err != nil {
		return out, err
	}
	return out, s.sweep(context.Background(), &out)
}

// Prune removes what nothing needs: images that lost their name, layers of no image,
// and what pulls that died have left; with all also every image that no process uses.
// An image in use always stays. It fails with backend.ErrLocked while an image is
// being fetched.
func (s *Store) Prune(ctx context.Context, all bool) (Removed, error) {
	var out Removed
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	unlock, err := s.lockRemove()
	if err != nil {
		return out, err
	}
	defer unlock()
	refs, err := s.refs()
	if err != nil {
		return out, err
	}
	byID := map[string][]refRecord{}
	for _, r := range refs {
		byID[hexOf(r.ID)] = append(byID[hexOf(r.ID)], r)
	}
	images, err := os.ReadDir(s.path("images"))
	if err != nil {
		return out, fmt.Errorf("prune the image store: %w", err)
	}
	for _, e := range images {
		if err := ctx.Err(); err != nil {
			return out, context.Cause(ctx)
		}
		hex := strings.TrimSuffix(e.Name(), ".json")
		if len(byID[hex]) > 0 && !all {
			continue
		}
		release, err := s.claim(hex)
		if errors.Is(err, backend.ErrLocked) {
			out.InUse = append(out.InUse, "sha256:"+hex)
			continue
		}
		if err != nil {
			return out, err
		}
		err = s.forget(byID[hex], &out)
		if err == nil {
			err = s.drop(hex, &out)
		}
		release()
		if err != nil {
			return out, err
		}
	}
	if out.Temp, err = s.clearTemp(); err != nil {
		return out, err
	}
	return out, s.sweep(ctx, &out)
}

// claim takes an image for removal; it fails with backend.ErrLocked when it is used.
func (s *Store) claim(hex string) (release func(), err error) {
	f, err := os.OpenFile(s.path("images", hex+".json"), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("lock an image of the store: %w", err)
	}
	ok, err := fileLock{f}.tryExclusive()
	if err == nil && !ok {
		err = fmt.Errorf("a sandbox uses it; close that first: %w", backend.ErrLocked)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func (s *Store) forget(refs []refRecord, out *Removed) error {
	for _, r := range refs {
		if err := os.Remove(s.refPath(r.Name, r.Platform)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a name from the image store: %w", err)
		}
		out.Names = append(out.Names, r.Name)
	}
	return nil
}

// drop removes the record of a claimed image; its layers go with sweep.
func (s *Store) drop(hex string, out *Removed) error {
	if err := os.Remove(s.path("images", hex+".json")); err != nil {
		return fmt.Errorf("remove an image from the store: %w", err)
	}
	out.Images = append(out.Images, "sha256:"+hex)
	return nil
}

// sweep removes the layers of no image. The caller holds the lock exclusively.
func (s *Store) sweep(ctx context.Context, out *Removed) error {
	needed := map[string]bool{}
	images, err := os.ReadDir(s.path("images"))
	if err != nil {
		return fmt.Errorf("sweep the image store: %w", err)
	}
	for _, e := range images {
		var rec imageRecord
		// A record that cannot be read may need any layer, so nothing goes.
		if err := readJSON(s.path("images", e.Name()), &rec); err != nil {
			return err
		}
		for _, l := range rec.Layers {
			needed[l] = true
		}
	}
	layers, err := os.ReadDir(s.path("layers"))
	if err != nil {
		return fmt.Errorf("sweep the image store: %w", err)
	}
	for _, e := range layers {
		if needed[e.Name()] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var rec layerRecord
		_ = readJSON(s.path("layers", e.Name(), "layer.json"), &rec) // only for the sum
		// Out of the way first: a layer directory that exists is complete.
		doomed := s.path("tmp", "removed-"+e.Name())
		if err := os.Rename(s.layerDir(e.Name()), doomed); err != nil {
			return fmt.Errorf("remove a layer: %w", err)
		}
		if err := os.RemoveAll(doomed); err != nil {
			return fmt.Errorf("remove a layer: %w", err)
		}
		if err := os.Remove(s.path("locks", "layer-"+e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a layer's lock: %w", err)
		}
		out.Layers++
		out.Bytes += rec.Size
	}
	return nil
}
