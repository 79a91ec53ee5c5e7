//go:build linux

package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/testcommand"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// TestCommand runs the command as its users do, on each engine.
func TestCommand(t *testing.T) {
	bin, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			e := engine.start(t)
			e.Images(t)
			testscript.RunT(serial{t}, testscript.Params{
				Dir:                 "testdata/script",
				RequireExplicitExec: true,
				WorkdirRoot:         t.TempDir(),
				Setup:               func(env *testscript.Env) error { return setUp(t, env, e, bin) },
			})
		})
	}
}

// serial runs scripts one after the other: they look at what the engine has.
type serial struct{ *testing.T }

func (serial) Parallel()     {}
func (serial) Verbose() bool { return testing.Verbose() }

func (s serial) Run(name string, do func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { do(serial{t}) })
}

// setUp prepares a script for an engine. Each script's own images begin with "test-" and
// its name, or have its name as the label "test".
func setUp(t *testing.T, env *testscript.Env, e *testengine.Engine, bin string) error {
	name := "docker"
	if e.Podman {
		name = "podman"
	}
	env.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	env.Setenv("HOME", env.WorkDir) // neither Docker's nor Podman's configuration of who runs this
	env.Setenv("BACKEND", name)
	env.Setenv("LLMSANDBOX_BACKEND", name)
	env.Setenv("DOCKER_HOST", e.Host) // of the docker command too
	env.Setenv("CONTAINER_HOST", e.Host)
	script := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	c := newClient(t, e)
	env.Defer(func() {
		if err := removeImages(context.Background(), c, script); err != nil {
			t.Errorf("remove the images of the script: %v", err)
		}
	})
	return removeImages(t.Context(), c, script) // what a script left that was killed
}

// removeImages removes a script's images, once the containers of them have gone that are
// on their way out.
func removeImages(ctx context.Context, c *client.Client, script string) error {
	for _, filter := range []client.Filters{ // an image goes after those that were made of it
		make(client.Filters).Add("label", "test="+script), make(client.Filters).Add("reference", "test-"+script),
	} {
		images, err := c.ImageList(ctx, client.ImageListOptions{Filters: filter})
		for range 4 {
			if errdefs.IsInternal(err) { // Podman, while a supervisor removes an image
				images, err = c.ImageList(ctx, client.ImageListOptions{Filters: filter})
			}
		}
		if err != nil {
			return err
		}
		for left := images.Items; len(left) > 0; {
			// Which of those of one second comes first in the list is chance.
			var parents []image.Summary
			var why error
			for _, one := range left {
				err := removeImage(ctx, c, one.ID)
				if errdefs.IsConflict(err) {
					parents, why = append(parents, one), err
				} else if err != nil && !errdefs.IsNotFound(err) {
					return err
				}
			}
			if len(parents) == len(left) {
				return why
			}
			left = parents
		}
	}
	return nil
}

func removeImage(ctx context.Context, c *client.Client, id string) error {
	used, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("ancestor", id)})
	if err != nil {
		return err
	}
	for _, u := range used.Items {
		end := <-containers.Wait(ctx, c, u.ID, container.WaitConditionRemoved)
		if end.Err != nil && !containers.Absent(end.Err) {
			return end.Err
		}
	}
	o := client.ImageRemoveOptions{Force: true, PruneChildren: true}
	_, err = c.ImageRemove(ctx, id, o)
	for range 4 {
		if errdefs.IsInternal(err) { // Podman, while a container of it goes by itself
			_, err = c.ImageRemove(ctx, id, o)
		}
	}
	return err
}
