package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/mcp"
)

// addMCP adds an MCP server to a server's configuration, which is complete but for it. Its sandboxes have what those of the API have where a request says
// nothing, and no tool can ask for more. The caller closes it.
func addMCP(cfg *httpapi.Config, log *slog.Logger) (*mcp.Server, error) {
	own := mcp.Config{
		Version: version, Sandbox: cfg.Sandbox, Warm: cfg.Warm, WarmLanguages: cfg.WarmLanguages, Zygote: cfg.Zygote, MaxCalls: cfg.MaxRuns, MaxSessions: cfg.MaxSandboxes,
		SessionTTL: min(cfg.DefaultLifetime, cfg.MaxLifetime), Log: log,
	}
	own.Sandbox.Network, own.Sandbox.Secrets = llmsandbox.Network{}, nil // secrets are for a network
	server, err := mcp.New(&own)
	if err != nil {
		return nil, err
	}
	cfg.MCP, err = server.Handler(&mcp.HTTPOptions{Authenticate: principals(cfg.Authenticate), Origins: cfg.Origins, Hosts: cfg.Hosts})
	return server, err
}

// principals are the projects of keys that may run code.
func principals(authenticate func(context.Context, string) (httpapi.Caller, error)) func(context.Context, string) (string, error) {
	return func(ctx context.Context, key string) (string, error) {
		caller, err := authenticate(ctx, key)
		switch {
		case err != nil:
			return "", err
		case !caller.Write:
			return "", fmt.Errorf("%w: the key does not have the scope write: use one that has", mcp.ErrForbiddenToken)
		}
		return caller.Project, nil
	}
}

// learn has the MCP server find out which limits hold and which libraries there are, to tell its clients. They are served meanwhile.
func learn(ctx context.Context, cfg *httpapi.Config, server *mcp.Server) {
	if _, err := server.Check(ctx); err != nil && ctx.Err() == nil {
		cfg.Log.WarnContext(ctx, "clients of MCP are not told which limits hold and which libraries there are", "error", err)
	}
}
