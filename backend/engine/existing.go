package engine

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
)

// KeepsFiles implements [backend.FileKeeper].
func (b *Backend) KeepsFiles() bool { return b.options.Container != "" }

// enter brings the agent into Options.Container and starts it there, beside what runs
// in it. The container is started when it is stopped, and is never stopped or removed.
func (b *Backend) enter(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if err := agenthost.Container.Refuse(spec); err != nil {
		return nil, err
	}
	if len(spec.Volumes) > 0 {
		return nil, b.checkVolumes()
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
	engine, err := b.host(ctx)
	if err != nil {
		return nil, err
	}
	guest := b.guest(spec, img)
	own := agenthost.Settle(&guest, agent, spec)
	guest.Env = mergeEnv(mergeEnv(guest.Env, c.Config.Env), []string{"HOME=" + own, "TMPDIR=" + guest.TempDir})
	if b.options.Micromamba != nil {
		if err := b.enterContainer(ctx, c.ID, path.Dir(path.Dir(agent)), &guest); err != nil {
			return nil, err
		}
	}
	guest.Env = mergeEnv(guest.Env, spec.Env)
	spec.Limits = backend.Limits{} // those of the container hold
	h := &host{
		backend: b, container: c.ID, workdir: guest.Workdir, until: waitNotRunning,
		agent: agenthost.Agent{File: agent, Socket: agenthost.Socket(spec.ID), Token: agentclient.NewToken()},
	}
	s := agenthost.New(agenthost.Entered, h, agenthost.Description{
		Sandbox: agenthost.Record(spec, b.Name(), img.Ref, thisProcess().describe()), Inside: guest, Enforced: b.foreignControls(engine, c),
	})
	if err := h.serve(ctx, s, spec); err != nil {
		return nil, errors.Join(err, s.Close(nil))
	}
	return s, nil
}

// serve starts the agent by a call of the engine, whose stream is the first.
func (h *host) serve(ctx context.Context, s *agenthost.Session, spec backend.Spec) error {
	_, stdio, err := h.backend.startProgram(ctx, h.container, true, []string{envToken + "=" + h.agent.Token}, append([]string{h.agent.File, "serve"}, agenthost.ServeArgs(spec, agenthost.Serve{
		Stdio: true, Grace: ownerGrace, Workdir: h.workdir, Filter: path.Join(path.Dir(h.agent.File), "seccomp"),
	})...)...)
	if err != nil {
		return h.backend.explain("start the agent in the container", err)
	}
	return s.Enter(ctx, stdio, "")
}

// running finds a container and starts it when it is stopped.
func (b *Backend) running(ctx context.Context, name string) (container.InspectResponse, error) {
	for {
		res, err := b.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if containers.Absent(err) {
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
