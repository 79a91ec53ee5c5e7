package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// preparedImages is the name of prepared images; their tags are digests of what they are
// made from.
const preparedImages = "llmsandbox-micromamba"

// prepared returns the image in which programs of the language are started in the
// environment. It is made from base unless that was done before.
func (b *Backend) prepared(ctx context.Context, spec backend.Spec, base image.Image) (image.Image, error) {
	m := b.options.Micromamba
	install := b.options.install(spec.Language, spec.Image != "" || b.options.Build != nil)
	tag, err := m.tag(base, install)
	if err != nil {
		return image.Image{}, err
	}
	img, err := b.images.Existing(ctx, tag)
	if errors.Is(err, backend.ErrImageNotFound) {
		img, err = b.prepareOnce(ctx, spec, base, install, tag)
	}
	if err != nil {
		return image.Image{}, fmt.Errorf("prepare %s in image %s: %w", m, base.Ref, err)
	}
	// It is known by the name that was asked for, and stays.
	img.Ref, img.Made = base.Ref, false
	return img, nil
}

// tag is the name of the image that is prepared from base.
func (m *Micromamba) tag(base image.Image, install []string) (string, error) {
	in, err := json.Marshal([]any{base.ID, user(base), m.enter(), install})
	if err != nil {
		return "", fmt.Errorf("name the image of %s: %w", m, err)
	}
	sum := sha256.Sum256(in)
	return preparedImages + ":" + hex.EncodeToString(sum[:16]), nil
}

// prepareOnce prepares images one at a time: a caller that has waited finds the other's image.
func (b *Backend) prepareOnce(ctx context.Context, spec backend.Spec, base image.Image, install []string, tag string) (image.Image, error) {
	if err := b.preparing.Lock(ctx); err != nil {
		return image.Image{}, err
	}
	defer b.preparing.Unlock()
	img, err := b.images.Existing(ctx, tag)
	if errors.Is(err, backend.ErrImageNotFound) {
		return b.prepare(ctx, spec, base, install, tag)
	}
	return img, err
}

// prepare installs, enters the environment, and makes the image.
func (b *Backend) prepare(ctx context.Context, spec backend.Spec, base image.Image, install []string, tag string) (_ image.Image, err error) {
	from := base
	if len(install) > 0 {
		if from, err = b.install(ctx, spec, base, install); err != nil {
			return image.Image{}, err
		}
		// Only its name goes: its files are the prepared image's.
		defer func() {
			_, rerr := b.images.Remove(context.WithoutCancel(ctx), from)
			err = errors.Join(err, rerr)
		}()
	}
	guest := b.guest(backend.Spec{}, from)
	out, err := b.enterImage(ctx, from, guest.Env)
	if err != nil {
		return image.Image{}, err
	}
	img, err := b.images.Derive(ctx, image.Commit{Tag: tag, Base: from, Env: mergeEnv(from.Env, out)})
	if errors.Is(err, backend.ErrInvalid) { // another process may have been faster
		if other, oerr := b.images.Existing(ctx, tag); oerr == nil {
			return other, nil
		}
	}
	return img, err
}

// install makes an image of the base with what a program installs in it, as the base's
// own user.
func (b *Backend) install(ctx context.Context, spec backend.Spec, base image.Image, argv []string) (image.Image, error) {
	var content strings.Builder
	content.WriteString("FROM " + base.ID + "\nRUN ")
	run := json.NewEncoder(&content)
	run.SetEscapeHTML(false) // it is shown as progress
	if err := run.Encode(argv); err != nil {
		return image.Image{}, err
	}
	return b.images.Build(ctx, image.Build{Content: content.String()}, spec.Progress)
}
