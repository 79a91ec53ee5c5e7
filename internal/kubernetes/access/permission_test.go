package access

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestNeeded(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Needed() {
		if seen[p.String()] || p.Why == "" {
			t.Errorf("%s: twice, or without a reason, want seen[p.String()] = false, Why not empty", p)
		}
		seen[p.String()] = true
		if p.Verb == "*" || p.Resource == "*" || p.Resource == "secrets" {
			t.Errorf("%s is more than a sandbox needs, want Verb != \"*\", Resource != \"*\", Resource != \"secrets\"", p)
		}
	}
	Needed()[0].Verb = "changed"
	if Needed()[0].Verb == "changed" {
		t.Error("Needed()[0].Verb = \"changed\" after a caller changed its copy, want the original")
	}
}

func TestRules(t *testing.T) {
	got := Rules([]Permission{
		{Verb: "get", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "exec"},
		{Verb: "list", Resource: "pods"}, {Verb: "get", Resource: "pods"}, {Verb: "get", Group: "batch", Resource: "jobs"},
	})
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// allowing is a cluster that allows what allow says, and counts what is asked at once.
func allowing(allow func(authorizationv1.ResourceAttributes) (bool, error)) *Cluster {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		ok, err := allow(*review.Spec.ResourceAttributes)
		review.Status.Allowed = ok
		return true, review, err
	})
	return &Cluster{Client: client, Namespace: "ns"}
}

func TestMissing(t *testing.T) {
	var asked atomic.Int32
	c := allowing(func(r authorizationv1.ResourceAttributes) (bool, error) {
		asked.Add(1)
		if r.Namespace != "ns" {
			t.Errorf("asked about the namespace %q, want \"ns\"", r.Namespace)
		}
		return r.Subresource != "exec" && r.Group != "batch", nil
	})
	missing, err := Missing(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, p := range missing {
		words = append(words, p.String())
	}
	if got, want := strings.Join(words, ", "), "get pods/exec, create pods/exec, list jobs.batch, create jobs.batch, patch jobs.batch, delete jobs.batch"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if int(asked.Load()) != len(Needed()) {
		t.Errorf("%d questions, want int(asked.Load()) = len(Needed())", asked.Load())
	}
}

func TestMissingNothing(t *testing.T) {
	missing, err := Missing(t.Context(), allowing(func(authorizationv1.ResourceAttributes) (bool, error) { return true, nil }))
	if err != nil || missing != nil {
		t.Errorf("missing = %v, err = %v, want no error, missing = nil", missing, err)
	}
}

func TestMissingCannotTell(t *testing.T) {
	below := answer(t, "unauthorized")
	missing, err := Missing(t.Context(), allowing(func(authorizationv1.ResourceAttributes) (bool, error) { return false, below }))
	if missing != nil || !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "ask what is allowed") {
		t.Errorf("missing = %v, err = %v, want missing = nil, backend.ErrUnsupported, an error containing \"ask what is allowed\"", missing, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Missing(canceled, allowing(func(authorizationv1.ResourceAttributes) (bool, error) { return false, canceled.Err() }))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
