package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/security"
)

// factRoutes tell what is known of a sandbox and of code.
func (s *Server) factRoutes() {
	const tag, path = "Sandboxes", "/v1/sandboxes/{id}"
	fact(s, operation{
		id: "get-usage", path: path + "/usage", tag: tag, summary: "Tell what a sandbox uses",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox) (apitypes.Usage, error) {
		u, err := sb.Usage(ctx)
		return usage(u), err
	})
	fact(s, operation{
		id: "get-capabilities", path: path + "/capabilities", tag: tag, summary: "Tell what is enforced for a sandbox, and by what, or why it is not",
	}, func(_ context.Context, sb *llmsandbox.Sandbox) (backend.Capabilities, error) {
		return sb.Capabilities(), nil
	})
	fact(s, operation{
		id: "list-processes", path: path + "/processes", tag: tag, summary: "List the programs that were started in a sandbox",
		doc: "The oldest first; what programs have started themselves is not in it.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox) (apitypes.Processes, error) {
		list, err := sb.Processes(ctx)
		return apitypes.Processes{Processes: apitypes.All(list, process)}, err
	})
	fact(s, operation{
		id: "get-network", path: path + "/network", tag: tag, summary: "Tell what a sandbox may reach",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox) (apitypes.Network, error) {
		n, err := sb.Network(ctx)
		return apitypes.Network{Mode: n.Mode, Allow: n.Allow}, err
	})
	register(s, operation{
		id: "install-libraries", method: http.MethodPost, path: path + "/libraries", tag: tag, status: http.StatusNoContent, write: true,
		summary: "Install libraries in a sandbox", doc: "They are those of the sandbox's language, for all that runs in it from now on.",
	}, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Body apitypes.NewLibraries
	}) (*struct{}, error) {
		leave, err := s.enter(ctx) // a program installs them
		if err != nil {
			return nil, err
		}
		defer leave()
		sb, err := s.sandbox(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return nil, sb.Install(ctx, in.Body.Libraries, nil)
	})
	answer(s, operation{
		id: "check", method: http.MethodPost, path: "/v1/check", tag: "Programs", summary: "Tell what a policy says of code, without running it",
		doc: "blocked tells whether the policy refuses the code. A server whose policy only warns runs it all the same.",
	}, s.check)
}

// fact adds an operation that answers with what is known of a sandbox.
func fact[T any](s *Server, op operation, of func(context.Context, *llmsandbox.Sandbox) (T, error)) {
	op.method = http.MethodGet
	answerOf(s, op, func(ctx context.Context, sb *llmsandbox.Sandbox, _ *sandboxPath) (T, error) { return of(ctx, sb) })
}

func usage(u backend.Usage) apitypes.Usage {
	var out apitypes.Usage
	if u.CPUKnown {
		out.CPUMS = new(milliseconds(u.CPU))
	}
	if u.MemoryKnown {
		out.Memory = &u.Memory
	}
	if u.MemoryPeak > 0 {
		out.PeakMemory = &u.MemoryPeak
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func process(p llmsandbox.ProcessInfo) apitypes.Process {
	return apitypes.Process{
		ID: p.ID, PID: p.PID, Argv: apitypes.All(p.Argv, text), Started: p.Started.UTC(), Running: p.Running, CPUMS: milliseconds(p.CPU), Memory: p.Memory,
	}
}

// text is what comes from inside a sandbox as JSON can have it, which has text only.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func (s *Server) check(ctx context.Context, in *struct{ Body apitypes.Check }) (report security.Report, err error) {
	leave, err := s.enter(ctx) // it is work for the server, as a program is
	if err != nil {
		return report, err
	}
	defer leave()
	b := &in.Body
	checker, err := s.checker(b.Policy)
	if err != nil {
		return report, err
	}
	return checker.CheckProgram(ctx, security.Program{Language: cmp.Or(b.Language, llmsandbox.DefaultLanguage), Code: []byte(b.Code)})
}

// checker is a built-in policy's; without a name, that of the server's own.
func (s *Server) checker(name string) (*security.Checker, error) {
	known := strings.Join(security.Presets(), ", ")
	if name == "" {
		if own := s.service.Sandbox().Policy.Checker; own != nil {
			return own, nil
		}
		return nil, fmt.Errorf("policy: %w: the server has none of its own: name one of %s", llmsandbox.ErrInvalid, known)
	}
	p, err := security.Preset(name)
	if err != nil {
		return nil, fmt.Errorf("policy: %w: there is no built-in policy %q: name one of %s", llmsandbox.ErrInvalid, name, known)
	}
	return security.Compile(p)
}
