package access

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

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
	text := s.Message
	if text == "" {
		text = fmt.Sprintf("the API server answered %d", s.Code)
	}
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
	{says: "exceeded quota", fix: "close sandboxes, ask for smaller limits, or have the namespace's ResourceQuota raised"},
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
