package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
)

// pull fetches an image that the engine does not have.
func (s *Store) pull(ctx context.Context, name string, progress func(backend.Progress)) (Image, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil || strings.HasPrefix(name, "sha256:") {
		return Image{}, fmt.Errorf("image %s: the engine has no image of that id: %w", name, backend.ErrImageNotFound)
	}
	full := reference.TagNameOnly(named).String()
	return s.flights.do(ctx, "pull "+full, progress, func(ctx context.Context, report func(backend.Progress)) (Image, error) {
		if err := s.fetch(ctx, full, report); err != nil {
			return Image{}, err
		}
		img, found, err := s.usable(ctx, full)
		if err == nil && !found {
			err = fmt.Errorf("image %s: the engine pulled it without an error and does not have it: it was removed meanwhile, or its store is broken: %w", full, backend.ErrImageNotFound)
		}
		if err != nil {
			if found {
				img.Made = true
				_, dropErr := s.Remove(context.WithoutCancel(ctx), img)
				err = joined(err, dropErr)
			}
			return Image{}, err
		}
		img.Ref, img.Made = reference.FamiliarString(reference.TagNameOnly(named)), true
		return img, nil
	})
}

func (s *Store) fetch(ctx context.Context, full string, report func(backend.Progress)) error {
	var options client.ImagePullOptions
	if s.Auth != nil {
		auth, err := s.Auth(ctx, full)
		if err != nil {
			return fmt.Errorf("image %s: credentials for its registry: %w", full, err)
		}
		options.RegistryAuth = auth
	}
	res, err := s.Client.ImagePull(ctx, full, options)
	if err != nil {
		return pullError(ctx, full, err)
	}
	defer res.Close()
	m := newMeter(full, report)
	if err := eachMessage(res, m.see); err != nil {
		return pullError(ctx, full, err)
	}
	m.send()
	return nil
}

// advice finds, by an engine's message, what a failed pull means and what can be done. The
// first that fits counts. Engines give no codes for most of these.
var advice = []struct {
	words []string
	kind  error
	do    string
}{
	{[]string{"verification failed", "did not match", "does not match", "unexpected commit digest", "failed size validation", "invalid checksum"}, backend.ErrImageInvalid,
		"what the registry sent is not what it says it is: push the image again, or use another registry"},
	{[]string{"no matching manifest", "no match for platform", "no image found in image index"}, backend.ErrImageInvalid,
		"the image is not offered for the engine's platform: use one that is"},
	{[]string{"unauthorized", "denied", "authentication required", "no basic auth credentials", "invalid username/password"}, backend.ErrImageNotFound,
		"the registry refuses access: check the name, and log in with `docker login` or `podman login`"},
	{[]string{"not found", "manifest unknown", "name unknown", "does not exist"}, backend.ErrImageNotFound,
		"check its name and tag, or build it"},
	{[]string{"connection refused", "no such host", "timeout", "dial tcp", "server gave http response"}, backend.ErrImageNotFound,
		"the engine cannot reach the registry: check the engine's network, proxy and registry settings"},
}

func pullError(ctx context.Context, full string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("pull image %s: %w", full, context.Cause(ctx))
	}
	if client.IsErrConnectionFailed(err) {
		return fmt.Errorf("pull image %s: %w", full, err)
	}
	text := clean(err.Error())
	low := strings.ToLower(text)
	for _, a := range advice {
		for _, w := range a.words {
			if strings.Contains(low, w) {
				return fmt.Errorf("pull image %s: %s: %s: %w", full, a.do, text, a.kind)
			}
		}
	}
	return fmt.Errorf("pull image %s: %s: %w", full, text, backend.ErrImageNotFound)
}
