package engine

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// Attach finds a sandbox that this or another process made, wherever it runs.
func (b *Backend) Attach(ctx context.Context, id string) (backend.Machine, error) {
	res, err := b.client.ContainerInspect(ctx, containerName(id), client.ContainerInspectOptions{})
	if gone(err) {
		return nil, fmt.Errorf("sandbox %s: %w", id, backend.ErrNotFound)
	}
	if err != nil {
		return nil, b.explain("look for the sandbox", err)
	}
	c := res.Container
	if c.State == nil || !c.State.Running || c.Config == nil || c.Config.Labels[labelRole] != roleSandbox {
		return nil, fmt.Errorf("sandbox %s: %w", id, backend.ErrNotFound)
	}
	info, err := decode(b.Name(), c.Config.Labels)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s is not as this program makes them: %w", id, err)
	}
	token, guest, err := parseAgentEnv(c.Config.Env)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s is not as this program makes them: %w", id, err)
	}
	records, err := b.movedDeadlines(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if r, there := records[c.ID]; there {
		info.Deadline = r.at
	}
	engine, err := b.host(ctx)
	if err != nil {
		return nil, err
	}
	s := agenthost.New(agenthost.Attached, &host{
		backend: b, container: c.ID, agent: agenthost.Agent{File: agentFile, Socket: agenthost.Socket(info.ID), Token: token},
		workdir: guest.Workdir, until: waitNotRunning,
	}, agenthost.Description{Sandbox: info, Inside: guest, Enforced: b.controls(engine, c.HostConfig, backend.Spec{Limits: info.Limits})})
	s.Follow()
	return s, nil
}
