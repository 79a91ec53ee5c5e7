package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/service"
	"github.com/llmsandbox/llmsandbox/pool"
)

// A Problem is the body of every answer that is no success, as RFC 9457 has it.
type Problem struct {
	Title  string `json:"title" doc:"What the status means"`
	Status int    `json:"status" doc:"The HTTP status" minimum:"400" maximum:"599"`
	Code   string `json:"code" doc:"What went wrong, for programs" example:"not_found"`
	Detail string `json:"detail" doc:"What failed, why, and what to do"`
	// Fields are what was wrong with which part of the request.
	Fields []Field `json:"fields,omitempty" doc:"What is wrong with which parts of the request"`

	headers http.Header
}

// A Field is a part of a request, such as body.limits.cpus, and what is wrong with it.
type Field struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

func (p *Problem) Error() string             { return p.Detail }
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) GetHeaders() http.Header   { return p.headers }
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

func newProblem(status int, code, detail string) *Problem {
	p := &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		p.headers = http.Header{"Retry-After": {"2"}}
	}
	return p
}

// kinds are the errors whose text is about the request, and may be seen by who sent it.
var kinds = []struct {
	err    error
	status int
	code   string
}{
	{llmsandbox.ErrNotFound, http.StatusNotFound, "not_found"},
	{llmsandbox.ErrKernelClosed, http.StatusNotFound, "not_found"},
	{llmsandbox.ErrDetached, http.StatusConflict, "detached"},
	{llmsandbox.ErrClosed, http.StatusNotFound, "not_found"},
	{service.ErrNotAllowed, http.StatusForbidden, "not_allowed"},
	{service.ErrQuota, http.StatusTooManyRequests, "quota"},
	{service.ErrBusy, http.StatusTooManyRequests, "busy"},
	{service.ErrClosed, http.StatusServiceUnavailable, "stopping"},
	{pool.ErrExhausted, http.StatusTooManyRequests, "busy"},
	{llmsandbox.ErrUnknownLanguage, http.StatusUnprocessableEntity, "unknown_language"},
	{llmsandbox.ErrEmptyCommand, http.StatusUnprocessableEntity, "invalid"},
	{llmsandbox.ErrWorkdir, http.StatusUnprocessableEntity, "workdir"},
	{llmsandbox.ErrToolchain, http.StatusUnprocessableEntity, "toolchain"},
	{llmsandbox.ErrEnvironmentNotFound, http.StatusUnprocessableEntity, "environment_not_found"},
	{llmsandbox.ErrRefused, http.StatusForbidden, "refused"},
	{llmsandbox.ErrInstall, http.StatusUnprocessableEntity, "install"},
	{llmsandbox.ErrImageNotFound, http.StatusUnprocessableEntity, "image_not_found"},
	{llmsandbox.ErrNotEnforced, http.StatusUnprocessableEntity, "not_enforced"},
	{llmsandbox.ErrUnsupported, http.StatusUnprocessableEntity, "unsupported"},
	{llmsandbox.ErrUnsafePath, http.StatusUnprocessableEntity, "unsafe_path"},
	{llmsandbox.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{llmsandbox.ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{fs.ErrNotExist, http.StatusNotFound, "file_not_found"},
	{fs.ErrExist, http.StatusConflict, "exists"},
	{fs.ErrPermission, http.StatusForbidden, "permission"},
	{llmsandbox.ErrLost, http.StatusServiceUnavailable, "lost"},
}

// problem is what a client is told of an error. The text of an error that no client can do anything about is logged, and not sent: it may
// name what is the operator's.
func (s *Server) problem(ctx context.Context, err error) *Problem {
	p := s.problemOf(ctx, err)
	trailOf(ctx).outcome = p.Code
	return p
}

func (s *Server) problemOf(ctx context.Context, err error) *Problem {
	var known *Problem
	if errors.As(err, &known) {
		return known
	}
	for _, k := range kinds {
		if !errors.Is(err, k.err) {
			continue
		}
		if k.status < http.StatusInternalServerError && !namesHost(err) {
			return newProblem(k.status, k.code, err.Error())
		}
		s.cfg.Log.WarnContext(ctx, "a request failed", "error", err)
		return newProblem(k.status, k.code, k.err.Error())
	}
	var refused *agentproto.Error // by the sandbox itself, of which it names nothing else
	if errors.As(err, &refused) && refused.Code != agentproto.CodeInternal {
		return newProblem(http.StatusUnprocessableEntity, "invalid", err.Error())
	}
	if ctx.Err() != nil {
		return newProblem(http.StatusRequestTimeout, "canceled", "the request was ended by its client")
	}
	s.cfg.Log.ErrorContext(ctx, "a request failed", "error", err)
	return newProblem(http.StatusInternalServerError, "internal", "the server failed: its log says why")
}

// namesHost reports whether an error is about a file of this machine.
func namesHost(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && !errors.Is(err, llmsandbox.ErrWorkdir)
}

// refuse answers a request that does not come to a handler.
func refuse(w http.ResponseWriter, status int, message string) {
	code := strings.ToLower(strings.ReplaceAll(http.StatusText(status), " ", "_"))
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(status)
	// A client that has disconnected misses nothing.
	_ = json.NewEncoder(w).Encode(newProblem(status, code, message))
}

// asProblems turns the errors of the library that reads requests into problems.
func asProblems(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := newProblem(m.Status, "invalid", m.Detail)
	if m.Status == http.StatusUnsupportedMediaType {
		p.Detail = "the body is not JSON, or not said to be: send it with Content-Type: application/json"
	}
	for _, e := range m.Errors {
		p.Fields = append(p.Fields, Field{Location: e.Location, Message: e.Message})
	}
	return p, nil
}
