package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apierror"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// known is what an error of the service is for a client; nil: it is none of its business.
func known(err error) *Refusal {
	var spent *service.SpentError
	switch {
	case errors.As(err, &spent):
		return &Refusal{Status: http.StatusTooManyRequests, Message: err.Error(), Header: http.Header{"Should-Retry": {"false"}}}
	case errors.Is(err, service.ErrBusy), errors.Is(err, service.ErrQuota):
		return refusal(http.StatusTooManyRequests, err.Error())
	case errors.Is(err, service.ErrClosed):
		return refusal(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, service.ErrRepeated):
		return refusal(http.StatusConflict, err.Error())
	case errors.Is(err, service.ErrNotAllowed):
		return refusal(http.StatusBadRequest, err.Error())
	case errors.Is(err, llmsandbox.ErrNotFound), errors.Is(err, llmsandbox.ErrClosed):
		return refusal(http.StatusNotFound, "the sandbox was not found")
	}
	at := slices.IndexFunc(apierror.Kinds, func(k apierror.Kind) bool { return errors.Is(err, k.Err) })
	if at < 0 {
		return nil
	}
	status := apierror.Kinds[at].Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest // which the SDKs know
	}
	return refusal(status, err.Error())
}

// answerGone answers a request for a sandbox that cannot be had, in the words by which SDKs tell that from a port that is not open.
func (s *Server) answerGone(w http.ResponseWriter, r *http.Request, id string, err error) {
	if !errors.Is(err, llmsandbox.ErrNotFound) && !errors.Is(err, llmsandbox.ErrClosed) && !errors.Is(err, llmsandbox.ErrPaused) {
		answer(w, s.refusalOf(r.Context(), err))
		return
	}
	send(w, http.StatusBadGateway, struct {
		SandboxID string `json:"sandboxId"`
		Message   string `json:"message"`
		Code      int    `json:"code"`
	}{outerID(id), goneMessage, http.StatusBadGateway})
}

// goneMessage is that of a sandbox that cannot be had, literally.
const goneMessage = "The sandbox was not found"

// rpcErrors writes errors as those hear them who call a procedure.
var rpcErrors = connect.NewErrorWriter()

// answerTooMany answers a request that comes too soon, in the form of the port and route that it is for.
func (s *Server) answerTooMany(w http.ResponseWriter, r *http.Request, port int, refused *Refusal) {
	switch {
	case port == interpreterPort:
		answerText(w, refused)
	case port == envdPort && (strings.HasPrefix(r.URL.Path, processPath) || strings.HasPrefix(r.URL.Path, filesystemPath)):
		maps.Copy(w.Header(), refused.Header)
		_ = rpcErrors.Write(w, r, s.rpcError(r.Context(), refused)) // a client that is gone hears nothing
	default:
		answer(w, refused)
	}
}

// readBody reads a body of at most so many bytes.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *Refusal) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, refusal(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", most))
	case err != nil:
		return nil, refusal(http.StatusBadRequest, "the body did not come")
	}
	return text, nil
}

// decode reads JSON. What it does not know, it leaves.
func decode(text []byte, v any) *Refusal {
	if err := json.Unmarshal(text, v); err != nil {
		return refusal(http.StatusBadRequest, "the body is not what this request takes: "+err.Error())
	}
	return nil
}

// isSigned reports whether a request is for a file by a signed URL.
func isSigned(r *http.Request) bool {
	return r.URL.Path == filesPath && r.URL.Query().Has("signature")
}

// corsHeaders are those of requests that pages may send; * does not stand for Authorization. A page has a key or token of its own: browsers add neither.
const corsHeaders = "*, Authorization"

// cors lets pages of all origins read answers, and answers their questions beforehand. It reports whether the request was one.
func cors(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "X-Next-Token, X-Total-Running, Content-Disposition")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
