package testengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// An Engine is a container engine that runs for this test binary. Its methods may be
// called concurrently.
type Engine struct {
	Name     string // "docker", "podman" or "podman-rootless"
	Host     string // of its API: "unix://" and the socket
	DataRoot string // its images and containers
	// Podman says that it is Podman behind Docker's API.
	Podman bool
	// Rootless says that it runs as an ordinary user.
	Rootless bool

	daemon  *daemon
	cleanup func() error // after the daemon has ended
	images  func() error // makes sure of the images, once
}

// Docker is the Docker daemon of this test binary. Without one the test is skipped, or
// fails where everything must run.
func Docker(t testing.TB) *Engine { t.Helper(); return dockerOnce.get(t) }

// Podman is Podman's service as root.
func Podman(t testing.TB) *Engine { t.Helper(); return podmanOnce.get(t) }

// PodmanRootless is Podman's service as an ordinary user: as the user who runs the test,
// or, when that is root, as one made for it.
func PodmanRootless(t testing.TB) *Engine { t.Helper(); return rootlessOnce.get(t) }

var (
	dockerOnce   = &once{start: startDocker}
	podmanOnce   = &once{start: startPodman}
	rootlessOnce = &once{start: startRootless}
)

// once starts an engine at most once.
type once struct {
	start func(context.Context) (*Engine, error)

	mu      sync.Mutex
	tried   bool
	engine  *Engine
	problem error
}

func (o *once) get(t testing.TB) *Engine {
	t.Helper()
	e, err := o.running()
	testimage.Must(t, err)
	return e
}

// running starts the engine on the first call.
func (o *once) running() (*Engine, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tried {
		return o.engine, o.problem
	}
	o.tried = true
	// Engines outlive the test that wants one first.
	o.engine, o.problem = o.open(context.Background())
	return o.engine, o.problem
}

func (o *once) open(ctx context.Context) (*Engine, error) {
	if err := takeTurn(); err != nil {
		return nil, err
	}
	e, err := o.start(ctx)
	if err != nil {
		return nil, err
	}
	e.images = sync.OnceValue(func() error { return e.ensureImages(ctx) })
	// What a run that crashed left behind would be taken for a leak of this one.
	if err := e.sweep(ctx); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// stop ends the engine and all that runs in it.
func (e *Engine) stop() error {
	err := e.sweep(context.Background())
	if e.daemon != nil {
		err = errors.Join(err, e.daemon.stop())
	}
	if e.cleanup != nil {
		err = errors.Join(err, e.cleanup())
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", e.Name, err)
	}
	return nil
}

// sweep removes every container and volume; the images stay.
func (e *Engine) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		return err
	}
	defer c.Close()
	containers, err := c.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return err
	}
	for _, item := range containers.Items {
		if err := remove(ctx, c, item.ID); err != nil {
			return fmt.Errorf("remove container %s: %w", item.ID, err)
		}
	}
	volumes, err := c.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		return err
	}
	for _, v := range volumes.Items {
		if _, err := c.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true}); err != nil {
			return fmt.Errorf("remove volume %s: %w", v.Name, err)
		}
	}
	return nil
}

// remove removes a container, or waits where the engine is at it already.
func remove(ctx context.Context, c *client.Client, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	removed := containers.Wait(ctx, c, id, container.WaitConditionRemoved)
	_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsConflict(err) {
		err = (<-removed).Err
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Main runs the tests, stops the engines they started, and exits. A package that wants
// engines calls it from its TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "testengine:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Stop stops the engines that tests started, once all tests have run. Main does it; a
// TestMain that has more to end calls it itself.
func Stop() error {
	var all error
	for _, o := range []*once{rootlessOnce, podmanOnce, dockerOnce} {
		if o.engine != nil {
			all = errors.Join(all, o.engine.stop())
		}
	}
	return all
}
