package egress

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// refusalOf is the refusal in err, or nil.
func refusalOf(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

func quoted(s string) string { return strconv.QuoteToASCII(s) }

// explain is what the sandbox gets about err, in sentences a model can act on.
func explain(host string, port uint16, err error) string {
	at := printable(host)
	if port != 0 {
		at = ruleFor(at, port)
	}
	if r := refusalOf(err); r != nil {
		text := fmt.Sprintf("llmsandbox refused the connection to %s: %s.\n", at, r.Error())
		if remedy := r.remedy(printable(host), port); remedy != "" {
			text += remedy + "\n"
		}
		return text
	}
	return fmt.Sprintf("llmsandbox could not connect to %s: %s. The sandbox's network rules allow it.\n", at, err.Error())
}

// statusOf is the HTTP status for err.
func statusOf(err error) int {
	var f *failure
	switch {
	case refusalOf(err) != nil:
		return http.StatusForbidden
	case errors.As(err, &f) && f.kind == failedTimeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// refusedHeader distinguishes a refusal by this proxy from an answer of what was reached.
const refusedHeader = "X-Llmsandbox-Refused"

// answer writes err as a response.
func answer(w http.ResponseWriter, host string, port uint16, err error) {
	if r := refusalOf(err); r != nil {
		w.Header().Set(refusedHeader, string(r.Code))
	}
	text := explain(host, port, err)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(statusOf(err))
	_, _ = w.Write([]byte(text)) // the client may have disconnected
}
