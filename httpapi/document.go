package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
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

// What an operation has in its metadata: the scope that a caller needs, and whether it is noted in the audit log.
const (
	needs   = "needs"
	audited = "audited"
)

// allow lets callers do what their key is for.
func (s *Server) allow(ctx huma.Context, next func(huma.Context)) {
	if scope, ok := ctx.Operation().Metadata[needs].(string); ok && !s.caller(ctx.Context()).Has(scope) {
		s.write(ctx, s.problem(ctx.Context(), newProblem(http.StatusForbidden, "scope", fmt.Sprintf("the key does not have the scope %s: use one that has", scope))))
		return
	}
	next(ctx)
}

// An operation is a method of a path, with what its description says.
type operation struct {
	id, method, path  string
	tag, summary, doc string
	status            int
	write             bool   // it makes, uses or removes something
	scope             string // that it needs; empty: write or read
	anyQuery          bool   // its query is not ours, and its handler checks its path itself
	open              bool   // it needs no key
	signed            bool   // its path has a signature in place of a key
}

// register adds an operation. Each error that its handler returns becomes a problem.
func register[I, O any](s *Server, op operation, handler func(context.Context, *I) (*O, error)) *huma.Operation {
	o := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary, Description: op.doc, DefaultStatus: op.status,
		MaxBodyBytes: apitypes.MaxBody, BodyReadTimeout: -1, // the gate has read it
		SkipValidateParams: op.anyQuery,
		Responses: map[string]*huma.Response{"default": {
			Description: "What went wrong",
			Content: map[string]*huma.MediaType{apitypes.ProblemType: {
				Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[apitypes.Problem](), true, "Problem"),
			}},
		}},
	}
	scope := cmp.Or(op.scope, "read")
	if op.write {
		scope = cmp.Or(op.scope, "write")
	}
	o.Metadata = map[string]any{needs: scope, audited: op.write}
	if op.open {
		o.Metadata, o.Security = nil, []map[string][]string{}
	}
	if op.signed {
		o.Security = []map[string][]string{}
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

// A body is an answer that has nothing else.
type body[T any] struct{ Body T }

// answer is register for an operation that answers with a body.
func answer[I, T any](s *Server, op operation, handler func(context.Context, *I) (T, error)) *huma.Operation {
	return register(s, op, func(ctx context.Context, in *I) (*body[T], error) {
		v, err := handler(ctx, in)
		return &body[T]{v}, err
	})
}

// answerOf is answer for an operation on the caller's sandbox that the path names.
func answerOf[I, T any](s *Server, op operation, handler func(context.Context, *llmsandbox.Sandbox, *I) (T, error)) *huma.Operation {
	return onSandbox(s, op, func(ctx context.Context, sb *llmsandbox.Sandbox, in *I) (*body[T], error) {
		v, err := handler(ctx, sb, in)
		return &body[T]{v}, err
	})
}

// onSandbox is register for an operation on the caller's sandbox that the path names.
func onSandbox[I, O any](s *Server, op operation, handler func(context.Context, *llmsandbox.Sandbox, *I) (*O, error)) *huma.Operation {
	return register(s, op, func(ctx context.Context, in *I) (*O, error) {
		id, _ := ctx.Value(sandboxKey{}).(string)
		sb, err := s.sandbox(ctx, id)
		if err != nil {
			return nil, err
		}
		return handler(ctx, sb, in)
	})
}
