package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

func (s *Server) watchRoute() {
	schemas := s.api.OpenAPI().Components.Schemas
	onSandbox(s, operation{
		id: "watch-files", method: http.MethodGet, path: "/v1/sandboxes/{id}/files/watch", tag: "Files", summary: "Tell what changes in a directory, until the client leaves",
		doc: "From the answer's beginning on, there is an event change for each, and at the end, if the client has not left, an event problem.",
	}, s.watch).Responses["200"] = &huma.Response{Description: "Events", Content: map[string]*huma.MediaType{
		eventStream: {Schema: &huma.Schema{Type: huma.TypeString, Description: "The data of an event change is JSON, as " + schemas.Schema(reflect.TypeFor[apitypes.FileChange](), true, "FileChange").Ref + " describes it"}},
	}}
}

func (s *Server) watch(ctx context.Context, sb *llmsandbox.Sandbox, in *struct {
	ID        string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Path      string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"A directory" example:"project"`
	Recursive bool   `query:"recursive" doc:"Also in those below it"`
}) (*huma.StreamResponse, error) {
	watched, leave, err := s.sockets.enter(ctx, s.caller(ctx).Project)
	if err != nil {
		return nil, err
	}
	changes, err := sb.Watch(watched, in.Path, in.Recursive)
	if err != nil {
		leave()
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer leave()
		s.sendEvents(c, func(ctx context.Context, e *events) {
			defer context.AfterFunc(ctx, leave)() // the client has gone away
			for change, err := range changes {
				switch {
				case s.stopping.Err() != nil:
					e.send("problem", s.problem(ctx, service.ErrClosed))
					return
				case ctx.Err() != nil:
					return
				case err != nil:
					e.send("problem", s.problem(ctx, err))
					return
				}
				e.send("change", apitypes.FileChange{Op: change.Op, Path: strings.ToValidUTF8(change.Path, "\uFFFD"), Dir: change.Dir})
			}
		})
	}}, nil
}
