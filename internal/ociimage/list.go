package ociimage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
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
		return Info{}, fmt.Errorf("image %q is not in the store; `llmsandbox image list` shows what is: %w", ref, backend.ErrImageNotFound)
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
	return len(h) >= 8 && len(h) <= 64 && isHex64(h+strings.Repeat("0", 64-len(h)))
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
