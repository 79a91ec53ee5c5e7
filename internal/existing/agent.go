package existing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// LeaveTimeout bounds the end of an agent whose caller gave no bound.
const LeaveTimeout = 20 * time.Second

// Settle gives the guest of a sandbox the folders that it has beside the agent's, which is
// the path of its file.
func Settle(g *backend.Guest, agent, id string) {
	g.Workdir = path.Join(path.Dir(path.Dir(agent)), "sandbox-"+id)
	g.TempDir = path.Join(g.Workdir, ".tmp")
}

// Furnish makes these folders.
func Furnish(ctx context.Context, a *agentclient.Client, g backend.Guest) error {
	for _, dir := range []string{g.Workdir, g.TempDir} {
		if err := a.Mkdir(ctx, dir, 0o700, true); err != nil {
			return fmt.Errorf("make a working folder in the container: %w", err)
		}
	}
	return nil
}

// Leave removes the working folder and ends the agent with all that was started through
// it. It returns when it has ended. The container stays as it is.
func Leave(ctx context.Context, a *agentclient.Client, g backend.Guest) error {
	err := a.Remove(ctx, g.Workdir, agentclient.RemoveOptions{Recursive: true, Missing: true})
	if err := errors.Join(err, a.Shutdown(ctx)); err != nil {
		return err
	}
	// The way to it ends when it has.
	select {
	case <-a.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the agent in the container does not end: %w", context.Cause(ctx))
	}
}
