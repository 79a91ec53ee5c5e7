package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

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
