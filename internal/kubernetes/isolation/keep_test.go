package isolation

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

// A verdict is kept beside what is there, in place of the one before it.
func TestKeep(t *testing.T) {
	p := judged(t)
	p.Annotations = map[string]string{"of": "somebody"}
	c := fake.NewClientset(p)
	conflicts := 0
	c.PrependReactor("update", "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return conflicts == 1, nil, apierrors.NewConflict(networkingv1.Resource("networkpolicies"), Name, nil)
	})
	for _, v := range []Verdict{{}, good} {
		v.At = noon
		if err := Keep(t.Context(), c.NetworkingV1(), p, v); err != nil {
			t.Fatal(err)
		}
	}
	got := stored(t, c)
	if v, known := Known(got, "", nil, noon); !known || !v.Enforced || v.Node != "n1" || len(verdicts(got)) != 1 || got.Annotations["of"] != "somebody" || conflicts != 3 {
		t.Errorf("%v %+v, %d conflicts, %v, want known = true, Enforced true, Node = \"n1\", len(verdicts(got)) = 1, got.Annotations[\"of\"] = \"somebody\", conflicts = 3", known, v, conflicts, got.Annotations)
	}
}

// A verdict is on the rules that it was given on.
func TestKeepOfChangedRules(t *testing.T) {
	for name, change := range map[string]func(*networkingv1.NetworkPolicy){
		"other rules":     func(p *networkingv1.NetworkPolicy) { p.Generation++ },
		"another policy":  func(p *networkingv1.NetworkPolicy) { p.UID = "u2" },
		"rules that leak": func(p *networkingv1.NetworkPolicy) { p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			tried := judged(t)
			now := tried.DeepCopy()
			change(now)
			c := fake.NewClientset(now)
			first := true
			c.PrependReactor("update", "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
				defer func() { first = false }()
				return first, nil, apierrors.NewConflict(networkingv1.Resource("networkpolicies"), Name, nil)
			})
			v := good
			v.At = noon
			if err := Keep(t.Context(), c.NetworkingV1(), tried, v); err == nil || !strings.Contains(err.Error(), "changed while") {
				t.Errorf("%v, want an error containing \"changed while\"", err)
			}
			if p := stored(t, c); p.Annotations[Annotation] != "" {
				t.Errorf("%v, want p.Annotations[Annotation] empty", p.Annotations)
			}
		})
	}
}

func TestKeepMayNot(t *testing.T) {
	p := judged(t)
	c := fake.NewClientset(p)
	c.PrependReactor("update", "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(networkingv1.Resource("networkpolicies"), Name, nil)
	})
	v := good
	v.At = noon
	if err := Keep(t.Context(), c.NetworkingV1(), p, v); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
}

// Rules that were changed and repaired are tried anew before they are believed in.
func TestRepairForgets(t *testing.T) {
	p := judged(t, good)
	p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	c := fake.NewClientset(p)
	got, err := Ensure(t.Context(), c.NetworkingV1(), ns)
	if err != nil {
		t.Fatal(err)
	}
	if _, known := Known(got, "", nil, noon); known || !Holds(got) {
		t.Errorf("%+v, want known = false, Holds(got) = true", got)
	}
}
