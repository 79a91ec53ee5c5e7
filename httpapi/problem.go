package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/apierror"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/service"
	"github.com/llmsandbox/llmsandbox/pool"
)

// A problem is apitypes.Problem as an error, with the headers of its answer.
type problem struct {
	apitypes.Problem

	headers http.Header
}

func (p *problem) Error() string             { return p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) GetHeaders() http.Header   { return p.headers }
func (p *problem) ContentType(string) string { return apitypes.ProblemType }

func newProblem(status int, code, detail string) *problem {
	p := &problem{Problem: apitypes.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}}
	if apierror.BegunNothing(status, code) {
		p.headers = http.Header{"Retry-After": {"2"}}
	}
	return p
}

// kinds are the errors whose text is about the request, and may be seen by who sent it.
var kinds = slices.Concat([]apierror.Kind{
	{Err: service.ErrNotAllowed, Status: http.StatusForbidden, Code: "not_allowed"},
	{Err: service.ErrQuota, Status: http.StatusTooManyRequests, Code: "quota"},
	{Err: ErrManyKeys, Status: http.StatusTooManyRequests, Code: "quota"},
	{Err: service.ErrRepeated, Status: http.StatusConflict, Code: "idempotency"},
	{Err: service.ErrBusy, Status: http.StatusTooManyRequests, Code: "busy"},
	{Err: service.ErrClosed, Status: http.StatusServiceUnavailable, Code: apierror.Stopping},
	{Err: service.ErrNotKept, Status: http.StatusServiceUnavailable, Code: "not_kept"},
	{Err: pool.ErrExhausted, Status: http.StatusTooManyRequests, Code: "busy"},
}, apierror.Kinds, []apierror.Kind{ // what else is known of an error says more
	{Err: errNoSpace, Status: http.StatusInsufficientStorage, Code: "no_space"},
	{Err: errNoFiles, Status: http.StatusServiceUnavailable, Code: "overloaded"},
	{Err: service.ErrUnavailable, Status: http.StatusServiceUnavailable, Code: apierror.Unavailable},
})

// Errors whose text is not for clients, who get that of the class.
var (
	errNoSpace = errors.New("the server's disk is full: try again later")
	errNoFiles = errors.New("the server has as many files and connections open as it may: try again later")
)

// sandboxKey is of the id of the sandbox that a request is about.
type sandboxKey struct{}

// processKey is of the number of the process, in that sandbox.
type processKey struct{}

// name notes which sandbox and process a request is about.
func (s *Server) name(ctx huma.Context, next func(huma.Context)) {
	next(huma.WithValue(huma.WithValue(ctx, sandboxKey{}, sandboxOf(ctx)), processKey{}, ctx.Param("process")))
}

// problem is what a client is told of an error. The text of an error that no client can do anything about is logged, and not sent: it may
// name what is the operator's.
func (s *Server) problem(ctx context.Context, err error) *problem {
	p := s.problemOf(ctx, err)
	trailOf(ctx).outcome = p.Code
	return p
}

func (s *Server) problemOf(ctx context.Context, err error) *problem {
	var known *problem
	if errors.As(err, &known) {
		return known
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = errclass.Of(errNoSpace, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		err = errclass.Of(errNoFiles, err)
	}
	at := slices.IndexFunc(kinds, func(k apierror.Kind) bool { return errors.Is(err, k.Err) })
	if at >= 0 && kinds[at].Status < http.StatusInternalServerError && !namesHost(err) {
		p := newProblem(kinds[at].Status, kinds[at].Code, err.Error())
		if spent := (*service.SpentError)(nil); errors.As(err, &spent) {
			p.headers.Set("Retry-After", strconv.Itoa(max(int(math.Ceil(time.Until(spent.Until).Seconds())), 1)))
		}
		return p
	}
	var refused *agentproto.Error // by the sandbox itself, of which it names nothing else
	if at < 0 && errors.As(err, &refused) && refused.Code != agentproto.CodeInternal {
		return newProblem(http.StatusUnprocessableEntity, "invalid", err.Error())
	}
	if ctx.Err() != nil {
		return newProblem(http.StatusRequestTimeout, "canceled", "the request was ended by its client")
	}
	if id, _ := ctx.Value(sandboxKey{}).(string); id != "" && s.service.Ended(ctx, s.caller(ctx).Project, id) {
		return newProblem(http.StatusNotFound, "not_found", "the sandbox has ended meanwhile")
	}
	if at >= 0 {
		s.cfg.Log.WarnContext(ctx, "a request failed", "error", err)
		return newProblem(kinds[at].Status, kinds[at].Code, kinds[at].Err.Error())
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
	writeProblem(w, newProblem(status, code, message))
}

// writeProblem answers with a problem, and with the headers that are set already.
func writeProblem(w http.ResponseWriter, p *problem) {
	w.Header().Set("Content-Type", apitypes.ProblemType)
	w.WriteHeader(p.Status)
	// A client that has disconnected misses nothing.
	_ = json.NewEncoder(w).Encode(p)
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
		p.Fields = append(p.Fields, apitypes.Field{Location: e.Location, Message: e.Message})
	}
	return p, nil
}
