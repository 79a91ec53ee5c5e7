package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type installArgs struct {
	SessionID string   `json:"session_id" jsonschema:"of create_session"`
	Libraries []string `json:"libraries" jsonschema:"each as its package manager names it, such as requests or numpy==1.26.4"`
}

type installed struct {
	Installed []string `json:"installed"`
	StateLost bool     `json:"state_lost" jsonschema:"the interpreter began anew, and what earlier calls have defined is gone"`
}

// installLibraries installs, and has the session's interpreter find what was installed.
func (s *Server) installLibraries(ctx context.Context, c *call, in installArgs) (*sdk.CallToolResult, installed, error) {
	one, done, err := s.sessions.use(c.owner, in.SessionID)
	if err != nil {
		return nil, installed{}, err
	}
	defer done()
	if err := s.mayInstall(in.Libraries); err != nil {
		return nil, installed{}, err
	}
	c.say("installing")
	lost, err := one.Value.install(ctx, in.Libraries, c.progress)
	if err != nil {
		return nil, installed{}, err
	}
	return nil, installed{Installed: append([]string{}, in.Libraries...), StateLost: lost}, nil
}
