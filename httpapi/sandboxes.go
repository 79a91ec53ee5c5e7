package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// A Sandbox is a sandbox as clients see it.
type Sandbox struct {
	ID       string            `json:"id"`
	Language string            `json:"language" doc:"What code is written in that names no other language" example:"python"`
	Image    string            `json:"image" doc:"Its root filesystem; host is the server's own tool chains" example:"host"`
	Backend  string            `json:"backend" example:"local"`
	Created  time.Time         `json:"created"`
	Deadline *time.Time        `json:"deadline,omitempty" doc:"When it ends"`
	Idle     float64           `json:"idle_timeout_seconds,omitempty" doc:"After how long without use it ends"`
	Labels   map[string]string `json:"labels,omitempty"`
	Limits   SandboxLimits     `json:"limits"`
}

// SandboxLimits are the limits of a sandbox.
type SandboxLimits struct {
	Memory int64   `json:"memory_bytes,omitempty" doc:"Of the whole sandbox" minimum:"0" example:"536870912"`
	CPUs   float64 `json:"cpus,omitempty" doc:"Of the whole sandbox" minimum:"0" example:"1"`
	PIDs   int64   `json:"pids,omitempty" doc:"Processes and threads of the whole sandbox" minimum:"0" example:"128"`
	Disk   int64   `json:"disk_bytes,omitempty" doc:"Of all that can be written" minimum:"0" example:"1073741824"`
}

// RunLimits are those of each program in a sandbox, beside the sandbox's own.
type RunLimits struct {
	SandboxLimits
	Timeout float64 `json:"timeout_seconds,omitempty" doc:"Wall time of one program, its compilation included" minimum:"0" example:"60"`
	Output  int64   `json:"output_bytes,omitempty" doc:"Of standard output and error of one program together" minimum:"0" example:"10485760"`
}

func (l RunLimits) options() llmsandbox.Limits {
	return llmsandbox.Limits{Memory: l.Memory, CPUs: l.CPUs, PIDs: l.PIDs, Disk: l.Disk, Timeout: seconds(l.Timeout), Output: l.Output}
}

// Network is what a sandbox may reach.
type Network struct {
	Mode  llmsandbox.NetworkMode `json:"mode" enum:"none,allow,full" doc:"none: nothing; allow: the hosts of allow; full: all public hosts"`
	Allow []string               `json:"allow,omitempty" maxItems:"256" doc:"HOST[:PORT], *.DOMAIN[:PORT], an address or a CIDR" example:"[\"example.org:443\"]"`
}

func (n *Network) options() llmsandbox.Network {
	if n == nil {
		return llmsandbox.Network{}
	}
	return llmsandbox.Network{Mode: n.Mode, Allow: n.Allow}
}

// NewSandbox asks for a sandbox.
type NewSandbox struct {
	Language    string            `json:"language,omitempty" doc:"Name or alias; python where it is left out" maxLength:"64" example:"python"`
	Image       string            `json:"image,omitempty" doc:"One that the operator allows; the server's own where it is left out" maxLength:"512"`
	Lifetime    float64           `json:"lifetime_seconds,omitempty" doc:"After how long it ends, whatever runs in it; the operator's default where it is left out" minimum:"0" example:"3600"`
	Idle        float64           `json:"idle_timeout_seconds,omitempty" doc:"After how long without use it ends; never where it is left out" minimum:"0"`
	Labels      map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Kept with the sandbox"`
	Env         map[string]string `json:"env,omitempty" maxProperties:"256" doc:"Added to the environment of its programs"`
	Limits      RunLimits         `json:"limits,omitempty"`
	Network     *Network          `json:"network,omitempty" doc:"Nothing where it is left out"`
	Libraries   []string          `json:"libraries,omitempty" maxItems:"128" doc:"Installed before it opens" example:"[\"numpy\"]"`
	Environment string            `json:"environment,omitempty" maxLength:"64" doc:"Name of a Python environment of the server" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Resettable  bool              `json:"resettable,omitempty" doc:"Lets it be reset to what it is at first"`
}

func (n *NewSandbox) options() llmsandbox.Options {
	return llmsandbox.Options{
		Language: n.Language, Image: n.Image, Lifetime: seconds(n.Lifetime), IdleTimeout: seconds(n.Idle), Labels: n.Labels, Env: n.Env,
		Limits: n.Limits.options(), Network: n.Network.options(), Libraries: n.Libraries, Environment: n.Environment, Resettable: n.Resettable,
	}
}

// Changes are what of a sandbox can be changed. What is left out stays as it is.
type Changes struct {
	Lifetime float64  `json:"lifetime_seconds,omitempty" doc:"After how long from now it ends" minimum:"0"`
	Network  *Network `json:"network,omitempty"`
}

// seconds is a duration of a request. What no duration can hold is longer than any limit.
func seconds(s float64) time.Duration {
	const most = 1e9 // some 30 years
	return time.Duration(min(s, most) * float64(time.Second))
}

type sandboxPath struct {
	ID string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
}

type sandboxAnswer struct{ Body Sandbox }

func describe(i *backend.Info) Sandbox {
	s := Sandbox{
		ID: i.ID, Language: i.Language, Image: i.Image, Backend: i.Backend, Created: i.Created.UTC(), Idle: i.IdleTimeout.Seconds(), Labels: service.UserLabels(i.Labels),
		Limits: SandboxLimits{Memory: max(i.Limits.Memory, 0), CPUs: max(i.Limits.CPUs, 0), PIDs: max(i.Limits.PIDs, 0), Disk: max(i.Limits.Disk, 0)},
	}
	if !i.Deadline.IsZero() {
		s.Deadline = new(i.Deadline.UTC())
	}
	return s
}

// find is a sandbox of the caller as the backend lists it.
func (s *Server) find(ctx context.Context, id string) (*Sandbox, error) {
	list, err := s.service.List(ctx, s.caller(ctx).Project)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("%w: %q has ended, or never was", llmsandbox.ErrNotFound, id)
	}
	return new(describe(&list[at])), nil
}

// sandbox is an open sandbox of the caller.
func (s *Server) sandbox(ctx context.Context, id string) (*llmsandbox.Sandbox, error) {
	return s.service.Get(ctx, s.caller(ctx).Project, id)
}

func (s *Server) sandboxRoutes() {
	const tag = "Sandboxes"
	register(s, operation{
		id: "create-sandbox", method: http.MethodPost, path: "/v1/sandboxes", tag: tag, status: http.StatusCreated, write: true,
		summary: "Create a sandbox", doc: "It lives until its lifetime is over or it is removed, also when the server is started again.",
	}, func(ctx context.Context, in *struct{ Body NewSandbox }) (*sandboxAnswer, error) {
		sb, err := s.service.Create(ctx, s.caller(ctx).Project, in.Body.options())
		if err != nil {
			return nil, err
		}
		trailOf(ctx).sandbox = sb.ID()
		found, err := s.find(ctx, sb.ID())
		if err != nil {
			return nil, err
		}
		return &sandboxAnswer{*found}, nil
	})
	register(s, operation{
		id: "list-sandboxes", method: http.MethodGet, path: "/v1/sandboxes", tag: tag, summary: "List the project's sandboxes", doc: "In the order of their creation.",
	}, s.listSandboxes)
	register(s, operation{
		id: "get-sandbox", method: http.MethodGet, path: "/v1/sandboxes/{id}", tag: tag, summary: "Describe a sandbox",
	}, func(ctx context.Context, in *sandboxPath) (*sandboxAnswer, error) {
		found, err := s.find(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return &sandboxAnswer{*found}, nil
	})
	register(s, operation{
		id: "change-sandbox", method: http.MethodPatch, path: "/v1/sandboxes/{id}", tag: tag, write: true,
		summary: "Change when a sandbox ends, or what it may reach",
	}, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Body Changes
	}) (*sandboxAnswer, error) {
		sb, err := s.sandbox(ctx, in.ID)
		if err == nil && in.Body.Network != nil {
			err = s.service.SetNetwork(ctx, sb, in.Body.Network.options())
		}
		if err == nil && in.Body.Lifetime != 0 {
			err = s.service.SetLifetime(ctx, sb, seconds(in.Body.Lifetime))
		}
		if err != nil {
			return nil, err
		}
		found, err := s.find(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return &sandboxAnswer{*found}, nil
	})
	register(s, operation{
		id: "reset-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/reset", tag: tag, status: http.StatusNoContent, write: true,
		summary: "Make a sandbox what it was at first", doc: "It must have been created as resettable. All that runs in it is ended, and all that was written is removed.",
	}, func(ctx context.Context, in *sandboxPath) (*struct{}, error) {
		sb, err := s.sandbox(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return nil, sb.Reset(ctx)
	})
	register(s, operation{
		id: "remove-sandbox", method: http.MethodDelete, path: "/v1/sandboxes/{id}", tag: tag, status: http.StatusNoContent, write: true,
		summary: "End a sandbox and remove all of it",
	}, func(ctx context.Context, in *sandboxPath) (*struct{}, error) {
		return nil, s.service.Remove(ctx, s.caller(ctx).Project, in.ID)
	})
}

type listRequest struct {
	Labels []string `query:"label,explode" maxItems:"64" doc:"Only sandboxes with this label, as NAME=VALUE, or NAME for any value; may be repeated"`
	After  string   `query:"after" maxLength:"40" doc:"Only those after the one with this id, as next has it"`
	Limit  int      `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most so many"`
}

type listAnswer struct {
	Body struct {
		Sandboxes []Sandbox `json:"sandboxes" nullable:"false"`
		Next      string    `json:"next,omitempty" doc:"Where there are more, what after is to be for them"`
	}
}

func (s *Server) listSandboxes(ctx context.Context, in *listRequest) (*listAnswer, error) {
	list, err := s.service.List(ctx, s.caller(ctx).Project)
	if err != nil {
		return nil, err
	}
	if in.After != "" {
		at := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == in.After })
		if at < 0 {
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("after: there is no sandbox %q any more: list from the beginning", in.After))
		}
		list = list[at+1:]
	}
	out := &listAnswer{}
	out.Body.Sandboxes = []Sandbox{}
	for i := range list {
		d := describe(&list[i])
		if !hasLabels(d.Labels, in.Labels) {
			continue
		}
		if len(out.Body.Sandboxes) == in.Limit {
			out.Body.Next = out.Body.Sandboxes[in.Limit-1].ID
			break
		}
		out.Body.Sandboxes = append(out.Body.Sandboxes, d)
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
