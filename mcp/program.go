package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
)

// runProgram runs code as a process of its own. after, when set, is called with the
// outcome before it is sent.
func (s *Server) runProgram(ctx context.Context, sb *llmsandbox.Sandbox, language, code string, timeout time.Duration, after func(*outcome)) (*sdk.CallToolResult, outcome, error) {
	res, err := sb.Run(ctx, code, &llmsandbox.RunOptions{Language: language, Timeout: timeout})
	if err != nil {
		return nil, outcome{}, err
	}
	out := s.cfg.outcome(observed{
		status: res.Status, code: res.ExitCode, signal: res.Signal, reason: res.Reason, duration: res.Duration,
		stdout: res.Stdout, stderr: res.Stderr, stdoutTruncated: res.StdoutTruncated, stderrTruncated: res.StderrTruncated,
		network: res.Network, findings: res.Findings,
	})
	after(&out)
	return s.cfg.result(&out, res.Artifacts, res.ArtifactsDropped), out, nil
}
