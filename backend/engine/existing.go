package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
	"github.com/llmsandbox/llmsandbox/internal/existing"
)

// enter brings the agent into Options.Container and starts it there, beside what runs
// in it. The container is started when it is stopped, and is never stopped or removed.
func (b *Backend) enter(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if err := existing.Container.Refuse(spec); err != nil {
		return nil, err
	}
	c, err := b.running(ctx, b.options.Container)
	if err != nil {
		return nil, err
	}
	img, err := b.images.Resolve(ctx, c.Image, "", spec.Progress)
	if err != nil {
		return nil, b.explainImage(err)
	}
	agent, err := b.bringAgent(ctx, c, img.Arch)
	if err != nil {
		return nil, err
	}
	host, err := b.host(ctx)
	if err != nil {
		return nil, err
	}
	guest := b.guest(spec, img)
	existing.Settle(&guest, agent, spec.ID)
	guest.Env = mergeEnv(mergeEnv(guest.Env, c.Config.Env), []string{"HOME=" + guest.Workdir, "TMPDIR=" + guest.TempDir})
	if b.options.Micromamba != nil {
		if err := b.enterContainer(ctx, c.ID, path.Dir(path.Dir(agent)), &guest); err != nil {
			return nil, err
		}
	}
	guest.Env = mergeEnv(guest.Env, spec.Env)
	info := backend.Info{
		ID: spec.ID, Backend: b.Name(), Image: img.Ref, Language: spec.Language, Created: time.Now(),
		Deadline: spec.Deadline, Labels: spec.Labels, Owner: "pid " + fmt.Sprint(thisProcess().pid),
	}
	m := &entered{session{
		backend: b, container: c.ID, agent: agent, token: agentclient.NewToken(), info: info, guest: guest,
		capabilities: b.foreignControls(host, c), watcher: newWatcher(),
	}}
	if err := m.startAgent(ctx, spec); err != nil {
		return nil, errors.Join(err, m.Close(nil))
	}
	return m, nil
}

// entered is a sandbox in a container that is not ours.
type entered struct{ session }

// Close is Destroy.
func (m *entered) Close(func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), existing.LeaveTimeout)
	defer cancel()
	return m.Destroy(ctx)
}

// Destroy ends the agent with all that was started through it, and removes the working
// folder. The container stays as it is.
func (m *entered) Destroy(ctx context.Context) error {
	if m.watcher.isDone() {
		m.release()
		return nil
	}
	err := m.withAgent(ctx, func(a *agentclient.Client) error { return existing.Leave(ctx, a, m.guest) })
	m.release()
	return err
}

// running finds a container and starts it when it is stopped.
func (b *Backend) running(ctx context.Context, name string) (container.InspectResponse, error) {
	for {
		res, err := b.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if absent.Container(err) {
			return res.Container, fmt.Errorf("container %s: %w: %s knows no container of that name or id", name, backend.ErrNotFound, b.Name())
		}
		if err != nil {
			return res.Container, b.explain("look for the container", err)
		}
		s := res.Container.State
		switch {
		case s == nil || s.Dead || s.Status == container.StateRemoving:
			return res.Container, fmt.Errorf("container %s: %w: it is being removed", name, backend.ErrNotFound)
		case s.Paused:
			return res.Container, fmt.Errorf("container %s: %w: it is paused: unpause it first", name, backend.ErrUnsupported)
		case s.Running:
			return res.Container, nil
		}
		if _, err := b.client.ContainerStart(ctx, name, client.ContainerStartOptions{}); err != nil {
			return res.Container, b.explain("start container "+name, err)
		}
	}
}

// startAgent starts the agent by a call of the engine, whose stream is the first.
func (m *entered) startAgent(ctx context.Context, spec backend.Spec) error {
	c := m.backend.client
	args := []string{
		m.agent, "serve", "--stdio", "--listen", socketName(spec.ID), "--token-env", envToken,
		"--grace", fmt.Sprint(int(ownerGrace.Seconds())), "--workdir", m.guest.Workdir,
		"--seccomp", path.Join(path.Dir(m.agent), "seccomp"),
	}
	if !spec.Deadline.IsZero() {
		args = append(args, "--deadline", fmt.Sprint(spec.Deadline.UnixMilli()))
	}
	made, err := c.ExecCreate(ctx, m.container, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: args, WorkingDir: "/", Env: []string{envToken + "=" + m.token},
	})
	if err != nil {
		return m.backend.explain("start the agent in the container", err)
	}
	h, err := startExec(ctx, c, made.ID)
	if err != nil {
		return m.backend.explain("start the agent in the container", err)
	}
	m.first = newStream(h)
	m.watcher.start(c, m.container, waitNotRunning)
	// It listens before it speaks.
	if err := m.first.spoken(ctx); err != nil {
		return fmt.Errorf("start the agent in the container: %w", err)
	}
	return m.withAgent(ctx, func(a *agentclient.Client) error { return existing.Furnish(ctx, a, m.guest) })
}
