package access

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// maxMessage bounds what is repeated of a cluster's own text, in bytes: an admission
// webhook may say anything.
const maxMessage = 2 << 10

// Explain makes of the error of a request to a cluster one that a user can
// act on: what failed, why, and what to do. errors.Is, errors.As and apierrors' functions
// still see the error itself. nil stays nil.
func Explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	e := &Error{Doing: doing, Cause: err}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		explainStatus(e, status.Status())
	} else {
		explainConnection(e, err)
	}
	return e
}

// cut bounds a text of the cluster.
func cut(s string) string {
	if len(s) > maxMessage {
		return s[:maxMessage] + "… (cut)"
	}
	return s
}

// An Error is why something that was asked of a cluster, or about it, failed.
type Error struct {
	Doing string // what failed, such as "create the pod"; empty for Find
	Why   string
	Fix   string // what to do about it
	// Kind is the backend package's error that it is, such as backend.ErrUnsupported;
	// nil when it is none of them.
	Kind error
	// Cause is the error below, if there is one: apierrors' functions look through it.
	Cause error
}

func (e *Error) Error() string {
	var parts []string
	if e.Doing != "" {
		parts = append(parts, e.Doing)
	}
	parts = append(parts, e.Why)
	s := strings.Join(parts, ": ")
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Unwrap returns Kind and Cause, as far as there are.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// explainStatus explains what an API server answered.
func explainStatus(e *Error, s metav1.Status) {
	e.Why = why(s)
	for _, known := range refusals {
		if strings.Contains(e.Why, known.says) {
			e.Fix, e.Kind = known.fix, known.kind
			return
		}
	}
	if s.Reason == metav1.StatusReasonNotFound {
		explainNotFound(e, s)
		return
	}
	if known, ok := reasons[s.Reason]; ok {
		e.Fix, e.Kind = known.fix, known.kind
	} else if s.Code >= http.StatusInternalServerError {
		e.Fix = reasons[metav1.StatusReasonInternalError].fix
	}
}

// why is the answer's own text.
func why(s metav1.Status) string {
	text := cmp.Or(s.Message, fmt.Sprintf("the API server answered %d", s.Code))
	if s.Reason == metav1.StatusReasonUnauthorized {
		text = "the cluster does not accept the credentials: " + text
	}
	// What is no answer of an API server is kept by client-go as a cause.
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Type == metav1.CauseTypeUnexpectedServerResponse && c.Message != "" && c.Message != "unknown" {
				text += ": " + strings.TrimSpace(c.Message)
			}
		}
	}
	return cut(text)
}

// explainNotFound explains by what is not there.
func explainNotFound(e *Error, s metav1.Status) {
	kind := ""
	if s.Details != nil {
		kind = s.Details.Kind
	}
	switch {
	case kind == "pods" && s.Details.Name != "":
		e.Kind = backend.ErrNotFound
	case kind == "namespaces":
		e.Fix, e.Kind = "make the namespace (kubectl create namespace, or deploy/), or name another one", backend.ErrUnsupported
	case s.Details == nil || s.Details.Name == "":
		e.Fix, e.Kind = "see whether the address is that of a Kubernetes API server, and how old the cluster is", backend.ErrUnsupported
	}
}

// A remedy is what to do about an answer.
type remedy struct {
	says string // part of the message, where the reason alone does not decide
	fix  string
	kind error
}

// refusals are recognized by their message: for most of them the API server has the one reason
// Forbidden. The first that fits wins.
var refusals = []remedy{
	{says: "violates PodSecurity", fix: "change what the pod template asks for, or have the namespace's label pod-security.kubernetes.io/enforce allow it; without a template sandboxes hold to \"restricted\""},
	{says: "exceeded quota", fix: "close sandboxes, remove volumes, ask for less, or have the namespace's ResourceQuota raised"},
	{says: "failed quota", fix: "set the limits that the quota wants of every pod, in the sandbox's limits or the pod template"},
	{says: "because it is being terminated", fix: "wait until the namespace is gone and make it anew, or use another one", kind: backend.ErrUnsupported},
	{says: "denied the request", fix: "ask the cluster's administrator what this admission webhook wants, and give it in the pod template"},
	{says: "denied request:", fix: "ask the cluster's administrator what this admission policy wants, and give it in the pod template"},
	{says: "failed calling webhook", fix: "the cluster's administrator must repair this admission webhook, or exempt the namespace from it"},
	{says: "failed to call webhook", fix: "the cluster's administrator must repair this admission webhook, or exempt the namespace from it"},
	{says: "RuntimeClass \"", fix: "kubectl get runtimeclasses lists those there are", kind: backend.ErrInvalid},
	{says: "no PriorityClass with name", fix: "kubectl get priorityclasses lists those there are", kind: backend.ErrInvalid},
	{says: "error looking up service account", fix: "make the service account, or name another one", kind: backend.ErrInvalid},
	{says: " usage per ", fix: "ask for limits that the namespace's LimitRange allows, or have it changed", kind: backend.ErrInvalid},
	{says: " ratio per ", fix: "ask for limits that the namespace's LimitRange allows, or have it changed", kind: backend.ErrInvalid},
	{says: "an HTTP request to an HTTPS server", fix: "correct the server's address in the kubeconfig: it must begin with https", kind: backend.ErrUnsupported},
}

// reasons are recognized by the status's reason.
var reasons = map[metav1.StatusReason]remedy{
	metav1.StatusReasonUnauthorized:          {fix: "the credentials are wrong or have expired: log in again, or name another context", kind: backend.ErrUnsupported},
	metav1.StatusReasonForbidden:             {fix: "llmsandbox doctor --backend kubernetes lists the permissions that are missing; deploy/ has a Role with all of them", kind: backend.ErrUnsupported},
	metav1.StatusReasonAlreadyExists:         {fix: "remove it, or use another name"},
	metav1.StatusReasonConflict:              {fix: "it was changed at the same time: try again"},
	metav1.StatusReasonInvalid:               {fix: "correct what the options and the pod template ask for", kind: backend.ErrInvalid},
	metav1.StatusReasonBadRequest:            {fix: "correct what the options and the pod template ask for", kind: backend.ErrInvalid},
	metav1.StatusReasonRequestEntityTooLarge: {fix: "make the pod template, environment and labels smaller", kind: backend.ErrInvalid},
	metav1.StatusReasonTooManyRequests:       {fix: "the API server is overloaded or limits this user: try again later, with fewer at once"},
	metav1.StatusReasonTimeout:               {fix: "the API server is overloaded: try again later"},
	metav1.StatusReasonServerTimeout:         {fix: "the API server is overloaded: try again later"},
	metav1.StatusReasonServiceUnavailable:    {fix: "the API server is starting or overloaded: try again later"},
	metav1.StatusReasonInternalError:         {fix: "try again; if it stays, the API server's log says more"},
	metav1.StatusReasonExpired:               {fix: "try again: what was known of the cluster was too old"},
	metav1.StatusReasonGone:                  {fix: "try again: what was known of the cluster was too old"},
}

// explainConnection explains why an API server could not be asked at all.
func explainConnection(e *Error, err error) {
	e.Why = cut(err.Error())
	server := "the API server"
	if where, ok := errors.AsType[*url.Error](err); ok {
		if u, parsed := url.Parse(where.URL); parsed == nil {
			server = fmt.Sprintf("the API server at %s://%s", u.Scheme, u.Host)
		}
		err = where.Err
	}
	why, fix := connectionFault(err)
	if why == "" {
		return
	}
	e.Kind, e.Fix = backend.ErrUnsupported, fix
	e.Why = fmt.Sprintf("%s %s: %s", server, why, cut(err.Error()))
}

// connectionFault returns what is wrong with a connection, and what to do; nothing when
// the error is none of a connection.
func connectionFault(err error) (why, fix string) {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		broken    x509.CertificateInvalidError
		plain     tls.RecordHeaderError
		alert     tls.AlertError
		dns       *net.DNSError
		network   net.Error
	)
	text := err.Error()
	switch {
	case strings.Contains(text, "getting credentials: exec:"):
		return "was not asked: the program that gives the credentials failed", "run it by hand (the kubeconfig's users: exec:), and log in again"
	case errors.As(err, &authority):
		return "shows a certificate of an authority that the kubeconfig does not trust", "get a new kubeconfig from the cluster's administrator: its certificate-authority-data is another cluster's, or somebody is in between"
	case errors.As(err, &hostname):
		return "shows a certificate for other names", "correct the server's address in the kubeconfig, or give the name with tls-server-name"
	case errors.As(err, &broken) && broken.Reason == x509.Expired:
		return "shows a certificate that is not valid now", "see that this machine's clock is right; if it is, the cluster's administrator must renew the certificate"
	case errors.As(err, &broken):
		return "shows a certificate that cannot be used", "the cluster's administrator must replace the certificate"
	case errors.As(err, &alert), strings.Contains(text, "remote error: tls:"):
		return "refuses this client's certificate", "the client certificate in the kubeconfig is wrong or has expired: get a new kubeconfig"
	case errors.As(err, &plain), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "does not speak TLS", "correct the server's address in the kubeconfig: its port, or http in place of https"
	case errors.As(err, &dns):
		return "has a name that cannot be resolved", "see whether the address in the kubeconfig is right, and whether this machine needs a VPN"
	case strings.Contains(text, "proxyconnect"):
		return "cannot be reached through the proxy", "see HTTPS_PROXY and NO_PROXY, or the kubeconfig's proxy-url"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "cannot be reached", "see whether the cluster runs, and whether the address in the kubeconfig is right"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "cannot be reached", "see whether this machine's network reaches it, and whether it needs a VPN"
	case errors.As(err, &network) && network.Timeout():
		return "does not answer", "see whether a firewall is in between, and whether this machine needs a VPN"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "connection lost"),
		strings.Contains(text, "server closed idle connection"): // a moment before it was used
		return "ended the connection", "it may be starting again: try again"
	}
	return "", ""
}
