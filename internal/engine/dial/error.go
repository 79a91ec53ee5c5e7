package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
)

// Kind is what kept an engine from being reached.
type Kind string

// The kinds of an Error.
const (
	NoSocket   Kind = "no socket"     // there is no such socket or pipe
	Permission Kind = "no permission" // this user may not open it
	NoAnswer   Kind = "no answer"     // nothing listens, or it does not answer
	NoHost     Kind = "no host"       // the name does not resolve, or there is no route to it
	TLS        Kind = "TLS"           // certificates or protocol do not fit
	Proxy      Kind = "proxy"         // the HTTP proxy did not let it through
	SSHFailed  Kind = "ssh"           // the ssh program failed
)

// An Error is an engine that cannot be reached. It wraps backend.ErrUnsupported.
type Error struct {
	Kind   Kind
	Engine string // "Docker"
	Host   string // as in Endpoint.Host
	Why    string
	Fix    string
	// Cause is the error below, if there is one. It is not part of the chain that
	// errors.Is looks through: the API's client replaces what wraps a file system or
	// timeout error by a sentence of its own, and the reason would be lost.
	Cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot reach %s at %s: %s; %s", e.Engine, e.Host, e.Why, e.Fix)
}

// Unwrap returns backend.ErrUnsupported.
func (e *Error) Unwrap() error { return backend.ErrUnsupported }

// Explain returns the *Error that err wraps, without what the API's client put
// around it, and err itself when there is none.
func Explain(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return err
}

// reworded replaces the text by which the API's client takes an error for one that it
// replaces altogether.
var reworded = strings.NewReplacer("connection refused", "connection was refused", "dial unix", "dialing unix")

func (e Endpoint) fail(kind Kind, cause error, why, fix string) *Error {
	return &Error{Kind: kind, Engine: e.Hints.Engine, Host: e.Host, Why: reworded.Replace(why), Fix: fix, Cause: cause}
}

// explain turns what opening a socket failed with into an Error. A context that
// ended stays what it is.
func (e Endpoint) explain(ctx context.Context, err error) error {
	if ctxend.Ended(ctx) {
		return ctx.Err()
	}
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return e.fail(NoHost, err, fmt.Sprintf("the name %q does not resolve", dns.Name),
			"check the name, and that this machine can look names up")
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.fail(NoAnswer, err, "nothing listens there", e.Hints.Start)
	case errors.Is(err, os.ErrNotExist):
		return e.fail(NoSocket, err, "there is no such socket: the engine is not running, or listens elsewhere", e.Hints.Start)
	case errors.Is(err, os.ErrPermission):
		return e.fail(Permission, err, "this user may not open it", e.Hints.Access)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return e.fail(NoHost, err, "there is no way to that host from here", "check the address and this machine's network")
	case errors.As(err, &timeout) && timeout.Timeout():
		return e.fail(NoAnswer, err, fmt.Sprintf("no answer within %v", connectTimeout),
			"check the address, and that no firewall drops the connection")
	}
	return e.fail(NoAnswer, err, err.Error(), e.Hints.Start)
}
