package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// A Code names the reason why something was refused: the value of the header
// X-Llmsandbox-Refused.
type Code string

// The codes.
const (
	RefusedNoNetwork  Code = "no-network"       // the mode is none
	RefusedNotAllowed Code = "not-allowed"      // no rule names it
	RefusedMetadata   Code = "metadata"         // a cloud's metadata service
	RefusedAddress    Code = "special-address"  // loopback, private, reserved, this machine's
	RefusedHost       Code = "invalid-host"     // neither a name nor an address
	RefusedOtherName  Code = "other-name"       // asked for one name, then spoke to another
	RefusedHiddenName Code = "hidden-name"      // TLS that does not say or hides to whom
	RefusedRelay      Code = "relay"            // a proxy's language to what was reached
	RefusedProtocol   Code = "unknown-protocol" // not what this proxy speaks
	RefusedTooMany    Code = "too-many"         // more connections at once than allowed
	RefusedPolicy     Code = "policy-changed"   // it was open when the policy changed
	RefusedUnreadable Code = "unreadable"       // a secret's host answered in an encoding that hides it
)

// A Refusal is why the policy does not let a connection be.
type Refusal struct {
	Code Code
	what string // of RefusedAddress: "a private address"; of others what was seen
}

// explained is why each code refuses, with %s for what was seen, and what can be done about it, with %s for the rule that
// would allow it.
var explained = map[Code]struct{ why, remedy string }{
	RefusedNoNetwork: {"this sandbox has no network", "Work without a network, or ask the user to open the sandbox with one."},
	RefusedNotAllowed: {
		"it is not on the list of what this sandbox may reach",
		"Trying again or another way does not help. If it is needed, ask the user to add the rule %s to the sandbox's network.",
	},
	RefusedMetadata:   {"it is a metadata service, which holds credentials of the machine", specialRemedy},
	RefusedAddress:    {"it is or resolves to %s", specialRemedy},
	RefusedHost:       {why: "it is neither a host name nor an address"},
	RefusedOtherName:  {"the connection was asked for by one name and then used for another, %s", "Open a connection for each host."},
	RefusedHiddenName: {why: "%s"},
	RefusedRelay:      {why: "a host that was reached may not be used to reach others: %s"},
	RefusedProtocol:   {why: "%s"},
	RefusedTooMany:    {"too many connections are open", "Close connections that are no longer used, or use fewer at once."},
	RefusedPolicy:     {why: "what this sandbox may reach was changed"},
	RefusedUnreadable: {why: "%s"},
}

const specialRemedy = "Trying again or another way does not help: such addresses are refused in every mode. If it is needed, ask the user to add a rule that names the address itself."

// Error is the reason, without what was asked for.
func (r *Refusal) Error() string { return strings.Replace(explained[r.Code].why, "%s", r.what, 1) }

// remedy is what can be done about it, for a reader who is a model or a person.
func (r *Refusal) remedy(host string, port uint16) string {
	return strings.Replace(explained[r.Code].remedy, "%s", ruleFor(host, port), 1)
}

// ruleFor writes the rule that would allow host at port.
func ruleFor(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// clip bounds a hostile text that is shown in an error.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

// A failure is why something that was allowed did not work, in a text that reveals
// nothing of this machine's own network.
type failure struct {
	what string
	kind failureKind
	err  error
}

type failureKind int

const (
	failedOther failureKind = iota
	failedName
	failedRefused
	failedUnreachable
	failedTimeout
)

func (f *failure) Error() string { return f.what }

func (f *failure) Unwrap() error { return f.err }

// describe says what became of a dial, without what the system says of its own network.
func describe(err error) error {
	f := &failure{what: "it could not be reached", err: err}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		f.what, f.kind = "it refused the connection", failedRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		f.what, f.kind = fmt.Sprintf("it did not answer within %v", dialTimeout), failedTimeout
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		f.what, f.kind = "there is no route to it from here", failedUnreachable
	}
	return f
}

// refusalOf is the refusal in err, or nil.
func refusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
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

// maxPhrase bounds the reason phrase of a status line.
const maxPhrase = 300

// phrase is err as the reason phrase of a status line. Most programs show of the answer to
// a CONNECT nothing else.
func phrase(host string, port uint16, err error) string {
	code := "failed"
	var f *failure
	if r := refusalOf(err); r != nil {
		code = string(r.Code)
	} else if errors.As(err, &f) && f.kind == failedName {
		code = "unknown-name"
	}
	at := printable(host)
	if port != 0 {
		at = ruleFor(at, port)
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, fmt.Sprintf("%s: %s: %s", code, at, err.Error()))
	return text[:min(len(text), maxPhrase)]
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

// answerLine writes err as a response with its phrase, which net/http has no way to set. It is the
// last one on the connection.
func answerLine(w io.Writer, host string, port uint16, err error) {
	header := ""
	if r := refusalOf(err); r != nil {
		header = fmt.Sprintf("%s: %s\r\n", refusedHeader, r.Code)
	}
	text := explain(host, port, err)
	// The client may have disconnected.
	_, _ = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n%sContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		statusOf(err), phrase(host, port, err), header, len(text), text)
}
