package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// document is the OpenAPI document without its operations.
func (s *Server) document() huma.Config {
	c := huma.DefaultConfig("LLM Sandbox", s.cfg.Version)
	c.Info.Description = "Run code that language models wrote, in sandboxes."
	c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", nil // pages of others, and links that no client needs
	c.Transformers = []huma.Transformer{asProblems}
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer"},
		"key":    {Type: "apiKey", In: "header", Name: "X-API-Key"},
	}
	if s.cfg.Authenticate != nil {
		c.Security = []map[string][]string{{"bearer": {}}, {"key": {}}}
	}
	return c
}

// needsWrite marks operations that make, use or remove something.
const needsWrite = "write"

// allow lets callers do what their key is for.
func (s *Server) allow(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().Metadata[needsWrite] != nil && !s.caller(ctx.Context()).Write {
		p := newProblem(http.StatusForbidden, "scope", "this key may look at sandboxes only: use one with the scope write")
		ctx.SetHeader("Content-Type", problemType)
		ctx.SetStatus(p.Status)
		// A client that has disconnected misses nothing.
		_ = s.api.Marshal(ctx.BodyWriter(), "application/json", p)
		return
	}
	next(ctx)
}

// An operation is a method of a path, with what its description says.
type operation struct {
	id, method, path  string
	tag, summary, doc string
	status            int
	write             bool
}

// register adds an operation. Each error that its handler returns becomes a problem.
func register[I, O any](s *Server, op operation, handler func(context.Context, *I) (*O, error)) *huma.Operation {
	o := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary, Description: op.doc, DefaultStatus: op.status,
		MaxBodyBytes: maxBody, BodyReadTimeout: -1, // the gate has read it
		Responses: map[string]*huma.Response{"default": {
			Description: "What went wrong",
			Content: map[string]*huma.MediaType{problemType: {
				Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem"),
			}},
		}},
	}
	if op.write {
		o.Metadata = map[string]any{needsWrite: true}
	}
	huma.Register(s.api, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
	item := s.api.OpenAPI().Paths[op.path]
	return map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
	}[op.method]
}
