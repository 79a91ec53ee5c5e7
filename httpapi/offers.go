package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/environments"
)

// offerRoutes tell what the operator has for sandboxes. They are the same for all projects.
func (s *Server) offerRoutes() {
	const tag = "Server"
	type templates struct {
		Body struct {
			Templates []apitypes.Template `json:"templates" nullable:"false"`
		}
	}
	register(s, operation{
		id: "list-templates", method: http.MethodGet, path: "/v1/templates", tag: tag, summary: "List the templates", doc: "By their names, which requests for sandboxes can have.",
	}, func(context.Context, *struct{}) (*templates, error) {
		list, err := llmsandbox.Templates()
		if err != nil {
			return nil, fmt.Errorf("list the templates: %v", err) // of no class, so that the path of a file is logged and not answered
		}
		out := &templates{}
		out.Body.Templates = make([]apitypes.Template, 0, len(list))
		for i := range list {
			out.Body.Templates = append(out.Body.Templates, template(&list[i]))
		}
		return out, nil
	})
	type known struct {
		Body struct {
			Environments []apitypes.Environment `json:"environments" nullable:"false"`
		}
	}
	register(s, operation{
		id: "list-environments", method: http.MethodGet, path: "/v1/environments", tag: tag, summary: "List the environments", doc: "By their names, which requests can have.",
	}, func(context.Context, *struct{}) (*known, error) {
		list, err := environmentsOf()
		if err != nil {
			return nil, fmt.Errorf("list the environments: %v", err) // as above
		}
		out := &known{}
		out.Body.Environments = list
		return out, nil
	})
	type pool struct{ Body apitypes.Pool }
	register(s, operation{
		id: "get-pool", method: http.MethodGet, path: "/v1/pool", tag: tag, summary: "Tell how many sandboxes are ready for programs",
	}, func(context.Context, *struct{}) (*pool, error) {
		stats, languages, kept := s.service.Warm()
		return &pool{apitypes.Pool{
			Languages: slices.Clone(languages), Kept: kept, Ready: stats.Idle, Creating: stats.Creating, InUse: stats.InUse, Waiting: stats.Waiting, Hits: stats.Hits, Misses: stats.Misses,
		}}, nil
	})
}

func template(t *llmsandbox.TemplateInfo) apitypes.Template {
	out := apitypes.Template{
		Name: t.Name, Language: t.Language, Image: t.Image, Environment: t.Environment, Libraries: t.Libraries, Imports: t.Imports, Env: t.Env,
		Limits: apitypes.RunLimits{
			SandboxLimits: apitypes.SandboxLimits{Memory: max(t.Limits.Memory, 0), CPUs: max(t.Limits.CPUs, 0), PIDs: max(t.Limits.PIDs, 0), Disk: max(t.Limits.Disk, 0)},
			Timeout:       max(t.Limits.Timeout, 0).Seconds(), Output: max(t.Limits.Output, 0),
		},
	}
	if t.Network != "" || len(t.Allow) > 0 {
		out.Network = &apitypes.Network{Mode: t.Network, Allow: t.Allow}
	}
	return out
}

func environmentsOf() ([]apitypes.Environment, error) {
	names, err := environments.Names()
	if err != nil {
		return nil, err
	}
	list := make([]apitypes.Environment, 0, len(names))
	for _, name := range names {
		lock, err := environments.Find(name)
		if err != nil {
			return nil, err
		}
		e := apitypes.Environment{Name: name, Language: lock.Language, Libraries: append([]string{}, lock.Libraries...), Packages: make([]string, 0, len(lock.Packages))}
		for _, p := range lock.Packages {
			e.Packages = append(e.Packages, p.Name+"=="+p.Version)
		}
		slices.Sort(e.Packages)
		list = append(list, e)
	}
	return list, nil
}
