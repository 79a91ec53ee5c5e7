package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// Create starts a container with the agent as its main process, or brings the agent into
// Options.Container.
func (b *Backend) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if b.options.Container != "" {
		return b.enter(ctx, spec)
	}
	if err := agenthost.CheckRoot(spec); err != nil {
		return nil, err
	}
	var err error
	if spec.Mounts, err = b.findMounts(spec); err != nil {
		return nil, err
	}
	// What owners that have died left goes while the container is being made.
	b.sweepOnce(ctx, spec.Logger)
	defer b.swept.Wait()
	return (&creation{backend: b, spec: spec}).run(ctx)
}

// run makes the container and starts it. On an error nothing is left behind.
func (c *creation) run(ctx context.Context) (backend.Machine, error) {
	err := c.prepare(ctx)
	var id string
	if err == nil {
		id, err = c.make(ctx)
	}
	if err == nil {
		err = c.checkWorkdir(ctx, id)
	}
	if err == nil {
		err = c.holdVolumes(ctx, id)
	}
	if err != nil {
		return nil, errors.Join(err, c.dropImage(ctx))
	}
	return c.start(ctx, id)
}

// A creation is a sandbox that is being made.
type creation struct {
	backend *Backend
	spec    backend.Spec
	engine  Host
	image   image.Image   // known from the beginning where the container comes in the place of another
	created time.Time     // of that one
	volumes []mount.Mount // the caller's; known as the image is
	config  *container.Config
	host    *container.HostConfig
	record  backend.Info
	guest   backend.Guest
	token   string
	// enforced is what the engine and the settings hold the container to.
	enforced backend.Capabilities
}

// prepare finds the image, brings the agent, and decides on the configuration.
func (c *creation) prepare(ctx context.Context) error {
	both, gctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		c.engine, err = c.backend.host(gctx)
		return err
	})
	var agent string
	both.Go(func() (err error) {
		if c.image.ID == "" {
			if c.image, err = c.backend.resolveImage(gctx, c.spec); err != nil {
				return err
			}
		}
		agent, err = c.backend.ensureAgent(gctx, c.image)
		return err
	})
	if c.volumes == nil {
		both.Go(func() (err error) {
			c.volumes, err = c.backend.findVolumes(gctx, c.spec)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return err
	}
	if err := agenthost.CheckLimits(c.spec, append(slices.Clone(c.engine.Limits), diskControl(c.spec))); err != nil {
		return err
	}
	return c.configure(agent)
}

// configure fills in what the engine is asked for.
func (c *creation) configure(agent string) error {
	b := c.backend
	c.guest = b.guest(c.spec, c.image)
	c.record = agenthost.Record(c.spec, b.Name(), c.image.Ref, thisProcess().describe())
	if !c.created.IsZero() {
		c.record.Created = c.created
	}
	c.record.Volumes = c.spec.Volumes
	labels, err := encode(c.record)
	if err != nil {
		return err
	}
	c.token = agentclient.NewToken()
	c.config = &container.Config{
		Image: c.image.ID, Hostname: "sandbox", WorkingDir: "/", User: user(c.spec, c.image), Labels: labels,
		Entrypoint: append([]string{agentFile}, b.serveArgs(c.spec, c.engine.Limits)...), Cmd: []string{},
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGKILL", // the agent ignores the others, and a stop would wait for nothing
	}
	c.host = hostConfig(c.spec, agent)
	c.host.Binds = binds(c.volumes)
	c.dropUnenforced()
	if err := b.applySettings(c.spec, c.config, c.host); err != nil {
		return err
	}
	if err := addGPUs(c.spec.GPUs, c.host); err != nil {
		return err
	}
	if c.engine.Devices != nil && len(c.host.DeviceRequests) > 0 {
		var err error
		if c.host.DeviceRequests, err = c.engine.Devices(c.host.DeviceRequests); err != nil {
			return err
		}
	}
	if b.flavor.TmpfsOwner {
		giveTmpfs(c.spec, c.host, c.config.User)
	}
	c.guest.Env = mergeEnv(mergeEnv(c.guest.Env, c.config.Env), c.spec.Env)
	if c.config.WorkingDir != "/" { // by a setting: for programs, not for the agent
		c.guest.StartDir, c.config.WorkingDir = c.config.WorkingDir, "/"
	}
	own, err := agentEnv(c.token, c.guest)
	if err != nil {
		return err
	}
	c.config.Env = own
	if b.flavor.Adjust != nil {
		b.flavor.Adjust(c.config, c.host)
	}
	if b.options.Raw != nil {
		if err := b.options.Raw(c.config, c.host); err != nil {
			return fmt.Errorf("the caller's own changes to the container: %w", err)
		}
	}
	return c.recordEnforced()
}

// recordEnforced labels the container with what it is held to, for those who attach: they do not know the
// settings that it was made with, and asking the engine again takes Podman a third of a second.
func (c *creation) recordEnforced() error {
	c.enforced = c.backend.controls(c.engine, c.host, c.spec)
	text, err := json.Marshal(c.enforced)
	if err != nil {
		return fmt.Errorf("what is enforced as a label: %w", err)
	}
	if c.config.Labels != nil { // the caller's own changes may leave none, and then no one can attach
		c.config.Labels[labelEnforced] = string(text)
	}
	return nil
}

// dropUnenforced leaves out the limits that the engine cannot hold here, some of which
// it would refuse to start with.
func (c *creation) dropUnenforced() {
	for _, l := range c.engine.Limits {
		if l.Enforced {
			continue
		}
		switch l.Name {
		case "memory":
			c.host.Memory, c.host.MemorySwap = 0, 0
		case "cpus":
			c.host.NanoCPUs = 0
		case "pids":
			c.host.PidsLimit = nil
		}
	}
}

// make makes the container and returns its id.
func (c *creation) make(ctx context.Context) (string, error) {
	made, err := createContainer(ctx, c.backend.client, client.ContainerCreateOptions{
		Name: containerName(c.spec.ID), Config: c.config, HostConfig: c.host,
	})
	if nameTaken(err) {
		return "", fmt.Errorf("sandbox %s: %w: another sandbox has that id", c.spec.ID, backend.ErrLocked)
	}
	return made.ID, c.backend.explain("make the container", err)
}

// start takes the container's streams and starts it.
func (c *creation) start(ctx context.Context, id string) (backend.Machine, error) {
	b := c.backend
	h := &host{
		backend: b, container: id, agent: agenthost.Agent{File: agentFile, Socket: agenthost.Socket(c.spec.ID), Token: c.token},
		workdir: c.guest.Workdir, until: waitNextExit, made: c,
	}
	s := agenthost.New(agenthost.Owner, h, agenthost.Description{
		Sandbox: c.record, Inside: c.guest, Enforced: c.enforced,
	})
	err := explainUser(c.spec.User, h.begin(ctx, s))
	if err == nil && c.image.Committed != "" {
		err = b.restoreWorkdir(ctx, s, c.image)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(nil)) // nothing is left behind
	}
	return s, nil
}

// createTimeout bounds the making of a container, which nothing interrupts.
const createTimeout = 2 * time.Minute

// createContainer makes a container. The engine may carry out a call that was cancelled,
// so the call is waited for, and a container that comes too late is removed.
func createContainer(ctx context.Context, c *client.Client, o client.ContainerCreateOptions) (client.ContainerCreateResult, error) {
	if ctx.Err() != nil {
		return client.ContainerCreateResult{}, context.Cause(ctx)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	made, err := c.ContainerCreate(call, o)
	if err == nil && ctx.Err() != nil {
		_, err = c.ContainerRemove(call, made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return client.ContainerCreateResult{}, errors.Join(context.Cause(ctx), err)
	}
	return made, err
}

// inContainer calls do with a container that is removed afterwards.
func (b *Backend) inContainer(ctx context.Context, c *container.Config, h *container.HostConfig, do func(id string) error) (err error) {
	made, err := createContainer(ctx, b.client, client.ContainerCreateOptions{Config: c, HostConfig: h})
	if err != nil {
		return b.explain("make a container", err)
	}
	defer func() {
		// A context that has ended must not leave it.
		_, rerr := b.client.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if !containers.Absent(rerr) {
			err = errors.Join(err, b.explain("remove a container", rerr))
		}
	}()
	return do(made.ID)
}

// unmake removes a container that has been made, but not started.
func (c *creation) unmake(ctx context.Context, id string) error {
	_, err := c.backend.client.ContainerRemove(context.WithoutCancel(ctx), id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return c.backend.explain("remove the container", err)
}

func containerName(id string) string { return "llmsandbox-" + id }
