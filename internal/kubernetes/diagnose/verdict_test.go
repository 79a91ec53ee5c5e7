package diagnose

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
)

// kept is what those who open sandboxes see.
func kept(t *testing.T, c *access.Cluster, class string) (isolation.Verdict, bool) {
	t.Helper()
	p, err := c.Client.NetworkingV1().NetworkPolicies("ns").Get(t.Context(), isolation.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return isolation.Known(p, class, map[string]string{"pool": "blue"}, time.Now())
}

// What a probe shows is kept for the pods it is about; what it cannot show is not.
func TestVerdictIsKept(t *testing.T) {
	for _, enforced := range []bool{true, false} {
		c := cluster(t, behaving(enforced))
		r := Network(t.Context(), c, Probe{RuntimeClass: "gvisor", NodeSelector: map[string]string{"pool": "blue"}})
		if v, known := kept(t, c, "gvisor"); !known || v.Enforced != enforced || v.Ingress != enforced || v.Egress != enforced || v.Node != "n1" || r.NotKept != "" {
			t.Errorf("%v %+v, %+v, want known = true, Enforced = %v, Ingress = %v, Egress = %v, Node = \"n1\", NotKept empty", known, v, r, enforced, enforced, enforced)
		}
		if _, known := kept(t, c, ""); known {
			t.Error("it is known of pods that were not tried: known = true, want false")
		}
	}
	c := cluster(t, func(_ string, p *corev1.Pod) { ended(p, exitNoShell, "") })
	if r := Network(t.Context(), c, Probe{}); r.Verdict != Unknown || r.NotKept != "" {
		t.Errorf("%+v, want Verdict = Unknown, NotKept empty", r)
	}
	if v, known := kept(t, c, ""); known {
		t.Errorf("%+v, want no verdict", v)
	}
}

// A policy that takes effect late does not hold what runs before.
func TestLatePolicyIsNotKeptAsGood(t *testing.T) {
	c := cluster(t, behaving(true))
	s := newSession(c, Probe{})
	p, err := isolation.Ensure(t.Context(), c.Client.NetworkingV1(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	late := Result{Verdict: Enforced, Ingress: Enforced, Egress: Enforced, Gap: 2 * maxGap}
	if err := s.keep(t.Context(), p, late); err != nil {
		t.Fatal(err)
	}
	if v, known := kept(t, c, ""); !known || v.Enforced || late.findings()[0].Level != backend.LevelWarning {
		t.Errorf("%v %+v, want known = true, Enforced false, Level = LevelWarning", known, v)
	}
}

// A user who may not keep the verdict gets it with a warning.
func TestVerdictThatMayNotBeKept(t *testing.T) {
	c := cluster(t, behaving(true))
	c.Client.(*fake.Clientset).PrependReactor("update", "networkpolicies", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(networkingv1.Resource("networkpolicies"), isolation.Name, nil)
	})
	r := Network(t.Context(), c, Probe{})
	if r.Verdict != Enforced || !strings.Contains(r.NotKept, isolation.Name) || len(r.findings()) != 2 || r.findings()[0].Level != backend.LevelOK || r.findings()[1].Level != backend.LevelWarning {
		t.Errorf("%+v, want Verdict = Enforced, NotKept containing Name, len(r.findings()) = 2, Level = LevelOK, Level = LevelWarning", r)
	}
}
