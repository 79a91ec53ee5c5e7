package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// A Removal says what Remove did. Its zero value: nothing was there to remove.
type Removal struct {
	Untagged []string // names taken away
	Deleted  []string // ids of images and layers that are gone
	// Kept is why the image is still there; "" when it is gone.
	Kept string
}

// Remove removes an image that one of this package's calls brought to the engine, as
// [Image.Made] says, and nothing else: an image that was there before, that a user
// gave another name, or that a container uses, stays, and that is no error.
func (s *Store) Remove(ctx context.Context, img Image) (Removal, error) {
	if !img.Made {
		return Removal{Kept: "it was there before"}, nil
	}
	now, err := s.Client.ImageInspect(ctx, img.Ref)
	switch {
	case errdefs.IsNotFound(err):
		return Removal{}, nil
	case err != nil:
		return Removal{}, fmt.Errorf("remove image %s: %w", img.Ref, err)
	case now.ID != img.ID:
		return Removal{Kept: "its name means another image now"}, nil
	case img.Ref == img.ID && len(now.RepoTags) > 0:
		return Removal{Kept: "it was given a name"}, nil
	}
	// Without force the engine keeps what is used. By its name, an image that has others
	// loses only this one.
	res, err := s.Client.ImageRemove(ctx, img.Ref, client.ImageRemoveOptions{PruneChildren: true})
	switch {
	case errdefs.IsNotFound(err):
		return Removal{}, nil
	case errdefs.IsConflict(err):
		return Removal{Kept: clean(err.Error())}, nil
	case err != nil:
		return Removal{}, fmt.Errorf("remove image %s: %w", img.Ref, err)
	}
	var r Removal
	for _, item := range res.Items {
		if item.Untagged != "" {
			r.Untagged = append(r.Untagged, item.Untagged)
		}
		if item.Deleted != "" {
			r.Deleted = append(r.Deleted, item.Deleted)
		}
	}
	if len(r.Deleted) > 0 {
		return r, nil
	}
	// Podman does not always report what it deleted.
	_, err = s.Client.ImageInspect(ctx, img.ID)
	switch {
	case errdefs.IsNotFound(err):
		return r, nil
	case err != nil:
		return r, fmt.Errorf("remove image %s: look whether it is gone: %w", img.Ref, err)
	}
	r.Kept = "it has other names"
	return r, nil
}

// joined is err with what went wrong while cleaning up after it.
func joined(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("clean up: %w", cleanup))
}
