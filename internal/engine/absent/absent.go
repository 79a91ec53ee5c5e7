// Package absent finds out that an engine has no such container. Engines do not always
// answer so: Podman, while it removes a container, may have it in its list and no longer
// in its database, and then answers with an internal error.
// Docker, after a crash, may list one that is nowhere else, until it starts again.
package absent

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Container reports whether err, of a call about one container, says that there is none such
// or that it is being removed at this moment.
func Container(err error) bool { return errdefs.IsNotFound(err) || vanishing(err) }

// vanishing knows Podman's messages.
func vanishing(err error) bool {
	return errdefs.IsInternal(err) &&
		(strings.Contains(err.Error(), "no such container") || strings.Contains(err.Error(), "container has already been removed"))
}

// listTries is how often a list is asked for. Each time one more container has gone.
const listTries = 10

// List lists containers without those that go meanwhile or have gone.
func List(ctx context.Context, c *client.Client, o client.ContainerListOptions) ([]container.Summary, error) {
	for try := 1; ; try++ {
		res, err := c.ContainerList(ctx, o)
		if err == nil {
			return known(ctx, c, res.Items)
		}
		if try == listTries || !vanishing(err) {
			return nil, err
		}
	}
}

// known leaves out dead containers that the engine no longer knows.
func known(ctx context.Context, c *client.Client, all []container.Summary) ([]container.Summary, error) {
	var there []container.Summary
	for _, one := range all {
		if one.State == container.StateDead {
			_, err := c.ContainerInspect(ctx, one.ID, client.ContainerInspectOptions{})
			if Container(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		there = append(there, one)
	}
	return there, nil
}
