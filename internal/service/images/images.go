// Package images keeps the images that projects have made of their sandboxes, as files of this machine: what the local backend makes, and opens sandboxes
// from.
//
//	PROJECT/lock              held while the others change
//	PROJECT/NAME.json         an image, and which of the directories is its own
//	PROJECT/image-*/image.tar its layers; a process that makes them holds the directory
//
// A directory that no image has is what is left of one that was replaced while sandboxes used it, or of a process that was killed. It goes with the first change
// after that, or when a server starts. Images of several projects with the same contents are unpacked once, and stay as long as one of them is used.
package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// NamePattern is what names match: one or two parts, as those of images elsewhere.
const NamePattern = `^[a-z0-9][a-z0-9_.-]{0,62}(:[a-z0-9][a-z0-9_.-]{0,62})?$`

var names = regexp.MustCompile(NamePattern)

// An Image is one that a project has made of a sandbox.
type Image struct {
	Name    string            `json:"name"`
	ID      string            `json:"id"` // the digest of its configuration
	Created time.Time         `json:"created"`
	Size    int64             `json:"size"` // of its file
	Labels  map[string]string `json:"labels,omitempty"`
}

type record struct {
	Image

	Place string `json:"place"` // the directory's name
}

const (
	ending      = ".json"
	placePrefix = "image-"
	file        = "image.tar"
	maxRecord   = 1 << 20
)

// A Store keeps images in a directory. Its methods may be called concurrently, also by several processes.
type Store struct {
	dir      string
	unpacked *ociimage.Store
}

// New is a store in a directory, which it makes for this user alone. Where sandboxes were opened from images, the backend has them in the directory unpacked.
func New(dir, unpacked string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = layerstore.MakePrivate(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("the directory of projects' images: %w", err)
	}
	return &Store{dir, ociimage.NewStore(unpacked)}, nil
}

// project is the directory of a project.
func (s *Store) project(project string) string {
	sum := sha256.Sum256([]byte("images of " + project))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:]))
}

// Has reports whether the image that a reference means is in the store's directory.
func (s *Store) Has(ref string) bool {
	at, err := ociimage.Locate(ref)
	return err == nil && at.OnDisk() && strings.Contains(at.Name(), s.dir+string(filepath.Separator))
}

// Clean is a text without the paths of a project's images.
func (s *Store) Clean(project, text string) string {
	dir := regexp.QuoteMeta(s.project(project) + string(filepath.Separator))
	return regexp.MustCompile(`(docker-archive:)?`+dir+placePrefix+`[0-9]*/`+regexp.QuoteMeta(file)).ReplaceAllLiteralString(text, "of the project")
}

// Scratch is a file beside a project's images that has no name any more, so that it goes when it is closed.
func (s *Store) Scratch(project string) (*os.File, error) {
	dir := s.project(project)
	if err := layerstore.MakePrivate(dir); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, configdir.HalfPrefix+"*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // as a sweep may have done
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notFound(name string) error {
	return errclass.Errorf(llmsandbox.ErrImageNotFound, "the project has no image %.130q", name)
}

// CheckName fails with llmsandbox.ErrInvalid for what cannot be the name of an image.
func CheckName(name string) error {
	if names.MatchString(name) {
		return nil
	}
	return errclass.Errorf(llmsandbox.ErrInvalid, "image %.130q: a name is of a-z, 0-9, '_', '.' and '-', and begins with a letter or digit; it can have one tag like that, after a colon; both have at most 63 characters", name)
}

// List returns a project's images, sorted by name.
func (s *Store) List(project string) ([]Image, error) {
	records, err := read(s.project(project))
	list := make([]Image, 0, len(records))
	for i := range records {
		list = append(list, records[i].Image)
	}
	return list, err
}

// Find returns a project's image, and the file that sandboxes are opened from. It fails with llmsandbox.ErrImageNotFound.
func (s *Store) Find(project, name string) (Image, string, error) {
	r, err := readOne(s.project(project), name)
	return r.Image, filepath.Join(s.project(project), r.Place, file), err
}

// read returns the records in a project's directory, sorted by name.
func read(dir string) ([]record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []record
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ending)
		if !ok {
			continue
		}
		r, err := readOne(dir, name)
		if errors.Is(err, llmsandbox.ErrImageNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b record) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func readOne(dir, name string) (r record, err error) {
	if !names.MatchString(name) {
		return r, notFound(name) // as none can have that name
	}
	path := filepath.Join(dir, name+ending)
	text, err := configdir.ReadFile(path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, notFound(name)
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Name != name || !strings.HasPrefix(r.Place, placePrefix) || filepath.Base(r.Place) != r.Place) {
		err = errors.New("it is not the image's")
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return r, err
}

// change calls do while nothing else changes a project's directory.
func (s *Store) change(ctx context.Context, project string, do func(dir string) error) error {
	return s.changeIn(ctx, s.project(project), do)
}

func (s *Store) changeIn(ctx context.Context, dir string, do func(dir string) error) error {
	if err := layerstore.MakePrivate(dir); err != nil {
		return err
	}
	unlock, err := layerstore.Lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	return errors.Join(do(dir), unlock.Close())
}

// Make keeps an image of a project under its name, which another one must not have unless it is to be replaced. The function room is told how many there are,
// and fails where there may not be one more; commit makes the file, and returns the image's id. It fails with llmsandbox.ErrInvalid, and with
// llmsandbox.ErrImageExists.
func (s *Store) Make(ctx context.Context, project string, i Image, replace bool, room func(have int) error, commit func(file string) (id string, err error)) (_ Image, err error) {
	if err := CheckName(i.Name); err != nil {
		return i, err
	}
	r := record{Image: i}
	var held io.Closer
	err = s.change(ctx, project, func(dir string) error {
		have, err := s.sweep(dir)
		if err != nil {
			return err
		}
		switch _, err := readOne(dir, i.Name); {
		case err == nil && !replace:
			return exists(i.Name)
		case err == nil:
			have-- // the one that goes
		case !errors.Is(err, llmsandbox.ErrImageNotFound):
			return err
		}
		if err := room(have); err != nil {
			return err
		}
		place, err := os.MkdirTemp(dir, placePrefix)
		if err != nil {
			return err
		}
		r.Place = filepath.Base(place)
		held, err = layerstore.HoldDirectory(place)
		return err
	})
	if err != nil {
		return i, err
	}
	place := filepath.Join(s.project(project), r.Place)
	if r.ID, err = commit(filepath.Join(place, file)); err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(filepath.Join(place, file)); err == nil {
			r.Size = info.Size()
		}
	}
	after := context.WithoutCancel(ctx) // what was made is kept, or goes
	if err == nil {
		r.Created = time.Now().UTC()
		err = s.change(after, project, func(dir string) error { return write(dir, &r, replace) })
	}
	return r.Image, errors.Join(err, held.Close(), s.change(after, project, func(dir string) error {
		_, err := s.sweep(dir)
		return err
	}))
}

func exists(name string) error {
	return errclass.Errorf(llmsandbox.ErrImageExists, "the project has an image %s: choose another name, or have it replaced", name)
}

// write publishes a record. The caller has the lock.
func write(dir string, r *record, replace bool) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(text) > maxRecord {
		return fmt.Errorf("image %s: %w: its labels are too long", r.Name, llmsandbox.ErrInvalid)
	}
	path := filepath.Join(dir, r.Name+ending)
	if _, err := os.Lstat(path); !replace && !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, exists(r.Name))
	}
	return configdir.WriteFile(path, text, 0o600)
}

// Remove removes a project's image, with what the backend has unpacked of it. The function used reports whether a sandbox has an image that is called so on the
// backend. It fails with llmsandbox.ErrImageNotFound, and with llmsandbox.ErrImageInUse.
func (s *Store) Remove(ctx context.Context, project, name string, used func(ref string) (bool, error)) error {
	if _, err := readOne(s.project(project), name); err != nil {
		return err
	}
	return s.change(ctx, project, func(dir string) error {
		r, err := readOne(dir, name)
		if err != nil {
			return err
		}
		switch has, err := used(reference(filepath.Join(dir, r.Place))); {
		case err != nil:
			return err
		case has:
			return errclass.Errorf(llmsandbox.ErrImageInUse, "image %s: sandboxes that were made from it live: remove those first", name)
		}
		if err := os.Remove(filepath.Join(dir, name+ending)); err != nil {
			return err
		}
		_, err = s.sweep(dir)
		return err
	})
}

// Sweep removes what servers that were killed have left.
func (s *Store) Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.changeIn(ctx, filepath.Join(s.dir, e.Name()), func(dir string) error {
			_, err := s.sweep(dir)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// reference is what the backend calls the image in a directory.
func reference(place string) string { return "docker-archive:" + filepath.Join(place, file) }

// forget removes what the backend has unpacked of the file in a directory. It fails with backend.ErrLocked while that is used.
func (s *Store) forget(place string) error {
	_, err := s.unpacked.Remove(reference(place))
	if errors.Is(err, backend.ErrImageNotFound) { // no sandbox was opened from it
		return nil
	}
	return err
}

// sweep removes directories that no image has, and tells how many there are then. The caller has the lock.
func (s *Store) sweep(dir string) (have int, err error) {
	records, err := read(dir)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, layerstore.DeadPrefix), strings.HasPrefix(name, configdir.HalfPrefix): // of a process that was killed
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return 0, err
			}
		case !strings.HasPrefix(name, placePrefix):
		case slices.ContainsFunc(records, func(r record) bool { return r.Place == name }):
			have++
		default:
			err := s.forget(filepath.Join(dir, name))
			removed := false
			if err == nil {
				removed, err = layerstore.RemoveUnused(filepath.Join(dir, name), 0)
			}
			if err != nil && !errors.Is(err, backend.ErrLocked) {
				return 0, err
			}
			if !removed {
				have++
			}
		}
	}
	return have, nil
}
