package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
)

// A host is the container that an agent runs in.
type host struct {
	backend   *Backend
	container string
	agent     agenthost.Agent
	pid       int // of the agent on the engine's machine; 0: not known
	workdir   string
	until     container.WaitCondition // what Await waits for
	code      atomic.Int64            // of the container's end; 0: not known
	moved     atomic.Bool             // the deadline, by this handle

	made  *creation   // nil where another handle owns the container
	again atomic.Bool // another one comes in its place
}

var _ agenthost.Host = (*host)(nil)

// begin takes the streams of a container that has been made, and starts it.
func (h *host) begin(ctx context.Context, s *agenthost.Session) error {
	c := h.backend.client
	at, err := attach(ctx, c, h.container)
	if err != nil {
		// An engine that prepares the container only now says why it cannot with the
		// next call, not with this one.
		_, serr := c.ContainerStart(ctx, h.container, client.ContainerStartOptions{})
		return h.backend.explain("take the container's streams", firstCause(err, serr))
	}
	s.Follow() // before the start, so that an end at once is not missed
	if _, err := c.ContainerStart(ctx, h.container, client.ContainerStartOptions{}); err != nil {
		at.Close()
		return h.backend.explain("start the container", err)
	}
	// Now, since a start may take longer than an offered stream stays good.
	s.Offer(newStream(at))
	return nil
}

// firstCause is why a container could not be attached to: what its start says of it, unless that
// knows only that the container is gone. Both often have the same text.
func firstCause(attached, started error) error {
	if started == nil || errdefs.IsNotFound(started) || strings.Contains(started.Error(), "no such container") {
		return attached
	}
	return started
}

// Connect opens a stream to the agent, and shows the token.
func (h *host) Connect(ctx context.Context) (agenthost.Stream, error) {
	s := h.direct()
	if s == nil {
		var err error
		if s, err = h.bridge(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(s, h.agent.Token); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("connect to the agent: show the token: %w", err)
	}
	return s, nil
}

// bridge has the engine start a program in the container that passes a stream on to the agent.
func (h *host) bridge(ctx context.Context) (agenthost.Stream, error) {
	// It would inherit the agent's own variables.
	_, s, err := h.backend.startProgram(ctx, h.container, true, []string{envToken + "=", envGuest + "="}, h.agent.File, "connect", h.agent.Socket)
	if errdefs.IsConflict(err) && h.paused(ctx) {
		return nil, fmt.Errorf("connect to the agent: %w: its container is paused: unpause it first", backend.ErrUnsupported)
	}
	if gone(err) {
		return nil, agenthost.ErrGone
	}
	if err != nil {
		return nil, h.backend.explain("connect to the agent", err)
	}
	return s, nil
}

// paused reports whether the engine says so of the container.
func (h *host) paused(ctx context.Context) bool {
	res, err := h.backend.client.ContainerInspect(ctx, h.container, client.ContainerInspectOptions{})
	return err == nil && res.Container.State != nil && res.Container.State.Paused
}

// gone reports whether the engine says that there is no such container that runs.
func gone(err error) bool { return containers.Absent(err) || errdefs.IsConflict(err) }

// End knows the exit code: an engine does not keep a container that has ended.
func (h *host) End() (backend.End, int) { return backend.End{}, int(h.code.Load()) }

// Release has nothing to do: what this handle holds are streams.
func (h *host) Release() {}

// Remove removes the container, running or not, and the image if it was only brought for
// it. There is no grace. Where the agent ends, the engine removes the container by itself;
// but while that is there, its image cannot be removed.
func (h *host) Remove(ctx context.Context, agentEnded bool) error {
	volumes := h.made != nil && len(h.made.volumes) > 0 // which are to be free then
	if agentEnded && !volumes && !(h.made != nil && h.made.image.Made) && !h.moved.Load() {
		return nil
	}
	again := h.again.Load()
	_, err := h.backend.client.ContainerRemove(ctx, h.container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	improper := containers.Improper(err)
	if err != nil && !gone(err) && !improper { // which is also that its removal is under way
		return h.backend.explain("remove the container", err)
	}
	if improper || err != nil && (again || volumes) { // again: which is to have its name
		end := <-containers.Wait(ctx, h.backend.client, h.container, container.WaitConditionRemoved)
		if end.Err != nil && !containers.Absent(end.Err) {
			return h.backend.explain("wait for the removal of the container", end.Err)
		}
	}
	err = h.forgetDeadline(ctx)
	if h.made != nil && !again {
		err = errors.Join(err, h.made.dropVolumes(ctx), h.made.dropImage(ctx))
	}
	return err
}

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
	var enforced backend.Capabilities
	if err := json.Unmarshal([]byte(c.Config.Labels[labelEnforced]), &enforced); err != nil {
		return nil, fmt.Errorf("sandbox %s is not as this program makes them: label %s: %w", id, labelEnforced, err)
	}
	records, err := b.movedDeadlines(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if r, there := records[c.ID]; there {
		info.Deadline = r.at
	}
	h := &host{
		backend: b, container: c.ID, agent: agenthost.Agent{File: agentFile, Socket: agenthost.Socket(info.ID), Token: token},
		workdir: guest.Workdir, until: waitNotRunning,
	}
	if !c.State.Paused { // an agent that is paused would not answer, and the engine says so
		h.pid = c.State.Pid
	}
	s := agenthost.New(agenthost.Attached, h, agenthost.Description{Sandbox: info, Inside: guest, Enforced: enforced})
	s.Follow()
	return s, nil
}

// Conditions that Await waits for.
const (
	waitNextExit   = container.WaitConditionNextExit
	waitNotRunning = container.WaitConditionNotRunning
)

const (
	// lookTimeout bounds one look at a container whose watch broke off.
	lookTimeout = 10 * time.Second
	// watchPause is from one call to the next at least: an engine that cannot wait says so
	// at once.
	watchPause = time.Second
)

// Await learns of the container's end by one long call of the engine. An engine that does
// not answer is no end: containers may outlive it.
func (h *host) Await(ctx context.Context) bool {
	c := h.backend.client
	until := h.until
	h.until = waitNotRunning // of a watch that is taken up again
	for {
		pause := time.After(watchPause)
		// Podman ends its wait with no code where its own record of events has failed it.
		if end := <-containers.Wait(ctx, c, h.container, until); end.Err == nil && end.Code >= 0 {
			h.code.Store(end.Code)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		res, err := c.ContainerInspect(look, h.container, client.ContainerInspectOptions{})
		cancel()
		if err != nil && !gone(err) {
			return false // the engine is away
		}
		switch state := res.Container.State; {
		case err != nil || state == nil:
			return true
		case state.Running:
			until = waitNotRunning
		case state.Status != container.StateCreated: // it is about to be started
			return true
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return false
		}
	}
}

// maxStats bounds one sample, in bytes.
const maxStats = 1 << 20

// Usage asks the engine for one sample.
func (h *host) Usage(ctx context.Context) (backend.Usage, error) {
	host, err := h.backend.host(ctx)
	if err != nil || host.NoStats {
		return backend.Usage{}, err
	}
	res, err := h.backend.client.ContainerStats(ctx, h.container, client.ContainerStatsOptions{})
	if err != nil {
		return backend.Usage{}, h.backend.explain("ask for the sandbox's usage", err)
	}
	defer res.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, maxStats)).Decode(&s); err != nil {
		return backend.Usage{}, fmt.Errorf("read the sandbox's usage: %w", err)
	}
	return backend.Usage{
		MemoryKnown: s.MemoryStats.Usage > 0, Memory: int64(s.MemoryStats.Usage), MemoryPeak: int64(s.MemoryStats.MaxUsage),
		CPUKnown: s.CPUStats.CPUUsage.TotalUsage > 0, CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage),
	}, nil
}
