package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
)

type runArgs struct {
	SessionID string `json:"session_id" jsonschema:"of create_session"`
	Code      string `json:"code" jsonschema:"what to run"`
	Timeout   int    `json:"timeout,omitempty" jsonschema:"seconds that it may take"`
}

func (s *Server) runInSession(ctx context.Context, c *call, in runArgs) (*sdk.CallToolResult, outcome, error) {
	res, out, err := s.runHere(ctx, c, in)
	if err != nil {
		out = s.failed(err)
		res = s.cfg.result(&out, nil, nil)
	}
	return res, out, nil
}

func (s *Server) runHere(ctx context.Context, c *call, in runArgs) (*sdk.CallToolResult, outcome, error) {
	one, done, err := s.sessions.use(c.owner, in.SessionID)
	if err != nil {
		return nil, outcome{}, err
	}
	defer done()
	timeout, notes := s.timeout(in.Timeout)
	c.say("running")
	w := one.Value
	if w.kernel == nil {
		return s.runProgram(ctx, w.sandbox, w.language.Name, in.Code, timeout, func(out *outcome) { out.Notes = append(out.Notes, notes...) })
	}
	w.used.Store(true)
	return s.runCell(ctx, w.kernel, in.Code, timeout, notes)
}

func (s *Server) runCell(ctx context.Context, kernel *llmsandbox.Kernel, code string, timeout time.Duration, notes []string) (*sdk.CallToolResult, outcome, error) {
	cell, err := kernel.Run(ctx, code, &llmsandbox.CellOptions{Timeout: timeout})
	if err != nil {
		return nil, outcome{}, err
	}
	o := observed{
		status: cell.Status, code: cell.ExitCode, signal: cell.Signal, reason: cell.Reason, duration: cell.Duration,
		stdout: cell.Stdout, stderr: cell.Stderr, stdoutTruncated: cell.StdoutTruncated, stderrTruncated: cell.StderrTruncated,
		network: cell.Network, findings: cell.Findings,
	}
	if o.code == nil {
		o.code = cellCode(cell.Status)
	}
	if cell.Error != nil {
		o.stderr = strings.TrimSuffix(o.stderr, "\n")
		if o.stderr != "" {
			o.stderr += "\n"
		}
		o.stderr += traceback(cell.Error)
	}
	out := s.cfg.outcome(o)
	out.Value = out.text("value", cell.Value["text/plain"], false, s.cfg.MaxText)
	out.StateLost = cell.StateLost
	if cell.StateLost {
		out.note("what earlier calls have defined is gone, and the next one begins anew")
	}
	if cell.Restarted {
		out.note("the interpreter had ended since the call before, so this one found nothing of what earlier calls have defined")
	}
	out.Notes = append(out.Notes, notes...)
	return s.cfg.result(&out, cell.Artifacts, cell.ArtifactsDropped), out, nil
}

// cellCode is the exit code of a cell that has none of its own.
func cellCode(status llmsandbox.Status) *int {
	code := 1
	if status == llmsandbox.StatusOK {
		code = 0
	}
	return &code
}

func traceback(e *llmsandbox.CellError) string {
	if e.Traceback != "" {
		return e.Traceback
	}
	return fmt.Sprintf("%s: %s\n", e.Name, e.Message)
}
