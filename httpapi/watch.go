package httpapi

import (
	"context"
	"iter"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// maxWatch is how long a watch of sandboxes may last: then its client has to show again that it may.
const maxWatch = 10 * time.Minute

func (s *Server) watchRoutes() {
	schemas := s.api.OpenAPI().Components.Schemas
	answers := func(o *huma.Operation, name string, of reflect.Type) {
		o.Responses["200"] = &huma.Response{Description: "Events", Content: map[string]*huma.MediaType{
			eventStream: {Schema: &huma.Schema{Type: huma.TypeString, Description: "The data of an event change is JSON, as " + schemas.Schema(of, true, name).Ref + " describes it"}},
		}}
	}
	answers(onSandbox(s, operation{
		id: "watch-files", method: http.MethodGet, path: "/v1/sandboxes/{id}/files/watch", tag: "Files", summary: "Tell what changes in a directory, until the client leaves",
		doc: "From the answer's beginning on, there is an event change for each, and at the end, if the client has not left, an event problem.",
	}, s.watchFiles), "FileChange", reflect.TypeFor[apitypes.FileChange]())
	answers(register(s, operation{
		id: "watch-sandboxes", method: http.MethodGet, path: "/v1/sandboxes/watch", tag: "Sandboxes", summary: "Tell what changes among the project's sandboxes, until the client leaves",
		doc: "First comes an event sandboxes, whose data has all of them, as the answer of list-sandboxes does, and then an event change for each change. What other servers do, and what ends " +
			"while no server uses it, comes some seconds late. The answer ends after ten minutes, so that keys are looked at again, or with an event problem.",
	}, s.watchSandboxes), "SandboxChange", reflect.TypeFor[apitypes.SandboxChange]())
}

// follow answers with events of what comes, which send sends, until leave is called or the client has gone away. An error is an event problem.
func follow[T any](s *Server, come iter.Seq2[T, error], leave func(), send func(*events, T)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer leave()
		s.sendEvents(c, func(ctx context.Context, e *events) {
			defer context.AfterFunc(ctx, leave)() // the client has gone away
			for v, err := range come {
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
				send(e, v)
			}
		})
	}}
}

func (s *Server) watchFiles(ctx context.Context, sb *llmsandbox.Sandbox, in *struct {
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
	return follow(s, changes, leave, func(e *events, change llmsandbox.FileEvent) {
		e.send("change", apitypes.FileChange{Op: change.Op, Path: text(change.Path), Dir: change.Dir})
	}), nil
}

func (s *Server) watchSandboxes(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	project := s.caller(ctx).Project
	watched, leave, err := s.sockets.enter(ctx, project)
	if err != nil {
		return nil, err
	}
	enough, cancel := context.WithTimeout(watched, maxWatch)
	lists := func(yield func([]apitypes.Sandbox, error) bool) {
		defer cancel()
		for list, err := range s.service.Watch(enough, project) {
			if enough.Err() != nil && watched.Err() == nil {
				return
			}
			if !yield(apitypes.All(list, describe), err) {
				return
			}
		}
	}
	var last []apitypes.Sandbox // nil: none was sent
	return follow(s, lists, func() { cancel(); leave() }, func(e *events, list []apitypes.Sandbox) {
		if last == nil {
			e.send("sandboxes", apitypes.Sandboxes{Sandboxes: list})
		} else {
			for _, change := range changed(last, list) {
				e.send("change", change)
			}
		}
		last = list
	}), nil
}

// changed is what makes one list of sandboxes another.
func changed(from, to []apitypes.Sandbox) []apitypes.SandboxChange {
	var changes []apitypes.SandboxChange
	before, after := byID(from), byID(to)
	for _, s := range from {
		if _, ok := after[s.ID]; !ok {
			changes = append(changes, apitypes.SandboxChange{Op: "remove", Sandbox: s})
		}
	}
	for _, s := range to {
		if was, ok := before[s.ID]; !ok {
			changes = append(changes, apitypes.SandboxChange{Op: "create", Sandbox: s})
		} else if !reflect.DeepEqual(was, s) {
			changes = append(changes, apitypes.SandboxChange{Op: "change", Sandbox: s})
		}
	}
	return changes
}

func byID(list []apitypes.Sandbox) map[string]apitypes.Sandbox {
	m := make(map[string]apitypes.Sandbox, len(list))
	for _, s := range list {
		m[s.ID] = s
	}
	return m
}
