// Package diagnose looks at a container engine and says what of it is fit for
// sandboxes, what is not, and what to do about it.
package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// MinAPIVersion is the oldest version of the engine's API that sandboxes work with.
const MinAPIVersion = "1.41"

// Connection checks that the engine can be connected to: for a local socket that it
// exists, and that the caller may open it; for another host that it can be reached. A
// check that failed is the last finding.
func Connection(ctx context.Context, e dial.Endpoint) []backend.Finding {
	check := "connection"
	local := strings.HasPrefix(e.Host, "unix:") || strings.HasPrefix(e.Host, "npipe:")
	if local {
		check = "socket"
	}
	passed := backend.Finding{Check: check, Level: backend.LevelOK, Detail: e.Host}
	err := e.Connect(ctx)
	var known *dial.Error
	switch {
	case err == nil && local:
		return []backend.Finding{passed, {Check: "permission", Level: backend.LevelOK, Detail: "the caller may open the socket"}}
	case err == nil:
		return []backend.Finding{passed}
	case errors.As(err, &known) && known.Kind == dial.Permission:
		return []backend.Finding{passed, failed("permission", err)}
	}
	return []backend.Finding{failed(check, err)}
}

// failed is a check that failed with err.
func failed(check string, err error) backend.Finding {
	var e *dial.Error
	if errors.As(err, &e) {
		return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: fmt.Sprintf("%s: %s", e.Host, e.Why), Fix: e.Fix}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: "there was no answer in the time there was", Fix: "see whether the engine hangs, and restart it; one on another machine may be slow to reach"}
	}
	return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: err.Error(), Fix: "see the engine's own log"}
}

// Engine checks, over a client, that the engine answers and what it can. When it does
// not answer, or is not one that sandboxes work on, that is the last finding. ask is how
// the engine is asked what it can; nil means by the API's own call.
func Engine(ctx context.Context, c *client.Client, ask func(context.Context, *client.Client) (system.Info, error)) []backend.Finding {
	if ask == nil {
		ask = askInfo
	}
	ping, err := c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		return []backend.Finding{failed("answer", err)}
	}
	info, err := ask(ctx, c)
	if err != nil {
		return []backend.Finding{failed("answer", err)}
	}
	all := []backend.Finding{
		{Check: "answer", Level: backend.LevelOK, Detail: "version " + info.ServerVersion},
		apiVersion(ping.APIVersion, c.ClientVersion()),
		platform(info),
	}
	for _, f := range all {
		if f.Level == backend.LevelFailure {
			return all
		}
	}
	return append(all, cgroup(info), limits(info), storage(info), rootless(info), seccomp(info), confinement(info), runtimes(info))
}

func askInfo(ctx context.Context, c *client.Client) (system.Info, error) {
	res, err := c.Info(ctx, client.InfoOptions{})
	return res.Info, err
}

// apiVersion looks at the version the engine offers and the one in use.
func apiVersion(offered, used string) backend.Finding {
	f := backend.Finding{Check: "API version", Level: backend.LevelOK, Detail: used}
	switch {
	case offered != "" && versions.LessThan(offered, MinAPIVersion):
		f.Level, f.Detail = backend.LevelFailure, fmt.Sprintf("the engine offers %s, sandboxes need %s", offered, MinAPIVersion)
		f.Fix = "install a newer engine: Docker 20.10, Podman 4, or later"
	case versions.LessThan(used, MinAPIVersion):
		f.Level, f.Detail = backend.LevelFailure, fmt.Sprintf("%s is set to be used, sandboxes need %s", used, MinAPIVersion)
		f.Fix = "take back the setting of the API's version (DOCKER_API_VERSION)"
	}
	return f
}
