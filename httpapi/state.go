package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox/internal/apierror"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

func (s *Server) routes() {
	s.sandboxRoutes()
	s.runRoutes()
	s.artifactRoutes()
	s.fileRoutes()
	s.archiveRoutes()
	s.volumeRoutes()
	s.imageRoutes()
	s.watchRoutes()
	s.signedRoutes()
	s.kernelRoutes()
	s.processRoutes()
	s.terminalRoutes()
	s.portRoutes()
	s.shareRoutes()
	s.factRoutes()
	s.stateRoutes()
	s.offerRoutes()
	s.auditRoutes()
	s.keyRoutes()
	s.quotaRoutes()
	s.usageRoutes()
}

// readyTime is how long what the server needs may take to answer.
const readyTime = 5 * time.Second

// stateRoutes tell how the server is.
func (s *Server) stateRoutes() {
	type health struct {
		Body struct {
			Status string `json:"status" enum:"ok"`
		}
	}
	ok := func(context.Context, *struct{}) (*health, error) {
		h := &health{}
		h.Body.Status = "ok"
		return h, nil
	}
	register(s, operation{id: "health", method: http.MethodGet, path: "/healthz", tag: "Server", summary: "Tell that the server answers", open: true}, ok)
	register(s, operation{
		id: "ready", method: http.MethodGet, path: "/readyz", tag: "Server", summary: "Tell that the server can list sandboxes and has its database", open: true,
	}, func(ctx context.Context, in *struct{}) (*health, error) {
		ctx, cancel := context.WithTimeout(ctx, readyTime)
		defer cancel()
		what := "backend"
		_, err := s.service.List(ctx, s.caller(ctx).Project)
		if err == nil && s.cfg.Ready != nil {
			what, err = "database", s.cfg.Ready(ctx)
		}
		if err != nil {
			s.cfg.Log.WarnContext(ctx, "the server is not ready", "error", err)
			return nil, newProblem(http.StatusServiceUnavailable, apierror.NotReady, "the "+what+" does not answer: the server's log says why")
		}
		return ok(ctx, in)
	})
	register(s, operation{
		id: "metrics", method: http.MethodGet, path: "/metrics", tag: "Server", summary: "Tell what Prometheus collects", doc: "It is about the server as a whole.",
	}, s.metrics.serve).Responses["200"] = &huma.Response{
		Description: "The metrics", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	answer(s, operation{
		id: "list-languages", method: http.MethodGet, path: "/v1/languages", tag: "Server", summary: "List the languages",
	}, func(context.Context, *struct{}) (apitypes.Languages, error) {
		return apitypes.Languages{Languages: apitypes.All(all.All(), func(l *language.Language) apitypes.Language {
			return apitypes.Language{Name: l.Name, Title: l.Title, Aliases: l.Aliases, Extensions: l.Extensions}
		})}, nil
	})
}
