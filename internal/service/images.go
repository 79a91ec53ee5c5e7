package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/service/images"
)

func isOwn(image string) bool { return strings.HasPrefix(image, apitypes.OwnImage) }

var errNoImages = fmt.Errorf("images: %w: projects have none", ErrNotAllowed)

// images is the store of projects' images; nil: they have none.
func (c *Config) images() (*images.Store, error) {
	if c.MaxImages == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	if c.Replica != nil {
		return nil, fmt.Errorf("service: Config.MaxImages: %w: the images of a server are files of its machine, and other servers would not find them: leave out Replica", llmsandbox.ErrUnsupported)
	}
	b := c.Sandbox.Backend
	if b == nil {
		b = local.New(nil)
	}
	unpacking, ok := b.(interface{ ImageDir() (string, error) })
	if !ok {
		return nil, fmt.Errorf("service: Config.MaxImages: %w: the %s backend does not remove images of sandboxes again, as the local one does", llmsandbox.ErrUnsupported, b.Name())
	}
	if c.ImageDir == "" {
		return nil, fmt.Errorf("service: Config.ImageDir: %w: images need a directory", llmsandbox.ErrInvalid)
	}
	unpacked, err := unpacking.ImageDir()
	if err != nil {
		return nil, err
	}
	store, err := images.New(c.ImageDir, unpacked)
	if err == nil {
		err = store.Sweep(context.Background())
	}
	return store, err
}

// boundOwnImage gives options the image that a request names, where it is one of the project, and refuses those that are other projects'.
func (s *Service) boundOwnImage(project, image string, o *llmsandbox.Options) (err error) {
	name, own := strings.CutPrefix(image, apitypes.OwnImage)
	switch {
	case own && s.images == nil:
		return errNoImages
	case own:
		_, o.Image, err = s.images.Find(project, name)
		return err
	case s.images == nil || o.Image == s.cfg.Sandbox.Image || slices.Contains(s.cfg.Images, o.Image):
		return nil
	case strings.HasPrefix(o.Image, "sha256:") || s.images.Has(o.Image): // which a * of the operator's stands for, too
		return fmt.Errorf("image: %w: it is named by its id, or a file of the server", ErrNotAllowed)
	}
	return nil
}

// notOpened is why a sandbox of a project could not be opened, with the names that the project gave its volumes and images.
func (s *Service) notOpened(project string, err error) error {
	return s.asImaged(project, asAsked(project, err))
}

// asImaged is an error with no path of a project's images.
func (s *Service) asImaged(project string, err error) error {
	if err == nil || s.images == nil {
		return err
	}
	text := s.images.Clean(project, err.Error())
	switch {
	case text == err.Error():
		return err
	case errors.Is(err, llmsandbox.ErrImageInvalid):
		s.cfg.Log.Warn("an image of a project cannot be used", "error", err)
		return errclass.Errorf(llmsandbox.ErrInvalid, "the image of the project cannot be used: it is damaged, or the server's own files, which it goes on top of, have changed since it was made: make it again")
	}
	return errclass.Of(err, errors.New(text))
}

// HasImages reports whether projects have images.
func (s *Service) HasImages() bool { return s.images != nil }

// Images returns a project's images, sorted by name.
func (s *Service) Images(project string) ([]images.Image, error) {
	if s.images == nil {
		return nil, nil
	}
	return s.images.List(project)
}

// Image returns a project's image. It fails with llmsandbox.ErrImageNotFound.
func (s *Service) Image(project, name string) (images.Image, error) {
	if s.images == nil {
		return images.Image{}, errclass.Errorf(llmsandbox.ErrImageNotFound, "the project has no image %.130q", name)
	}
	i, _, err := s.images.Find(project, name)
	return i, err
}

// Commit makes an image of a project's sandbox as llmsandbox.Sandbox.Commit does, and tells what is not in it. Of the image, Name and Labels are asked for; one of
// that name is replaced if replace is set. Where there is a check, the image is kept only if that succeeds. It waits for a place as programs do. It fails with ErrNotAllowed where projects have no images, with ErrQuota where
// the project has as many as it may, and with llmsandbox.ErrImageExists.
func (s *Service) Commit(ctx context.Context, project, id string, asked images.Image, replace bool, check func() error) (made images.Image, skipped []string, err error) {
	if s.images == nil {
		return made, nil, errNoImages
	}
	if err := checkLabels(asked.Labels); err != nil {
		return made, nil, err
	}
	h, err := s.get(ctx, project, id)
	if err != nil {
		return made, nil, err
	}
	leave, err := s.Enter(ctx, project)
	if err != nil {
		return made, nil, err
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	made, err = s.images.Make(ctx, project, asked, replace, s.cfg.imageQuota, func(file string) (string, error) {
		res, err := h.sandbox.Commit(ctx, file, nil)
		skipped = res.Skipped
		leave()
		if err == nil && check != nil {
			err = check()
		}
		return res.ID, err
	})
	return made, skipped, s.asImaged(project, err)
}

// CopyImage gives a project's image another name beside its own, as Commit gives it one.
func (s *Service) CopyImage(ctx context.Context, project, name, to string, replace bool) error {
	if s.images == nil {
		return errNoImages
	}
	i, from, err := s.images.Find(project, name)
	if err != nil {
		return err
	}
	i.Name = to
	_, err = s.images.Make(ctx, project, i, replace, s.cfg.imageQuota, func(file string) (string, error) { return i.ID, os.Link(from, file) })
	return s.asImaged(project, err)
}

// Scratch is a file for what an image of a project is to be made from. It goes when it is closed.
func (s *Service) Scratch(project string) (*os.File, error) {
	if s.images == nil {
		return nil, errNoImages
	}
	return s.images.Scratch(project)
}

func (c *Config) imageQuota(have int) error {
	if have < c.MaxImages {
		return nil
	}
	return fmt.Errorf("%w: the project has %d images, of at most %d, with those that are being made and those that were replaced and have sandboxes: remove one first", ErrQuota, have, c.MaxImages)
}

// RemoveImage removes a project's image, and frees what it has taken. It fails with llmsandbox.ErrImageNotFound, and with llmsandbox.ErrImageInUse while a sandbox
// has it.
func (s *Service) RemoveImage(ctx context.Context, project, name string) error {
	if s.images == nil {
		_, err := s.Image(project, name)
		return err
	}
	if err := s.awaitClosed(ctx); err != nil { // who has a program's result may remove its image
		return err
	}
	return s.images.Remove(ctx, project, name, func(ref string) (bool, error) {
		all, err := llmsandbox.List(ctx, s.cfg.Sandbox.Backend) // with those for one program, which have no project
		return slices.ContainsFunc(all, func(i backend.Info) bool { return i.Image == ref }), err
	})
}
