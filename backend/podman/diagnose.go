package podman

import (
	"cmp"
	"context"
	"fmt"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/diagnose"
)

// Diagnose looks, in this order, at the configuration, the connection to the service
// that o names, what this user's own Podman needs of the machine, and what the service
// can. A check that later ones need ends the list when it fails.
func Diagnose(ctx context.Context, opts *ClientOptions) []backend.Finding {
	config := backend.Finding{Check: "configuration", Level: backend.LevelOK}
	f, err := cmp.Or(opts, &ClientOptions{}).find()
	var c *client.Client
	if err == nil {
		c, err = f.client()
	}
	if err != nil {
		config.Level, config.Detail = backend.LevelFailure, err.Error()
		config.Fix = "correct what the message names: the option, the variable or the file"
		return []backend.Finding{config}
	}
	config.Detail = fmt.Sprintf("%s (%s)", f.endpoint.Host, f.source)
	all := []backend.Finding{config}
	if f.source == ownService {
		all = append(all, userSetup()...)
	}
	all = append(all, diagnose.Connection(ctx, f.endpoint)...)
	if all[len(all)-1].Level != backend.LevelFailure {
		all = append(all, diagnose.Engine(ctx, c, askInfo)...)
	}
	if err := c.Close(); err != nil {
		all = append(all, backend.Finding{Check: "client", Level: backend.LevelWarning, Detail: "closing it: " + err.Error(), Fix: "try again"})
	}
	return all
}
