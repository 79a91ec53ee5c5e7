//go:build !linux

package podman

import (
	"context"

	"github.com/moby/moby/client"
)

// serviceOf is empty: a service runs in a virtual machine here.
func serviceOf(context.Context, *client.Client) string { return "" }
