// Package absent tells when an engine has no such container. That is not always what an
// engine's answer is called: Podman has one that it removes in its list and no more in its
// database for a moment, and whoever asks for it then is told that Podman itself has failed.
// Docker, after a crash, may have one in its list until it starts again that is nowhere else.
package absent

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Container tells whether err, of a call about one container, says that there is none such
// or that it is being removed at this moment.
func Container(err error) bool { return errdefs.IsNotFound(err) || vanishing(err) }

// vanishing knows Podman's words.
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

// known leaves out the dead of whom the engine knows nothing.
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
