package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
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
	found, err := containers.List(ctx, b.client, client.ContainerListOptions{
		All: all, Filters: make(client.Filters).Add("label", labelRole+"="+role),
	})
	return found, b.explain("list the containers", err)
}

// GC removes the containers of owners that have died or whose deadline has passed, those
// that commits have left, the volumes of agents that this program does not use, layers and
// volumes that were never finished, and volumes that were removed by force. What is in use is left alone.
func (b *Backend) GC(ctx context.Context) ([]backend.Leftover, error) {
	found, err := b.collectContainers(ctx)
	if err != nil {
		return found, err
	}
	commits, err := b.collectCommits(ctx)
	found = append(found, commits...)
	if err != nil {
		return found, err
	}
	volumes, err := b.collectVolumes(ctx)
	return append(found, volumes...), err
}

// committing is how long a container through which an image is made may be there. It has
// no labels, since they would get into the image.
const committing = time.Hour

// collectCommits removes the containers that commits of processes that died have left.
func (b *Backend) collectCommits(ctx context.Context) ([]backend.Leftover, error) {
	all, err := containers.List(ctx, b.client, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("name", image.CommitPrefix).Add("status", "created"),
	})
	if err != nil {
		return nil, b.explain("list the containers", err)
	}
	var found []backend.Leftover
	for _, c := range all {
		if name := containerNames(c); strings.HasPrefix(name, image.CommitPrefix) && time.Since(time.Unix(c.Created, 0)) > committing {
			found = append(found, b.collect(ctx, c)...)
		}
	}
	return found, nil
}

func containerNames(c container.Summary) string {
	return strings.TrimPrefix(strings.Join(c.Names, ","), "/")
}

// collect removes one container. It returns nothing if another process removed it first.
func (b *Backend) collect(ctx context.Context, c container.Summary) []backend.Leftover {
	l := backend.Leftover{Kind: "container", Name: containerNames(c)}
	_, err := b.client.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if containers.Absent(err) {
		return nil
	}
	l.Removed = err == nil || errdefs.IsConflict(err) || containers.Improper(err) // under way
	if !l.Removed {
		l.Reason = err.Error()
	}
	return []backend.Leftover{l}
}

// collectContainers removes containers without an owner.
func (b *Backend) collectContainers(ctx context.Context) ([]backend.Leftover, error) {
	records, err := b.movedDeadlines(ctx, "") // before their containers, which may go meanwhile
	if err != nil {
		return nil, err
	}
	var found []backend.Leftover
	for _, role := range []string{roleSandbox, roleFill} {
		all, err := b.containers(ctx, true, role)
		if err != nil {
			return found, err
		}
		for _, c := range all {
			if !abandoned(c) && !b.late(ctx, c, deadlineOf(c, records)) {
				continue
			}
			found = append(found, b.collect(ctx, c)...)
		}
	}
	deadlines, err := b.collectDeadlines(ctx, records)
	return append(found, deadlines...), err
}

// deadlineOf is a container's deadline; zero: it has none, or says nonsense.
func deadlineOf(c container.Summary, records map[string]moved) time.Time {
	if r, there := records[c.ID]; there {
		return r.at
	}
	d, err := time.Parse(time.RFC3339Nano, c.Labels[labelDeadline])
	if err != nil {
		return time.Time{}
	}
	return d
}

// abandoned reports whether a container is of no use any more, whatever its deadline.
func abandoned(c container.Summary) bool {
	o, err := parseOwner(c.Labels[labelOwner])
	if err == nil && o.dead() {
		return true
	}
	// One that has run is never started again.
	return c.State == container.StateExited || c.State == container.StateDead
}

// collectVolumes removes unused volumes of other agents, layers and volumes that were never
// finished, and volumes whose name was taken from them while a container had them.
func (b *Backend) collectVolumes(ctx context.Context) ([]backend.Leftover, error) {
	res, err := b.client.VolumeList(ctx, client.VolumeListOptions{Filters: make(client.Filters).Add("label", labelRole)})
	if err != nil {
		return nil, b.explain("list the volumes", err)
	}
	own := map[string]bool{}
	for _, arch := range []string{"amd64", "arm64"} {
		mark, err := agentMark(arch)
		if err != nil {
			return nil, err
		}
		own[mark] = true
	}
	keep := wholeVolumes(res.Items, own)
	var found []backend.Leftover
	for _, v := range res.Items {
		if keep[v.Name] || v.Labels[labelRole] == roleDeadline {
			continue
		}
		if v.Labels[labelRole] == roleVolume { // it may have its mark by now
			marked, err := b.marked(ctx, v.Name)
			if err != nil {
				return found, err
			}
			if marked {
				continue
			}
		}
		_, err := b.client.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
		if errdefs.IsConflict(err) || volumeGone(err) {
			continue // in use, or gone
		}
		l := backend.Leftover{Kind: "volume", Name: v.Name, Removed: err == nil}
		if err != nil {
			l.Reason = err.Error()
		}
		found = append(found, l)
	}
	return found, nil
}

// sweepOnce removes, once per backend and beside the first Create, what owners that
// have died left. Create waits for it.
func (b *Backend) sweepOnce(ctx context.Context, log *slog.Logger) {
	b.sweep.Do(func() {
		b.swept.Go(func() {
			found, err := b.collectContainers(ctx)
			agenthost.LogSweep(log, found, err)
		})
	})
}
