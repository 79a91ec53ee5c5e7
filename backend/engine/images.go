package engine

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// defaultImages returns which images a language may use, best first: the caller's own, or
// the one that this project builds and then the official one.
func defaultImages(own map[string]string) func(language string) []string {
	return func(language string) []string {
		if name := own[language]; name != "" {
			return []string{name}
		}
		d, ok := defaultimage.For(language)
		if !ok {
			return nil
		}
		return []string{d.Name, d.Official}
	}
}

// A LanguageImage is what sandboxes of a language are made from when they name no image.
type LanguageImage struct {
	Name    string // of the best that the engine has, else of the one that is pulled; "" for none
	Present bool
	Size    int64 // in bytes, of one that is present
}

// LanguageImage returns what sandboxes of a language are made from when they name no image.
func (b *Backend) LanguageImage(ctx context.Context, language string) (LanguageImage, error) {
	var i LanguageImage
	for _, i.Name = range b.images.Default(language) {
		res, err := b.client.ImageInspect(ctx, i.Name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return i, fmt.Errorf("look for image %s: %w", i.Name, err)
		}
		i.Present, i.Size = true, res.Size
		break
	}
	return i, nil
}

// resolveImage finds, loads, pulls or builds the image of a sandbox, and prepares it for
// the environment. An image that was brought is returned with an error, too.
func (b *Backend) resolveImage(ctx context.Context, spec backend.Spec) (image.Image, error) {
	base, err := b.findImage(ctx, spec)
	if err != nil || b.options.Micromamba == nil {
		return base, err
	}
	img, err := b.prepared(ctx, spec, base)
	if err != nil {
		return base, b.explainImage(err)
	}
	return img, nil
}

func (b *Backend) findImage(ctx context.Context, spec backend.Spec) (image.Image, error) {
	if b.options.Build == nil {
		img, err := b.images.Resolve(ctx, spec.Image, spec.Language, spec.Progress)
		return img, b.explainImage(err)
	}
	if spec.Image != "" {
		return image.Image{}, fmt.Errorf("image %s: %w: only one of an image and a Dockerfile can be given", spec.Image, backend.ErrInvalid)
	}
	img, err := b.images.Build(ctx, image.Build(*b.options.Build), spec.Progress)
	return img, b.explainImage(err)
}

func (b *Backend) explainImage(err error) error { return b.explain("get the image", err) }

// dropImage removes what was brought only for a sandbox that did not come to be.
func (c *creation) dropImage(ctx context.Context) error {
	return c.backend.dropImage(context.WithoutCancel(ctx), c.spec.Image, c.image)
}

// dropImage removes an image that was pulled, loaded or built for one sandbox, unless it
// is a language's default, or to be kept, or in use by something else.
func (b *Backend) dropImage(ctx context.Context, asked string, img image.Image) error {
	if b.options.KeepImage || !img.Made || asked == "" && b.options.Build == nil {
		return nil
	}
	_, err := b.images.Remove(ctx, img)
	return err
}
