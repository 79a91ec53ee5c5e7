package docker

import (
	"cmp"
	"context"
	"fmt"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/diagnose"
)

// Diagnose looks, in this order, at the configuration, the connection to the engine
// that o names, and what the engine can. A check that later ones need ends the list
// when it fails.
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
	all := append([]backend.Finding{config}, diagnose.Connection(ctx, f.endpoint)...)
	if all[len(all)-1].Level != backend.LevelFailure {
		all = append(all, diagnose.Engine(ctx, c, nil)...)
	}
	if err := c.Close(); err != nil {
		all = append(all, backend.Finding{Check: "client", Level: backend.LevelWarning, Detail: "closing it: " + err.Error(), Fix: "try again"})
	}
	return all
}
