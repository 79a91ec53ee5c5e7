package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// killAll kills whatever the agent has started, with all that came of it.
func killAll(ctx context.Context, client *agentclient.Client) error {
	killed := map[uint64]bool{}
	for fresh := true; fresh; {
		list, err := client.Processes(ctx)
		if err != nil {
			return fmt.Errorf("list its processes: %w", err)
		}
		fresh = false
		for _, p := range list {
			if killed[p.ID] {
				continue
			}
			killed[p.ID], fresh = true, true
			if err := client.Kill(ctx, p.ID); err != nil && !collected(err) {
				return fmt.Errorf("kill its processes: %w", err)
			}
		}
	}
	return nil
}

// reapTime bounds how long what was killed may still be seen: the agent says that it is
// gone some moments before it has waited for the last of it.
const reapTime = 2 * time.Second

// processesGone waits until the agent is alone.
func processesGone(ctx context.Context, client *agentclient.Client) error {
	over := time.Now().Add(reapTime)
	for pause := time.Millisecond; ; pause *= 2 {
		n, err := client.Count(ctx)
		if err != nil {
			return fmt.Errorf("count its processes: %w", err)
		}
		if n == 0 {
			return nil
		}
		if time.Now().After(over) {
			return fmt.Errorf("%d processes are left beside the agent", n)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collected tells whether the agent knows no more of a process because all of it is over.
func collected(err error) bool {
	var ae *agentproto.Error
	return errors.As(err, &ae) && ae.Code == agentproto.CodeLost
}
