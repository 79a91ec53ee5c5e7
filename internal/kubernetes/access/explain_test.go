package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// answer is an answer that a real API server (1.34) gave, as it is in testdata/answers.
func answer(t *testing.T, name string) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "answers", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var s metav1.Status
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func TestExplainAnswers(t *testing.T) {
	cases := map[string]struct {
		kind  error
		is    func(error) bool
		words string // what it says to do
	}{
		"podsecurity":      {nil, apierrors.IsForbidden, "pod-security.kubernetes.io/enforce"},
		"no-namespace":     {backend.ErrUnsupported, apierrors.IsNotFound, "make the namespace"},
		"runtimeclass":     {backend.ErrInvalid, apierrors.IsForbidden, "kubectl get runtimeclasses"},
		"priorityclass":    {backend.ErrInvalid, apierrors.IsForbidden, "kubectl get priorityclasses"},
		"serviceaccount":   {backend.ErrInvalid, apierrors.IsForbidden, "make the service account"},
		"invalid":          {backend.ErrInvalid, apierrors.IsInvalid, "correct what"},
		"toolarge":         {backend.ErrInvalid, apierrors.IsRequestEntityTooLargeError, "smaller"},
		"no-pod":           {backend.ErrNotFound, apierrors.IsNotFound, ""},
		"no-policy":        {nil, apierrors.IsNotFound, ""},
		"no-api":           {backend.ErrUnsupported, apierrors.IsNotFound, "how old the cluster is"},
		"exists":           {nil, apierrors.IsAlreadyExists, "another name"},
		"conflict":         {nil, apierrors.IsConflict, "try again"},
		"quota-exceeded":   {nil, apierrors.IsForbidden, "ResourceQuota raised"},
		"quota-wants":      {nil, apierrors.IsForbidden, "limits that the quota wants"},
		"limitrange":       {backend.ErrInvalid, apierrors.IsForbidden, "LimitRange allows"},
		"admission-policy": {nil, apierrors.IsInvalid, "this admission policy wants"},
		"webhook-denied":   {nil, apierrors.IsBadRequest, "this admission webhook wants"},
		"webhook-down":     {nil, apierrors.IsInternalError, "repair this admission webhook"},
		"terminating":      {backend.ErrUnsupported, apierrors.IsForbidden, "wait until the namespace is gone"},
		"forbidden":        {backend.ErrUnsupported, apierrors.IsForbidden, "doctor --backend kubernetes"},
		"unauthorized":     {backend.ErrUnsupported, apierrors.IsUnauthorized, "log in again"},
		"plain-to-tls":     {backend.ErrUnsupported, apierrors.IsBadRequest, "begin with https"},
	}
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) != len(cases) {
		t.Errorf("%d answers (%v), %d are expected", len(files), err, len(cases))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			below := answer(t, name)
			err := Explain("create the pod p", fmt.Errorf("wrapped: %w", below))
			var e *Error
			if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Fix, c.words) || (c.words == "") != (e.Fix == "") {
				t.Fatalf("%+v, want an error of type %T, Kind = %v, Fix containing %q, c.words == \"\" = %v", e, e, c.kind, c.words, e.Fix == "")
			}
			if c.kind != nil && !errors.Is(err, c.kind) || !c.is(err) || !errors.Is(err, below) {
				t.Errorf("what %v wraps is lost, want kind = nil or %v, c.is(err) = true, %v", err, c.kind, below)
			}
			var s apierrors.APIStatus
			if !errors.As(below, &s) || !strings.Contains(err.Error(), s.Status().Message) || !strings.HasPrefix(err.Error(), "create the pod p: ") {
				t.Errorf("%q does not hold the cluster's text, want an error of type %T, strings.Contains(err.Error(), s.Status().Message) = true, an error beginning with \"create the pod p: \"", err, s)
			}
		})
	}
}

func TestExplainReasons(t *testing.T) {
	for _, c := range []struct {
		err   error
		words string
	}{
		{apierrors.NewTooManyRequests("too many requests", 1), "fewer at once"},
		{apierrors.NewServiceUnavailable("starting"), "try again later"},
		{apierrors.NewTimeoutError("slow", 1), "try again later"},
		{apierrors.NewResourceExpired("too old resource version"), "too old"},
		{apierrors.NewGenericServerResponse(502, "get", metav1.SchemeGroupVersion.WithResource("pods").GroupResource(), "p", "bad gateway", 0, true), "API server's log"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}, "API server's log"},
	} {
		err := Explain("ask", c.err)
		if !strings.Contains(err.Error(), c.words) || !strings.HasPrefix(err.Error(), "ask: ") {
			t.Errorf("%v: %v, want an error containing %q, an error beginning with \"ask: \"", c.err, err, c.words)
		}
	}
}

func TestExplainKeepsWhatIsKnown(t *testing.T) {
	if err := Explain("x", nil); err != nil {
		t.Error(err)
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, invalid(nil, "why", "fix")} {
		err := Explain("start", fmt.Errorf("wrapped: %w", known))
		if !errors.Is(err, known) || !strings.HasPrefix(err.Error(), "start: wrapped: ") {
			t.Errorf("%v, want %v, an error beginning with \"start: wrapped: \"", err, known)
		}
	}
}

// TestExplainBounds: an admission webhook may say anything, and as much of it as it likes.
func TestExplainBounds(t *testing.T) {
	err := Explain("create", apierrors.NewBadRequest(strings.Repeat("x", 1<<20)))
	if n := len(err.Error()); n > maxMessage+500 {
		t.Errorf("%d bytes, want at most %d", n, maxMessage+500)
	}
}
