package diagnose

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// allow lets the caller do what may says, of "verb resource".
func allow(c *access.Cluster, may func(string) bool) {
	c.Client.(*fake.Clientset).PrependReactor("create", "selfsubjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		r := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		r.Status.Allowed = may(r.Spec.ResourceAttributes.Verb + " " + r.Spec.ResourceAttributes.Resource)
		return true, r, nil
	})
}

func add(t *testing.T, c *access.Cluster, objects ...runtime.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Client.(*fake.Clientset).Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
}

func namespaceOf(level string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{enforceLabel: level}}}
}

func node(name, arch string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo:   corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: arch},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func finding(t *testing.T, r *Report, name string) backend.Finding {
	t.Helper()
	for _, l := range r.Findings {
		if l.Check == name {
			return l
		}
	}
	t.Fatalf("findings are %+v, want one of %q", r.Findings, name)
	return backend.Finding{}
}

// works reports that nothing was found that keeps sandboxes from working.
func works(r *Report) bool {
	return !slices.ContainsFunc(r.Findings, func(f backend.Finding) bool { return f.Level == backend.LevelFailure })
}

func TestRunWhereAllIsWell(t *testing.T) {
	c := cluster(t, behaving(true))
	allow(c, func(string) bool { return true })
	add(t, c, namespaceOf("restricted"), node("a", "amd64", corev1.ConditionTrue), node("b", "arm64", corev1.ConditionTrue), node("c", "amd64", corev1.ConditionFalse))
	r, err := Run(t.Context(), c, Options{})
	if err != nil || !works(r) || r.Network.Verdict != Enforced || r.Missing != nil || r.Server != c.Server {
		t.Errorf("%+v, %v, want no error, works(r) = true, Verdict = Enforced, Missing = nil, Server = %v", r, err, c.Server)
	}
	for _, l := range r.Findings {
		if l.Level != backend.LevelOK || l.Fix != "" || l.Detail == "" {
			t.Errorf("%+v, want Level = LevelOK, Fix empty, Detail not empty", l)
		}
	}
	if l := finding(t, r, "nodes"); l.Detail != "2 of 3 ready: 1 linux/amd64, 1 linux/arm64" {
		t.Errorf("%+v, want Detail = \"2 of 3 ready: 1 linux/amd64, 1 linux/arm64\"", l)
	}
	if l := finding(t, r, "NetworkPolicy"); !strings.Contains(l.Detail, "is there, and denies") {
		t.Errorf("%+v, want Detail containing \"is there, and denies\"", l)
	}
}

func TestRunWhereRightsAreMissing(t *testing.T) {
	c := cluster(t, behaving(true))
	allow(c, func(what string) bool { return what != "create pods" && what != "watch events" })
	add(t, c, namespaceOf("restricted"))
	for _, resource := range []string{"namespaces", "nodes", "runtimeclasses", "networkpolicies"} {
		c.Client.(*fake.Clientset).PrependReactor("*", resource, func(ktesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource(resource), "", errors.New("no right"))
		})
	}
	r, err := Run(t.Context(), c, Options{NoProbe: true})
	if err != nil || works(r) || r.Network != nil || len(r.Missing) != 4 {
		t.Fatalf("%+v, %v, want no error, works(r) = false, Network = nil, len(r.Missing) = 4", r, err)
	}
	if l := finding(t, r, "permissions"); l.Level != backend.LevelFailure || !strings.Contains(l.Detail, "create pods (a sandbox is a pod)") || !strings.Contains(l.Fix, `- {apiGroups: [""], resources: [pods], verbs: [create]}`) {
		t.Errorf("%+v, want Level = LevelFailure, Detail containing \"create pods (a sandbox is a pod)\", Fix containing \"- {apiGroups: [\\\"\\\"], resources: [pods], verbs: [create]}\"", l)
	}
	if l := finding(t, r, "optional permissions"); l.Level != backend.LevelWarning || !strings.Contains(l.Fix, "resources: [events], verbs: [watch]") {
		t.Errorf("%+v, want Level = LevelWarning, Fix containing \"resources: [events], verbs: [watch]\"", l)
	}
	if l := finding(t, r, "network"); l.Level != backend.LevelWarning || l.Fix == "" {
		t.Errorf("%+v, want Level = LevelWarning, Fix not empty", l)
	}
	for _, name := range []string{"namespace", "nodes", "RuntimeClasses", "NetworkPolicy"} {
		if l := finding(t, r, name); l.Level != backend.LevelOK || !strings.Contains(l.Detail, "not known") {
			t.Errorf("%+v, want Level = LevelOK, Detail containing \"not known\"", l)
		}
	}
}

func TestRunWithoutAnAnswer(t *testing.T) {
	c := cluster(t, behaving(true))
	c.Client.(*fake.Clientset).PrependReactor("get", "version", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewUnauthorized("Unauthorized")
	})
	r, err := Run(t.Context(), c, Options{})
	if err != nil || works(r) || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Fix, "log in again") {
		t.Errorf("%+v, %v, want no error, works(r) = false, len(r.Findings) = 1, Fix containing \"log in again\"", r, err)
	}
}

func TestRunCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := cluster(t, behaving(true))
	if _, err := Run(ctx, c, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPlace(t *testing.T) {
	opening := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "open", Namespace: "ns"}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: []networkingv1.NetworkPolicyEgressRule{{}}}}
	elsewhere := opening.DeepCopy()
	elsewhere.Name, elsewhere.Spec.PodSelector.MatchLabels = "web", map[string]string{"app": "web"}
	dying := namespaceOf("restricted")
	dying.Status.Phase = corev1.NamespaceTerminating
	for _, c := range []struct {
		name  string
		check func(context.Context, *access.Cluster) []backend.Finding
		there []runtime.Object
		level backend.Level
		words string
	}{
		{"no namespace", namespace, nil, backend.LevelFailure, "no namespace ns"},
		{"dying namespace", namespace, []runtime.Object{dying}, backend.LevelFailure, "being removed"},
		{"any namespace", namespace, []runtime.Object{namespaceOf("")}, backend.LevelWarning, `"privileged"`},
		{"no policy", policies, nil, backend.LevelOK, "is not there"},
		{"a policy that opens", policies, []runtime.Object{opening}, backend.LevelWarning, "selected by open"},
		{"a policy of others", policies, []runtime.Object{elsewhere}, backend.LevelOK, "is not there"},
		{"no node", nodes, nil, backend.LevelWarning, "none is ready"},
		{"another machine", nodes, []runtime.Object{node("a", "s390x", corev1.ConditionTrue)}, backend.LevelWarning, "none is ready"},
		{"no runtime class", runtimeClasses, nil, backend.LevelOK, "share the kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := cluster(t, behaving(true))
			add(t, k, c.there...)
			l := c.check(t.Context(), k)[0]
			if l.Level != c.level || !strings.Contains(l.Detail, c.words) || (l.Fix == "") != (c.level == backend.LevelOK) {
				t.Errorf("%+v, want %s with %q", l, c.level, c.words)
			}
		})
	}
}
