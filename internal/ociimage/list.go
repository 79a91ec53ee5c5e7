package ociimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// Info describes an image of the store.
type Info struct {
	ID       string    `json:"id"`
	Names    []string  `json:"names"` // sorted; none after its name was given to another image
	Digest   string    `json:"digest,omitempty"`
	Platform string    `json:"platform"`
	Size     int64     `json:"size"`    // unpacked bytes, shared layers included
	Created  time.Time `json:"created"` // as the image says
	Pulled   time.Time `json:"pulled"`
	Layers   []string  `json:"layers"` // digests of the uncompressed layers, bottom first
	InUse    bool      `json:"in_use"`
	Config   Config    `json:"config"`
}

// List returns the images of the store, last fetched first. An empty or missing
// store has none.
func (s *Store) List() ([]Info, error) {
	refs, err := s.refs()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.path("images"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the image store: %w", err)
	}
	var list []Info
	for _, e := range entries {
		info, err := s.info(strings.TrimSuffix(e.Name(), ".json"), refs)
		if errors.Is(err, backend.ErrImageNotFound) {
			continue // removed meanwhile, or not complete
		}
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Pulled.After(list[j].Pulled) })
	return list, nil
}

// Inspect describes one image by a name it was fetched by, by its id, or by at
// least 8 digits of the id. It fails with backend.ErrImageNotFound.
func (s *Store) Inspect(ref string) (Info, error) {
	list, err := s.List()
	if err != nil {
		return Info{}, err
	}
	var found []Info
	for _, i := range list {
		if named, _ := i.matches(ref); named {
			return i, nil
		}
		if isIDPrefix(ref) && strings.HasPrefix(hexOf(i.ID), strings.TrimPrefix(ref, "sha256:")) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return Info{}, errclass.Errorf(backend.ErrImageNotFound, "image %q is not in the store", ref)
	case 1:
		return found[0], nil
	}
	return Info{}, fmt.Errorf("image %q: several ids begin so; write more digits: %w", ref, backend.ErrImageNotFound)
}

// matches reports whether ref is one of the image's names, and which.
func (i Info) matches(ref string) (bool, string) {
	full := ref
	if r, err := parseRef(ref); err == nil {
		full = r.name
	}
	for _, n := range i.Names {
		// A directory or tar that was removed is still listed by its name here.
		if n == ref || n == full || strings.TrimPrefix(strings.TrimPrefix(n, prefixLayout), prefixArchive) == ref {
			return true, n
		}
	}
	return false, ""
}

func isIDPrefix(ref string) bool {
	h := strings.TrimPrefix(ref, "sha256:")
	return len(h) >= 8 && len(h) <= 64 && isDigest("sha256:"+h+strings.Repeat("0", 64-len(h)))
}

func (s *Store) info(hex string, refs []refRecord) (Info, error) {
	rec, held, err := s.openImage(hex)
	if err != nil {
		return Info{}, err
	}
	held.Close()
	info := Info{ID: rec.ID, Platform: rec.Platform, Size: rec.Size, Created: rec.Created, Config: rec.Config}
	for _, l := range rec.Layers {
		info.Layers = append(info.Layers, "sha256:"+l)
	}
	for _, r := range refs {
		if r.ID == rec.ID {
			info.Names = append(info.Names, r.Name)
			if r.Pulled.After(info.Pulled) {
				info.Pulled, info.Digest = r.Pulled, r.Digest
			}
		}
	}
	info.Names = unique(info.Names)
	unlock, err := s.claim(hex)
	switch {
	case errors.Is(err, backend.ErrLocked):
		info.InUse = true
	case err != nil:
		return Info{}, err
	default:
		unlock()
	}
	return info, nil
}

func (s *Store) refs() ([]refRecord, error) {
	entries, err := os.ReadDir(s.path("refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the image store: %w", err)
	}
	var list []refRecord
	for _, e := range entries {
		var r refRecord
		err := readJSON(s.path("refs", e.Name()), &r)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

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
	return fileLock{f}.claim("a sandbox uses it; close that first")
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
