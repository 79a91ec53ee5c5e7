// Package image looks after the images of a container engine with the Docker API
// (Docker from 20.10, Podman from 4): it finds, pulls, loads, builds, commits and removes
// them.
//
// What a name means is what it means to the embedded backend too (see
// [github.com/llmsandbox/llmsandbox/internal/ociimage.Locate]): a directory or a file
// here, else a name that the engine knows or can pull.
//
// Whatever is brought to the engine says so in [Image.Made], and only that is ever
// removed by [Store.Remove]. Names that this package gives to images:
//
//	llmsandbox-load:<digest>   loaded from a directory or a file; the config's digest
//	llmsandbox-build:<digest>  built; the digest of all that went in
//
// What a registry, a build or a container says is not trusted: it is read line by line
// with a limit, and cleaned before it gets into an error or a progress message.
package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/flight"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// A Store is the images of one engine. Its methods may be called concurrently; two calls
// that need the same image fetch it once. It must not be copied.
type Store struct {
	Client *client.Client
	// Auth returns the X-Registry-Auth value for a reference in full, "" for none. Nil
	// means that nothing has credentials.
	Auth func(ctx context.Context, ref string) (string, error)
	// Default returns the images a language may use, best first; the last is one that
	// can be pulled. Nil, or an empty list, means that an image must be named.
	Default func(language string) []string

	flights flight.Group[string, Image]

	mu    sync.Mutex
	arch  string            // of the engine, once it was asked
	loads map[string]string // what was loaded: its place and fingerprint, to its tag
}

// An Image is an image that the engine has.
type Image struct {
	ID string // as the engine knows it, "sha256:..."
	// Ref is the name it was found under; for one known by its id only, the id.
	Ref     string
	Env     []string
	User    string
	Workdir string
	Arch    string // as GOARCH
	OS      string
	// Committed is the directory with the files that a committed sandbox had in its working
	// directory; "" for other images.
	Committed string
	root      error // that it is no root file system; nil: it is
	// Made says that this call brought it to the engine under Ref: it was not there.
	Made bool
}

// once shares work for the same key among those who call at once. Of several callers only
// the one that started it gets an image that is marked as made.
func (s *Store) once(ctx context.Context, key string, progress func(backend.Progress), work func(context.Context, func(backend.Progress)) (Image, error)) (Image, error) {
	img, joined, err := s.flights.Do(ctx, key, progress, work)
	img.Made = img.Made && !joined
	return img, err
}

// inspect asks the engine for an image that it has. The name must be valid. When it has
// none the error is errdefs.IsNotFound.
func (s *Store) inspect(ctx context.Context, name string) (Image, error) {
	res, err := s.Client.ImageInspect(ctx, name)
	if err != nil {
		return Image{}, err
	}
	img := Image{ID: res.ID, Ref: name, Arch: res.Architecture, OS: res.Os}
	if res.Config != nil {
		img.Env, img.User, img.Workdir = res.Config.Env, res.Config.User, res.Config.WorkingDir
		img.Committed, img.root = res.Config.Labels[ociimage.CommittedLabel], ociimage.NeedsRoot(res.Config.Labels)
	}
	return img, nil
}

// usable is inspect of an image that a sandbox can be made from; found reports whether
// there is one at all.
func (s *Store) usable(ctx context.Context, name string) (img Image, found bool, err error) {
	img, err = s.inspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
		return Image{}, false, nil
	case err != nil:
		return Image{}, false, fmt.Errorf("ask the engine for image %s: %w", name, err)
	}
	if img.root != nil {
		return img, true, fmt.Errorf("image %s: %w", name, img.root)
	}
	return img, true, checkPlatform(img)
}

// checkPlatform refuses images that there is no agent for.
func checkPlatform(img Image) error {
	if img.OS == "linux" && (img.Arch == "amd64" || img.Arch == "arm64") {
		return nil
	}
	return fmt.Errorf("image %s is for %s, and sandboxes run linux/amd64 and linux/arm64 only: name an image for one of these: %w",
		img.Ref, clean(img.OS+"/"+img.Arch), backend.ErrImageInvalid)
}

// engineArch is the engine's architecture, which need not be this machine's.
func (s *Store) engineArch(ctx context.Context) (string, error) {
	s.mu.Lock()
	arch := s.arch
	s.mu.Unlock()
	if arch != "" {
		return arch, nil
	}
	v, err := s.Client.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the engine for its architecture: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arch = v.Arch
	return v.Arch, nil
}

// Resolve returns the image of that name: the engine's own when it has it, which costs
// one question, else pulled or loaded. An empty name is the language's default: the
// first candidate the engine has, else the last is pulled. progress may be nil; it is
// never called concurrently and must not block.
//
// Errors wrap backend.ErrImageNotFound when there is no such image or it cannot be
// fetched, and backend.ErrImageInvalid when it is damaged, for another platform, or
// refused. After an error nothing of the image has a name on the engine.
func (s *Store) Resolve(ctx context.Context, name, language string, progress func(backend.Progress)) (Image, error) {
	switch name {
	case "":
		return s.resolveDefault(ctx, language, progress)
	case "host":
		return Image{}, fmt.Errorf("image host: an engine's container cannot use the host's own toolchains, only the local backend can: name an image, or leave it out for the language's default: %w", backend.ErrImageInvalid)
	}
	place, err := ociimage.Locate(name)
	if err != nil {
		return Image{}, err
	}
	if place.OnDisk() {
		return s.load(ctx, place, progress)
	}
	name = strings.TrimPrefix(name, "docker://")
	if _, err := reference.ParseAnyReference(name); err != nil {
		return Image{}, fmt.Errorf("image %s: it is no folder or file here, and no valid reference (%w): %w", clean(name), err, backend.ErrImageNotFound)
	}
	img, found, err := s.usable(ctx, name)
	if found || err != nil {
		return img, err
	}
	return s.pull(ctx, name, progress)
}

// Existing returns an image that the engine has; nothing is pulled. Its error wraps
// backend.ErrImageNotFound when the engine has none of that name.
func (s *Store) Existing(ctx context.Context, name string) (Image, error) {
	img, found, err := s.usable(ctx, name)
	if err == nil && !found {
		err = fmt.Errorf("image %s: %w: the engine does not have it", clean(name), backend.ErrImageNotFound)
	}
	return img, err
}

func (s *Store) resolveDefault(ctx context.Context, language string, progress func(backend.Progress)) (Image, error) {
	var list []string
	if s.Default != nil {
		list = s.Default(language)
	}
	if len(list) == 0 {
		return Image{}, fmt.Errorf("language %q has no default image here: name one: %w", language, backend.ErrImageNotFound)
	}
	last := len(list) - 1
	for _, name := range list[:last] {
		img, found, err := s.usable(ctx, name)
		if found || err != nil {
			return img, err
		}
	}
	return s.Resolve(ctx, list[last], language, progress)
}

// Remove removes an image that one of this package's calls brought to the engine, as
// [Image.Made] says, and nothing else: an image that was there before, that a user
// gave another name, or that a container uses, stays, and that is no error. It returns why
// the image is still there; "" when it is gone.
func (s *Store) Remove(ctx context.Context, img Image) (kept string, err error) {
	if !img.Made {
		return "it was there before", nil
	}
	fail := func(err error) (string, error) {
		if errdefs.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("remove image %s: %w", img.Ref, err)
	}
	now, err := s.Client.ImageInspect(ctx, img.Ref)
	switch {
	case err != nil:
		return fail(err)
	case now.ID != img.ID:
		return "its name means another image now", nil
	case img.Ref == img.ID && len(now.RepoTags) > 0:
		return "it was given a name", nil
	}
	// Without force the engine keeps what is used. By its name, an image that has others
	// loses only this one.
	_, err = s.Client.ImageRemove(ctx, img.Ref, client.ImageRemoveOptions{PruneChildren: true})
	if errdefs.IsConflict(err) {
		return clean(err.Error()), nil
	}
	if err == nil {
		// Podman does not always report what it deleted.
		_, err = s.Client.ImageInspect(ctx, img.ID)
	}
	if err != nil {
		return fail(err)
	}
	return "it has other names", nil
}

// joined is err with what went wrong while cleaning up after it.
func joined(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("clean up: %w", cleanup))
}
