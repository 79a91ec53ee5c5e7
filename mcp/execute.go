package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/security"
)

type executeArgs struct {
	Code      string   `json:"code" jsonschema:"the program; print what you want to see"`
	Language  string   `json:"language,omitempty" jsonschema:"for shell commands use bash"`
	Libraries []string `json:"libraries,omitempty" jsonschema:"packages to install first, such as numpy==1.26.4"`
	Timeout   int      `json:"timeout,omitempty" jsonschema:"seconds, without the installation"`
}

func (s *Server) addExecute() {
	add(s, tool{
		name: "execute_code", title: "Run code",
		description: "Run a program or shell script in a fresh sandbox. Only what it prints is returned, so print your results. " +
			"Nothing is kept for the next call: for that, use create_session. Plots (plt.show()) come back as images with their " +
			"data, and files written to ./artifacts are attached. " + s.place(),
		hints:  hints{openWorld: s.openWorld()},
		output: outputSchema[outcome](),
		bounds: func(p properties) {
			s.boundCode(p)
			s.boundLanguage(p)
		},
	}, s.execute)
}

// execute runs code. Whatever goes wrong has the shape of an outcome.
func (s *Server) execute(ctx context.Context, c *call, in executeArgs) (*sdk.CallToolResult, outcome, error) {
	res, out, err := s.executeFresh(ctx, c, in)
	if err != nil {
		out = s.failed(err)
		res = s.cfg.result(&out, nil, nil)
	}
	return res, out, nil
}

func (s *Server) executeFresh(ctx context.Context, c *call, in executeArgs) (*sdk.CallToolResult, outcome, error) {
	l, err := s.catalog.find(in.Language)
	if err != nil {
		return nil, outcome{}, fmt.Errorf("%w; use %s", err, list(s.catalog.names, "or"))
	}
	if err := s.mayInstall(in.Libraries); err != nil {
		return nil, outcome{}, err
	}
	// No sandbox is taken for code that would not run in it. Those that are taken check
	// nothing themselves.
	findings, refused, err := s.cfg.Sandbox.Policy.Check(ctx, security.Program{Language: l.Name, Code: []byte(in.Code), Libraries: in.Libraries})
	if err != nil {
		return nil, outcome{}, err
	}
	if refused != "" {
		out := s.cfg.outcome(observed{status: llmsandbox.StatusRefused, reason: refused, findings: findings})
		return s.cfg.result(&out, nil, nil), out, nil
	}
	c.say("waiting for a sandbox")
	sb, release, err := s.sandboxes.acquire(ctx, l.Name, in.Libraries, c.progress)
	if err != nil {
		return nil, outcome{}, err
	}
	defer release()
	c.say("running")
	timeout, notes := s.timeout(in.Timeout)
	return s.runProgram(ctx, sb, l.Name, in.Code, timeout, func(out *outcome) {
		out.find(findings)
		out.Notes = append(out.Notes, notes...)
		if s.cfg.Commit == nil {
			return
		}
		image, err := s.cfg.Commit(ctx, sb, l.Name)
		if err != nil {
			out.note("no image was created: %s", s.message(err))
			return
		}
		out.Image = line(image)
	})
}

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
		network: res.Network, findings: res.Findings, hints: res.Hints, capabilities: res.Capabilities,
	})
	if res.OK() && res.Stdout+res.Stderr == "" && len(res.Artifacts) == 0 {
		out.note("no output: print what you want to see")
	}
	after(&out)
	return s.cfg.result(&out, res.Artifacts, res.ArtifactsDropped), out, nil
}
