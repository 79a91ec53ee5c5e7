package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// limits are those of a request.
func limits(l apitypes.RunLimits) llmsandbox.Limits {
	return llmsandbox.Limits{Memory: l.Memory, CPUs: l.CPUs, PIDs: l.PIDs, Disk: l.Disk, Timeout: seconds(l.Timeout), Output: l.Output}
}

// network is that of a request.
func network(n *apitypes.Network) llmsandbox.Network {
	if n == nil {
		return llmsandbox.Network{}
	}
	return llmsandbox.Network{Mode: n.Mode, Allow: n.Allow}
}

// options are those of a request.
func options(n *apitypes.NewSandbox) llmsandbox.Options {
	o := llmsandbox.Options{
		Template: n.Template, Imports: n.Imports, Workdir: n.Workdir, User: n.User, Sudo: n.Sudo, WritableRoot: n.Writable, BestEffort: n.BestEffort,
		Language: n.Language, Image: n.Image, Lifetime: seconds(n.Lifetime), IdleTimeout: seconds(n.Idle), Labels: n.Labels, Env: n.Env,
		Limits: limits(n.Limits), Network: network(n.Network), Libraries: n.Libraries, Environment: n.Environment, Resettable: n.Resettable, Volumes: volumeMounts(n.Volumes),
	}
	for _, s := range n.Secrets {
		o.Secrets = append(o.Secrets, llmsandbox.Secret(s))
	}
	if n.Artifacts != nil {
		o.Artifacts = llmsandbox.ArtifactOptions(*n.Artifacts)
	}
	return o
}

// seconds is a duration of a request. What no duration can hold is longer than any limit.
func seconds(s float64) time.Duration {
	const most = 1e9 // some 30 years
	return time.Duration(min(s, most) * float64(time.Second))
}

type sandboxPath struct {
	ID string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
}

type sandboxAnswer = body[apitypes.Sandbox]

func describe(i backend.Info) apitypes.Sandbox {
	return apitypes.Sandbox{
		ID: i.ID, Language: i.Language, Image: i.Image, Backend: i.Backend, Created: i.Created.UTC(), Idle: i.IdleTimeout.Seconds(), Labels: service.UserLabels(i.Labels),
		Limits:   apitypes.SandboxLimits{Memory: max(i.Limits.Memory, 0), CPUs: max(i.Limits.CPUs, 0), PIDs: max(i.Limits.PIDs, 0), Disk: max(i.Limits.Disk, 0)},
		Volumes:  apitypes.All(service.UserVolumes(&i), func(v llmsandbox.VolumeMount) apitypes.VolumeMount { return apitypes.VolumeMount(v) }),
		Deadline: i.Deadline.UTC(), Paused: i.Paused,
	}
}

// describeSandbox answers with a sandbox of the caller as the backend lists it.
func (s *Server) describeSandbox(ctx context.Context, id string) (*sandboxAnswer, error) {
	found, err := s.service.Find(ctx, s.caller(ctx).Project, id)
	return &sandboxAnswer{describe(found)}, err
}

// sandbox is an open sandbox of the caller.
func (s *Server) sandbox(ctx context.Context, id string) (*llmsandbox.Sandbox, error) {
	in, end := span(ctx, takeSandbox)
	sb, err := s.service.Get(in, s.caller(ctx).Project, id)
	end(err)
	return sb, err
}

func (s *Server) sandboxRoutes() {
	const tag = "Sandboxes"
	register(s, operation{
		id: "create-sandbox", method: http.MethodPost, path: "/v1/sandboxes", tag: tag, status: http.StatusCreated, write: true,
		summary: "Create a sandbox", doc: "It lives until its lifetime is over or it is removed, also when the server is started again.",
	}, func(ctx context.Context, in *struct {
		Key  string `header:"Idempotency-Key" maxLength:"255" pattern:"^[ -~]*$" doc:"One of the client's own: a request that repeats it within a day gets the same answer, and nothing is done"`
		Body apitypes.NewSandbox
	}) (*sandboxAnswer, error) {
		return once(ctx, s, "", "create-sandbox", in.Key, &in.Body, func(ctx context.Context) (*sandboxAnswer, error) {
			sb, err := s.service.Create(ctx, s.caller(ctx).Project, options(&in.Body))
			if err != nil {
				return nil, err
			}
			trailOf(ctx).sandbox = sb.ID()
			after := context.WithoutCancel(ctx) // there is one, also for a client that has gone away
			answer, err := s.describeSandbox(after, sb.ID())
			if err != nil { // its client does not know it
				err = errors.Join(err, s.service.Remove(after, s.caller(ctx).Project, sb.ID()))
			}
			return answer, err
		})
	})
	answer(s, operation{
		id: "list-sandboxes", method: http.MethodGet, path: "/v1/sandboxes", tag: tag, summary: "List the project's sandboxes", doc: "In the order of their creation.",
	}, s.listSandboxes)
	register(s, operation{
		id: "get-sandbox", method: http.MethodGet, path: "/v1/sandboxes/{id}", tag: tag, summary: "Describe a sandbox",
	}, func(ctx context.Context, in *sandboxPath) (*sandboxAnswer, error) {
		return s.describeSandbox(ctx, in.ID)
	})
	onSandbox(s, operation{
		id: "change-sandbox", method: http.MethodPatch, path: "/v1/sandboxes/{id}", tag: tag, write: true,
		summary: "Change when a sandbox ends, or what it may reach",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Body apitypes.Changes
	}) (*sandboxAnswer, error) {
		var err error
		if in.Body.Network != nil {
			err = s.service.SetNetwork(ctx, sb, network(in.Body.Network))
		}
		if err == nil && in.Body.Lifetime != 0 {
			err = s.service.SetLifetime(ctx, sb, seconds(in.Body.Lifetime))
		}
		if err != nil {
			return nil, err
		}
		return s.describeSandbox(ctx, in.ID)
	})
	register(s, operation{
		id: "reset-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/reset", tag: tag, status: http.StatusNoContent, write: true,
		summary: "Make a sandbox what it was at first", doc: "It must have been created as resettable. All that runs in it is ended, and all that was written is removed.",
	}, func(ctx context.Context, in *sandboxPath) (*struct{}, error) {
		return nil, s.service.Reset(ctx, s.caller(ctx).Project, in.ID)
	})
	register(s, operation{
		id: "pause-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/pause", tag: tag, status: http.StatusNoContent, write: true,
		summary: "Stop all that runs in a sandbox until it is resumed", doc: "Memory, files and connections stay, and no time limit goes on, that of the sandbox neither. Until then, what needs the sandbox is answered with the code paused.",
	}, func(ctx context.Context, in *sandboxPath) (*struct{}, error) {
		return nil, s.service.Pause(ctx, s.caller(ctx).Project, in.ID)
	})
	register(s, operation{
		id: "resume-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/resume", tag: tag, status: http.StatusNoContent, write: true,
		summary: "Let a sandbox go on that is paused", doc: "One that is not paused goes on anyway.",
	}, func(ctx context.Context, in *sandboxPath) (*struct{}, error) {
		return nil, s.service.Resume(ctx, s.caller(ctx).Project, in.ID)
	})
	register(s, operation{
		id: "remove-sandbox", method: http.MethodDelete, path: "/v1/sandboxes/{id}", tag: tag, status: http.StatusNoContent, write: true,
		summary: "End a sandbox and remove all of it",
	}, func(ctx context.Context, in *sandboxPath) (*struct{}, error) {
		return nil, s.service.Remove(ctx, s.caller(ctx).Project, in.ID)
	})
}

// once is service.Once, for the caller.
func once[T any](ctx context.Context, s *Server, sandbox, operation, key string, body any, do func(context.Context) (T, error)) (T, error) {
	answer, repeated, err := service.Once(ctx, s.service, s.caller(ctx).Project, sandbox, operation, key, body, do)
	if repeated && err == nil {
		trailOf(ctx).outcome = "repeated"
	}
	return answer, err
}

type listRequest struct {
	Labels []string `query:"label,explode" maxItems:"64" doc:"Only sandboxes with this label, as NAME=VALUE, or NAME for any value; may be repeated"`
	After  string   `query:"after" maxLength:"40" doc:"Only those after the one with this id, as next has it"`
	Limit  int      `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most so many"`
}

func (s *Server) listSandboxes(ctx context.Context, in *listRequest) (out apitypes.Sandboxes, err error) {
	list, err := s.service.List(ctx, s.caller(ctx).Project)
	if err != nil {
		return out, err
	}
	if in.After != "" {
		at := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == in.After })
		if at < 0 {
			return out, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("after: there is no sandbox %q any more: list from the beginning", in.After))
		}
		list = list[at+1:]
	}
	out.Sandboxes = []apitypes.Sandbox{}
	for _, i := range list {
		d := describe(i)
		if !hasLabels(d.Labels, in.Labels) {
			continue
		}
		if len(out.Sandboxes) == in.Limit {
			out.Next = out.Sandboxes[in.Limit-1].ID
			break
		}
		out.Sandboxes = append(out.Sandboxes, d)
	}
	return out, nil
}

func hasLabels(labels map[string]string, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(w string) bool {
		name, value, exact := strings.Cut(w, "=")
		has, ok := labels[name]
		return !ok || exact && has != value
	})
}
