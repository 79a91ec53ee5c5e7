package testengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// Images makes sure that the engine has the default images of all languages, built from
// their Dockerfiles on one Debian base, and returns what gives a language's name. The
// first time on a machine that takes some minutes.
func (e *Engine) Images(t testing.TB) func(language string) string {
	t.Helper()
	testimage.Must(t, e.images())
	return func(language string) string {
		t.Helper()
		d, ok := defaultimage.For(language)
		if !ok {
			t.Fatalf("no default image for %q, want one", language)
		}
		return d.Name
	}
}

// ImagesMark is the name of an image that [Engine.SaveImages] saves with the default
// images, and that changes with what they are made from: an engine with that one has all of them.
func ImagesMark(ctx context.Context) (string, error) {
	r, err := newRecipe(ctx)
	if err != nil {
		return "", err
	}
	return r.ready(), nil
}

// SaveImages writes the default images of all languages, which [Engine.Images] has made
// sure of, as `docker save` does.
func (e *Engine) SaveImages(ctx context.Context, w io.Writer) error {
	mark, err := ImagesMark(ctx)
	if err != nil {
		return err
	}
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		return err
	}
	defer c.Close()
	saved, err := c.ImageSave(ctx, append(names(), mark))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, saved)
	return errors.Join(err, saved.Close())
}

// Load puts the images of a `docker save` file, such as testimage.Save writes, into the
// engine.
func (e *Engine) Load(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := load(t.Context(), c, f); err != nil {
		t.Fatal(err)
	}
}

// ensureImages builds the images with Docker, and gives Podman copies of them: building
// everything three times would take three times as long and show no more of the
// Dockerfiles.
func (e *Engine) ensureImages(ctx context.Context) error {
	r, err := newRecipe(ctx)
	if err != nil {
		return err
	}
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		return err
	}
	defer c.Close()
	if found, err := has(ctx, c, r.ready()); found || err != nil {
		return err
	}
	if !e.Podman {
		return r.build(ctx, c, e.Host)
	}
	docker, err := dockerOnce.running()
	if err != nil {
		return fmt.Errorf("build images for %s: %w", e.Name, err)
	}
	if err := docker.images(); err != nil {
		return err
	}
	return transfer(ctx, docker.Host, c, append(names(), r.ready()))
}

// names are the images of all languages.
func names() []string {
	var list []string
	for _, l := range all.Coded() {
		if d, ok := defaultimage.For(l.Name); ok {
			list = append(list, d.Name)
		}
	}
	return list
}

func has(ctx context.Context, c *client.Client, name string) (bool, error) {
	_, err := c.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// transfer copies images from the engine at a host. The last one arrives with all
// others or not at all.
func transfer(ctx context.Context, from string, to *client.Client, names []string) error {
	source, err := client.New(client.WithHost(from))
	if err != nil {
		return err
	}
	defer source.Close()
	saved, err := source.ImageSave(ctx, names)
	if err != nil {
		return err
	}
	return errors.Join(load(ctx, to, saved), saved.Close())
}

func load(ctx context.Context, c *client.Client, r io.Reader) error {
	res, err := c.ImageLoad(ctx, r)
	if err != nil {
		return err
	}
	return errors.Join(messages(res), res.Close())
}
