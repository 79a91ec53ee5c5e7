package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// A host is the container that an agent runs in.
type host struct {
	backend   *Backend
	container string
	agent     agenthost.Agent
	workdir   string
	until     container.WaitCondition // what Await waits for
	code      atomic.Int64            // of the container's end; 0: not known
	moved     atomic.Bool             // the deadline, by this handle

	// image is the one that the container was made from, by the name asked. They are empty
	// where another handle owns it.
	image image.Image
	asked string
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
		return h.backend.explain("take the container's streams", errors.Join(err, serr))
	}
	s.Offer(newStream(at))
	s.Follow() // before the start, so that an end at once is not missed
	if _, err := c.ContainerStart(ctx, h.container, client.ContainerStartOptions{}); err != nil {
		return h.backend.explain("start the container", err)
	}
	return nil
}

// Connect has the engine start the agent's bridge inside, and shows the token.
func (h *host) Connect(ctx context.Context) (agenthost.Stream, error) {
	// The bridge would inherit the agent's own variables.
	s, err := h.exec(ctx, []string{envToken + "=", envGuest + "="}, h.agent.File, "connect", h.agent.Socket)
	if gone(err) {
		return nil, agenthost.ErrGone
	}
	if err != nil {
		return nil, h.backend.explain("connect to the agent", err)
	}
	if _, err := io.WriteString(s, h.agent.Token); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("connect to the agent: show the token: %w", err)
	}
	return s, nil
}

// exec starts a program in the container.
func (h *host) exec(ctx context.Context, env []string, argv ...string) (*stream, error) {
	c := h.backend.client
	made, err := c.ExecCreate(ctx, h.container, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: argv, WorkingDir: "/", Env: env,
	})
	if err != nil {
		return nil, err
	}
	at, err := startExec(ctx, c, made.ID)
	if err != nil {
		return nil, err
	}
	return newStream(at), nil
}

// gone reports whether the engine says that there is no such container that runs.
func gone(err error) bool { return absent.Container(err) || errdefs.IsConflict(err) }

// End knows the exit code: an engine does not keep a container that has ended.
func (h *host) End() (backend.End, int) { return backend.End{}, int(h.code.Load()) }

// Release has nothing to do: what this handle holds are streams.
func (h *host) Release() {}

// Remove removes the container, running or not, and the image if it was only brought for
// it. There is no grace. Where the agent ends, the engine removes the container by itself;
// but while that is there, its image cannot be removed.
func (h *host) Remove(ctx context.Context, agentEnded bool) error {
	if agentEnded && !h.image.Made && !h.moved.Load() {
		return nil
	}
	_, err := h.backend.client.ContainerRemove(ctx, h.container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !gone(err) { // which is also that its removal is under way
		return h.backend.explain("remove the container", err)
	}
	return errors.Join(h.forgetDeadline(ctx), h.backend.dropImage(ctx, h.asked, h.image))
}
