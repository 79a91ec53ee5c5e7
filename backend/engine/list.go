package engine

import (
	"context"
	"fmt"
	"sort"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/absent"
)

// List returns the sandboxes that run on the engine, of all owners, oldest first.
func (b *Backend) List(ctx context.Context) ([]backend.Info, error) {
	found, err := b.containers(ctx, false, roleSandbox)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	records, err := b.movedDeadlines(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []backend.Info
	for _, c := range found {
		info, err := decode(b.Name(), c.Labels)
		if err != nil {
			return nil, fmt.Errorf("container %.12s: %w", c.ID, err)
		}
		if r, there := records[c.ID]; there {
			info.Deadline = r.at
		}
		all = append(all, info)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Created.Before(all[j].Created) })
	return all, nil
}

// containers returns those with a role, only running ones unless all are asked for.
func (b *Backend) containers(ctx context.Context, all bool, role string) ([]container.Summary, error) {
	found, err := absent.List(ctx, b.client, client.ContainerListOptions{
		All: all, Filters: make(client.Filters).Add("label", labelRole+"="+role),
	})
	return found, b.explain("list the containers", err)
}
