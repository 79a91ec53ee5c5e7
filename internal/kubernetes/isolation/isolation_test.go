package isolation

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

const ns = "ns"

func stored(t *testing.T, c *fake.Clientset) *networkingv1.NetworkPolicy {
	t.Helper()
	p, err := c.NetworkingV1().NetworkPolicies(ns).Get(context.WithoutCancel(t.Context()), Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEnsureMakesIt(t *testing.T) {
	c := fake.NewClientset()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Ensure(t.Context(), c.NetworkingV1(), ns); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if !Holds(stored(t, c)) {
		t.Errorf("%+v, want Holds(stored(t, c)) = true", stored(t, c).Spec)
	}
	c.ClearActions()
	if _, err := Ensure(t.Context(), c.NetworkingV1(), ns); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Actions()); n != 1 {
		t.Errorf("%d requests for a policy that is there, want 1", n)
	}
}

func TestEnsureRepairs(t *testing.T) {
	for name, change := range map[string]func(*networkingv1.NetworkPolicySpec){
		"lets in":   func(s *networkingv1.NetworkPolicySpec) { s.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} },
		"lets out":  func(s *networkingv1.NetworkPolicySpec) { s.Egress = []networkingv1.NetworkPolicyEgressRule{{}} },
		"one way":   func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = s.PolicyTypes[:1] },
		"other pod": func(s *networkingv1.NetworkPolicySpec) { s.PodSelector.MatchLabels = map[string]string{"a": "b"} },
		"fewer pods": func(s *networkingv1.NetworkPolicySpec) {
			s.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Exists"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy(ns)
			p.Annotations = map[string]string{"of": "somebody"}
			change(&p.Spec)
			if Holds(p) {
				t.Fatal("a changed policy is taken for one that denies all: Holds(p) = true, want false")
			}
			c := fake.NewClientset(p)
			if _, err := Ensure(t.Context(), c.NetworkingV1(), ns); err != nil {
				t.Fatal(err)
			}
			if got := stored(t, c); !Holds(got) || got.Annotations["of"] != "somebody" {
				t.Errorf("%+v, want Holds(got) = true, got.Annotations[\"of\"] = \"somebody\"", got)
			}
		})
	}
}

func TestHoldsInAnyOrder(t *testing.T) {
	p := Policy(ns)
	p.Spec.PolicyTypes[0], p.Spec.PolicyTypes[1] = p.Spec.PolicyTypes[1], p.Spec.PolicyTypes[0]
	if !Holds(p) {
		t.Error("the order of the directions says nothing: Holds(p) = false, want true")
	}
}

// TestEnsureAmongOthers: another process makes, changes and removes it in between.
func TestEnsureAmongOthers(t *testing.T) {
	changed := Policy(ns)
	changed.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	c := fake.NewClientset()
	resource := networkingv1.Resource("networkpolicies")
	creates, updates := 0, 0
	c.PrependReactor("create", "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
		if creates++; creates > 1 {
			return false, nil, nil
		}
		if err := c.Tracker().Create(networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), changed, ns); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewAlreadyExists(resource, Name)
	})
	c.PrependReactor("update", "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
		if updates++; updates > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(resource, Name, nil)
	})
	if _, err := Ensure(t.Context(), c.NetworkingV1(), ns); err != nil {
		t.Fatal(err)
	}
	if !Holds(stored(t, c)) || creates != 1 || updates != 2 {
		t.Errorf("%d creates, %d updates, %+v, want Holds(stored(t, c)) = true, creates = 1, updates = 2", creates, updates, stored(t, c).Spec)
	}
}

func TestEnsureMayNot(t *testing.T) {
	changed := Policy(ns)
	changed.Spec.PolicyTypes = changed.Spec.PolicyTypes[:1]
	for verb, c := range map[string]*fake.Clientset{"get": fake.NewClientset(), "create": fake.NewClientset(), "update": fake.NewClientset(changed)} {
		c.PrependReactor(verb, "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(networkingv1.Resource("networkpolicies"), Name, nil)
		})
		_, err := Ensure(t.Context(), c.NetworkingV1(), ns)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "NetworkPolicy "+Name) || !strings.Contains(err.Error(), "doctor") {
			t.Errorf("%s: %v, want a Forbidden error, an error containing %q, an error containing \"doctor\"", verb, err, "NetworkPolicy "+Name)
		}
	}
}

// TestPolicySelectsOnlySandboxes: other pods of the namespace are not ours to cut off.
func TestPolicySelectsOnlySandboxes(t *testing.T) {
	selector, err := metav1.LabelSelectorAsSelector(&Policy(ns).Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	if selector.Empty() {
		t.Error("every pod is selected: selector.Empty() = true, want false")
	}
	for _, l := range []map[string]string{nil, {"app": "x"}} {
		if p := (corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: l}}); selector.Matches(labels.Set(p.Labels)) {
			t.Errorf("%v is selected, want selector.Matches(labels.Set(p.Labels)) = false", l)
		}
	}
}
