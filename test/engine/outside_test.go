//go:build linux

package engine

import (
	"context"
	"strings"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/testprocess"
)

// outside looks at sandboxes through the host's list of processes, and the engine's of
// containers.
type outside struct{ client *client.Client }

// Processes are those of the pid namespace that the container's main process is in.
func (o *outside) Processes(ctx context.Context, id string) ([]backendtest.Process, error) {
	c, err := o.client.ContainerInspect(ctx, "llmsandbox-"+id, client.ContainerInspectOptions{})
	if containers.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Container.State == nil || c.Container.State.Pid == 0 {
		return nil, nil
	}
	return testprocess.Beside(c.Container.State.Pid)
}

func (o *outside) Kill(ctx context.Context, id string) error {
	_, err := o.client.ContainerKill(ctx, "llmsandbox-"+id, client.ContainerKillOptions{Signal: "KILL"})
	return err
}

// Left looks for containers of any state and for processes on the host.
func (o *outside) Left(ctx context.Context) ([]string, error) {
	all, err := containers.List(ctx, o.client, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", "llmsandbox.role")})
	if err != nil {
		return nil, err
	}
	var left []string
	for _, c := range all {
		left = append(left, "container "+strings.Join(c.Names, ",")+" "+c.Status)
	}
	marked, err := testprocess.With(backendtest.Marker)
	for _, p := range marked {
		left = append(left, "process "+p.Command)
	}
	return left, err
}
