package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/security"
)

// fact asks for what is known of the sandbox.
func (s *Sandbox) fact(ctx context.Context, path string, v any) error {
	return s.ask(ctx, &request{method: http.MethodGet, path: path}, v)
}

// Usage is what the sandbox as a whole uses.
func (s *Sandbox) Usage(ctx context.Context) (backend.Usage, error) {
	var u apitypes.Usage
	if err := s.fact(ctx, "/usage", &u); err != nil {
		return backend.Usage{}, err
	}
	out := backend.Usage{MemoryKnown: u.Memory != nil, CPUKnown: u.CPUMS != nil}
	if u.Memory != nil {
		out.Memory = *u.Memory
	}
	if u.PeakMemory != nil {
		out.MemoryPeak = *u.PeakMemory
	}
	if u.CPUMS != nil {
		out.CPU = milliseconds(*u.CPUMS)
	}
	return out, nil
}

// Processes lists the programs that were started in the sandbox, the oldest first. Of each the API does not tell how much of its output is kept.
func (s *Sandbox) Processes(ctx context.Context) ([]llmsandbox.ProcessInfo, error) {
	var list apitypes.Processes
	err := s.fact(ctx, "/processes", &list)
	return apitypes.All(list.Processes, func(p apitypes.Process) llmsandbox.ProcessInfo {
		return llmsandbox.ProcessInfo{
			ID: p.ID, PID: p.PID, Argv: p.Argv, Started: p.Started, Running: p.Running, CPU: milliseconds(p.CPUMS), Memory: p.Memory,
		}
	}), err
}

// milliseconds is a number of milliseconds of an answer.
func milliseconds(ms float64) time.Duration { return duration(ms / 1000) }

// Capabilities tells what is enforced for the sandbox, and by what, or why it is not.
func (s *Sandbox) Capabilities(ctx context.Context) (backend.Capabilities, error) {
	var c backend.Capabilities
	err := s.fact(ctx, "/capabilities", &c)
	return c, err
}

// Network returns what the sandbox may reach, as Mode and Allow say.
func (s *Sandbox) Network(ctx context.Context) (llmsandbox.Network, error) {
	var n apitypes.Network
	err := s.fact(ctx, "/network", &n)
	return llmsandbox.Network{Mode: n.Mode, Allow: n.Allow}, err
}

// Install installs libraries of the sandbox's language, for all that runs in it from now on, as [llmsandbox.Sandbox.Install] does. The API has nothing for
// opts, which is nil.
func (s *Sandbox) Install(ctx context.Context, libraries []string, opts *llmsandbox.InstallOptions) error {
	if err := only("InstallOptions", *cmp.Or(opts, &llmsandbox.InstallOptions{})); err != nil {
		return err
	}
	if len(libraries) == 0 {
		return nil
	}
	return s.ask(ctx, &request{method: http.MethodPost, path: "/libraries", body: &apitypes.NewLibraries{Libraries: libraries}}, nil)
}

// A Language is one that code can be written in.
type Language struct {
	Name       string // for Options.Language
	Title      string
	Aliases    []string
	Extensions []string
}

// Languages lists the languages of the server.
func (c *Client) Languages(ctx context.Context) ([]Language, error) {
	var list apitypes.Languages
	err := c.get(ctx, "languages", &list)
	return apitypes.All(list.Languages, func(l apitypes.Language) Language { return Language(l) }), err
}

// Templates lists the templates of the server, for Options.Template. Their Path is not known.
func (c *Client) Templates(ctx context.Context) ([]llmsandbox.TemplateInfo, error) {
	var list apitypes.Templates
	err := c.get(ctx, "templates", &list)
	return apitypes.All(list.Templates, func(t apitypes.Template) llmsandbox.TemplateInfo {
		info := llmsandbox.TemplateInfo{Name: t.Name, Template: llmsandbox.Template{
			Language: t.Language, Image: t.Image, Environment: t.Environment, Libraries: t.Libraries, Imports: t.Imports, Env: t.Env,
			Limits: llmsandbox.Limits{
				Memory: t.Limits.Memory, CPUs: t.Limits.CPUs, PIDs: t.Limits.PIDs, Disk: t.Limits.Disk, Timeout: duration(t.Limits.Timeout), Output: t.Limits.Output,
			},
		}}
		if t.Network != nil {
			info.Network, info.Allow = t.Network.Mode, t.Network.Allow
		}
		return info
	}), err
}

// Environments lists the environments of the server, for Options.Environment. Path, Installed and Size of them are not known.
func (c *Client) Environments(ctx context.Context) ([]llmsandbox.EnvironmentInfo, error) {
	var list apitypes.Environments
	err := c.get(ctx, "environments", &list)
	return apitypes.All(list.Environments, func(e apitypes.Environment) llmsandbox.EnvironmentInfo {
		return llmsandbox.EnvironmentInfo{Name: e.Name, Language: e.Language, Libraries: e.Libraries, Packages: e.Packages}
	}), err
}

// get asks for all of a kind that a server has.
func (c *Client) get(ctx context.Context, kind string, v any) error {
	if err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/" + kind}, v); err != nil {
		return fmt.Errorf("list the %s: %w", kind, err)
	}
	return nil
}

// Check asks what a policy says of code, which is not run: a built-in policy by its name, or for an empty one the server's own. Of a program the API has
// Language and Code.
func (c *Client) Check(ctx context.Context, policy string, program security.Program) (security.Report, error) {
	var report security.Report
	err := only("Program", program, "Language", "Code")
	if err == nil {
		body := &apitypes.Check{Language: program.Language, Code: string(program.Code), Policy: policy}
		err = c.call(ctx, &request{method: http.MethodPost, path: "/v1/check", body: body}, &report)
	}
	if err != nil {
		return security.Report{}, fmt.Errorf("check code: %w", err)
	}
	return report, nil
}
