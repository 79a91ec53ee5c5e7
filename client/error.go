package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apierror"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// An Error is what a server answers where it does not do what it was asked for. errors.Is finds the error of package llmsandbox, or of io/fs, that
// its code stands for: not_found is llmsandbox.ErrNotFound and ErrClosed, file_not_found fs.ErrNotExist, and so on.
type Error struct {
	// Status is the HTTP status of the answer.
	Status int
	// Code says what went wrong, for programs, such as "not_found", "quota" or "not_allowed". It is empty where the answer is not this API's,
	// but that of something between.
	Code string
	// Detail says what failed, why, and what to do. It is the server's text.
	Detail string
}

// Error has the detail without control characters, so that it is safe to print.
func (e *Error) Error() string {
	text := strings.Join(strings.Fields(termsafe.String(e.Detail)), " ")
	if text == "" {
		text = http.StatusText(e.Status)
	}
	if e.Code == "" {
		return fmt.Sprintf("%s (status %d)", text, e.Status)
	}
	return fmt.Sprintf("%s (status %d, %q)", text, e.Status, e.Code)
}

// Is reports whether the error's code stands for target.
func (e *Error) Is(target error) bool {
	if target == llmsandbox.ErrLost && e.Code == "" && (e.Status == http.StatusBadGateway || e.Status == http.StatusGatewayTimeout) { //nolint:errorlint // it is Is itself
		return true // something between has lost the server
	}
	for _, k := range apierror.Kinds {
		if k.Code == e.Code && k.Err == target { //nolint:errorlint // it is Is itself
			return true
		}
	}
	return false
}

// mayHaveBegun reports whether the program of a run that ended so may have been started.
func (e *Error) mayHaveBegun() bool {
	switch {
	case e.Code == "canceled", e.Is(llmsandbox.ErrLost):
		return true
	case e.Status >= http.StatusMultipleChoices && e.Status < http.StatusInternalServerError:
		return false
	default:
		return !apierror.BegunNothing(e.Status, e.Code)
	}
}

// Bounds of an answer that is no success. Details are sentences.
const (
	maxProblem  = 256 << 10
	maxDetail   = 8 << 10
	maxLocation = 200
)

// refusal reads an answer that is no success.
func refusal(res *http.Response) *Error {
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		to := cut(res.Header.Get("Location"), maxLocation)
		return &Error{Status: res.StatusCode, Detail: fmt.Sprintf("the server redirects to %q, where the key is not sent: use the address to which it belongs", to)}
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == apitypes.ProblemType {
		// What cannot be read of it says no less than its status.
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem))
		var p apitypes.Problem
		if json.Unmarshal(text, &p) == nil {
			return problemError(res.StatusCode, &p)
		}
	}
	return &Error{Status: res.StatusCode, Detail: "the server answers " + strconv.Itoa(res.StatusCode) + " " + http.StatusText(res.StatusCode) + ", and nothing of this API: is the address right?"}
}

// problemError is a problem as an error.
func problemError(status int, p *apitypes.Problem) *Error {
	detail := p.Detail
	for i, f := range p.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		if detail += sep + f.Location + ": " + f.Message; len(detail) > maxDetail {
			break
		}
	}
	return &Error{Status: status, Code: cut(p.Code, maxLocation), Detail: cut(detail, maxDetail)}
}

// cut is the beginning of a text of any length.
func cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + " ..."
	}
	return s
}

// lost is an error after which it is not known what became of a request.
func lost(err error) error { return errclass.Of(llmsandbox.ErrLost, err) }

// errUnusable is of an answer that is none of this API.
var errUnusable = errors.New("the server's answer cannot be used")

// malformed is an error that is errUnusable.
func malformed(format string, args ...any) error {
	return lost(fmt.Errorf("%w: "+format, append([]any{errUnusable}, args...)...))
}
