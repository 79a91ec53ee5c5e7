package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

// Bounds of artifacts that are kept for those who fetch them. What is beyond is in the result, as all is without references.
const (
	artifactTime          = 10 * time.Minute
	maxArtifactsOfProject = 64 << 20  // bytes
	maxArtifacts          = 256 << 20 // bytes, of all projects
	artifactCost          = 1 << 10   // bytes that each counts for beside its own
)

const artifactsPath = "/v1/artifacts/"

// artifacts holds the content of artifacts by random references. Each belongs to one project.
type artifacts struct {
	newName func() string

	mu   sync.Mutex
	kept map[string]keptArtifact
	of   map[string]int // bytes by project; none is zero
	all  int
}

type keptArtifact struct {
	project string
	data    []byte
}

// keep keeps content for a while, and returns its reference; empty: there is no room for it.
func (a *artifacts) keep(project string, data []byte) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := len(data) + artifactCost
	if a.of[project]+size > maxArtifactsOfProject || a.all+size > maxArtifacts {
		return ""
	}
	if a.kept == nil {
		a.kept, a.of = map[string]keptArtifact{}, map[string]int{}
	}
	ref := a.newName()
	a.kept[ref] = keptArtifact{project, data}
	a.of[project] += size
	a.all += size
	time.AfterFunc(artifactTime, func() { a.drop(ref) })
	return ref
}

func (a *artifacts) drop(ref string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.kept[ref]
	if !ok {
		return
	}
	size := len(k.data) + artifactCost
	delete(a.kept, ref)
	if a.of[k.project] -= size; a.of[k.project] == 0 {
		delete(a.of, k.project)
	}
	a.all -= size
}

func (a *artifacts) find(project, ref string) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.kept[ref]
	return k.data, ok && k.project == project
}

// A content is that of an artifact, or where it is.
type content struct {
	Data *[]byte `json:"data,omitempty" contentEncoding:"base64" doc:"Its content; left out where there is a path"`
	Size int     `json:"size_bytes,omitempty" doc:"Of the content that the path leads to"`
	Path string  `json:"path,omitempty" doc:"Where its content is, for ten minutes and for keys of the project" example:"/v1/artifacts/k3v9x7m2p4qnr6tw"`
}

// A resultArtifact has the JSON form of artifact.Artifact, or a path in place of the content.
type resultArtifact struct {
	Name   string          `json:"name"`
	MIME   string          `json:"mime"`
	Source string          `json:"source,omitempty" doc:"What made it" example:"matplotlib"`
	Title  string          `json:"title,omitempty"`
	Figure int             `json:"figure,omitempty"`
	Width  int             `json:"width,omitempty"`
	Height int             `json:"height,omitempty"`
	DPI    float64         `json:"dpi,omitempty"`
	Chart  *artifact.Chart `json:"chart,omitempty"`
	Also   []resultForm    `json:"also,omitempty" doc:"Other forms of the same thing"`
	content
}

type resultForm struct {
	MIME string `json:"mime"`
	content
}

func (a *artifacts) content(project string, data []byte) content {
	if ref := a.keep(project, data); ref != "" {
		return content{Size: len(data), Path: artifactsPath + ref}
	}
	return content{Data: &data}
}

// refer is a result as JSON, whose artifacts are kept for those who fetch them.
func (a *artifacts) refer(project string, res *llmsandbox.Result) (json.RawMessage, error) {
	list := make([]resultArtifact, 0, len(res.Artifacts))
	for _, of := range res.Artifacts {
		r := resultArtifact{
			Name: of.Name, MIME: of.MIME, Source: of.Source, Title: of.Title, Figure: of.Figure, Width: of.Width, Height: of.Height, DPI: of.DPI, Chart: of.Chart,
			content: a.content(project, of.Data),
		}
		for _, form := range of.Also {
			r.Also = append(r.Also, resultForm{form.MIME, a.content(project, form.Data)})
		}
		list = append(list, r)
	}
	plain := *res
	plain.Artifacts = nil
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	if fields["artifacts"], err = json.Marshal(list); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// referring is the ending of a program whose request has asked for references, if it has.
func (s *Server) referring(ctx context.Context, asked string, end ending, err error) (ending, error) {
	res, ok := end.answer.(*llmsandbox.Result)
	if asked != "reference" || !ok {
		return end, err
	}
	text, failed := s.artifacts.refer(s.caller(ctx).Project, res)
	if failed != nil { // a result always has a form, and with its content it is one, too
		s.cfg.Log.ErrorContext(ctx, "artifacts are in the result, and not referred to", "error", failed)
		return end, err
	}
	end.answer = text
	return end, err
}

func (s *Server) artifactRoutes() {
	type answer struct {
		Type        string `header:"Content-Type"`
		Disposition string `header:"Content-Disposition"`
		Body        []byte
	}
	register(s, operation{
		id: "read-artifact", method: http.MethodGet, path: artifactsPath + "{artifact}", tag: "Programs", summary: "Read an artifact that a result refers to",
		doc: "It is kept for ten minutes, and until the server ends. What type it is, the result says.",
	}, func(ctx context.Context, in *struct {
		Artifact string `path:"artifact" maxLength:"40" doc:"As the result's path has it" example:"k3v9x7m2p4qnr6tw"`
	}) (*answer, error) {
		data, ok := s.artifacts.find(s.caller(ctx).Project, in.Artifact)
		if !ok {
			return nil, newProblem(http.StatusNotFound, "not_found", "there is no such artifact: its time is over, or it never was")
		}
		return &answer{octets, "attachment", data}, nil
	}).Responses["200"] = &huma.Response{Description: "Its content", Content: binary(octets)}
}
