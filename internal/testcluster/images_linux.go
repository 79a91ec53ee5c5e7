package testcluster

import (
	"fmt"
	"io"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/defaultimage"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// Images makes sure that the node has the default images of all languages, and returns
// what gives a language's name. The first time they come from a Docker daemon that
// testengine starts, which takes some minutes; then they are kept.
func (c *Cluster) Images(t testing.TB) func(language string) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.images {
		testimage.Must(t, c.ensureImages(t))
		c.images = true
	}
	return func(language string) string {
		t.Helper()
		d, ok := defaultimage.For(language)
		if !ok {
			t.Fatalf("no default image for %q, want one", language)
		}
		return d.Name
	}
}

// ensureImages streams the images from Docker into containerd. The mark among their names
// is of exactly these.
func (c *Cluster) ensureImages(t testing.TB) error {
	t.Helper()
	ctx := t.Context()
	mark, err := testengine.ImagesMark(ctx)
	if err != nil {
		return err
	}
	found, err := c.kit.ctr(ctx, nil, "images", "ls", "-q", "name==docker.io/"+mark)
	if err != nil || found != "" {
		return err
	}
	docker := testengine.Docker(t)
	docker.Images(t)
	pr, pw := io.Pipe()
	saved := make(chan error, 1)
	go func() {
		err := docker.SaveImages(ctx, pw)
		pw.CloseWithError(err)
		saved <- err
	}()
	_, err = c.kit.run(ctx, pr, "load")
	pr.CloseWithError(err)
	if problem := <-saved; problem != nil {
		return fmt.Errorf("save the images of Docker: %w", problem)
	}
	return err
}
