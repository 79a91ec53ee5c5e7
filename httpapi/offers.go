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
	answer(s, operation{
		id: "list-templates", method: http.MethodGet, path: "/v1/templates", tag: tag, summary: "List the templates", doc: "By their names, which requests for sandboxes can have.",
	}, func(context.Context, *struct{}) (out apitypes.Templates, err error) {
		list, err := llmsandbox.Templates()
		if err != nil {
			return out, fmt.Errorf("list the templates: %v", err) // of no class, so that the path of a file is logged and not answered
		}
		return apitypes.Templates{Templates: apitypes.All(list, template)}, nil
	})
	answer(s, operation{
		id: "list-environments", method: http.MethodGet, path: "/v1/environments", tag: tag, summary: "List the environments", doc: "By their names, which requests can have.",
	}, func(context.Context, *struct{}) (out apitypes.Environments, err error) {
		list, err := environmentsOf()
		if err != nil {
			return out, fmt.Errorf("list the environments: %v", err) // as above
		}
		return apitypes.Environments{Environments: list}, nil
	})
	answer(s, operation{
		id: "get-pool", method: http.MethodGet, path: "/v1/pool", tag: tag, summary: "Tell how many sandboxes are ready for programs",
	}, func(context.Context, *struct{}) (apitypes.Pool, error) {
		stats, languages, kept := s.service.Warm()
		return apitypes.Pool{
			Languages: slices.Clone(languages), Kept: kept, Ready: stats.Idle, Creating: stats.Creating, InUse: stats.InUse, Waiting: stats.Waiting, Hits: stats.Hits, Misses: stats.Misses,
		}, nil
	})
}

func template(t llmsandbox.TemplateInfo) apitypes.Template {
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
