package kubernetes

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
)

// judge lets doctor have seen something of a backend's cluster.
func judge(t *testing.T, b *Backend, v isolation.Verdict) {
	t.Helper()
	c := b.cluster.Client.NetworkingV1()
	p, err := isolation.Ensure(t.Context(), c, testNamespace)
	if err != nil {
		t.Fatal(err)
	}
	v.At = time.Now()
	if err := isolation.Keep(t.Context(), c, p, v); err != nil {
		t.Fatal(err)
	}
}

// What doctor has kept in the namespace counts, unless the caller says otherwise.
func TestNetworkAsDoctorSawIt(t *testing.T) {
	holds := isolation.Verdict{Enforced: true, Ingress: true, Egress: true}
	ofGVisor := holds
	ofGVisor.RuntimeClass = "gvisor"
	for name, c := range map[string]struct {
		options  Options
		seen     []isolation.Verdict
		enforced bool
		says     string
	}{
		"not looked at":          {says: "is not known"},
		"it holds":               {seen: []isolation.Verdict{holds}, enforced: true, says: "doctor saw it on 2"},
		"it leaks":               {seen: []isolation.Verdict{{}}, says: "a pod that is cut off was reached"},
		"the caller knows":       {options: Options{NetworkPolicyEnforced: true}, seen: []isolation.Verdict{{}}, enforced: true},
		"seen of another class":  {options: Options{RuntimeClass: "gvisor"}, seen: []isolation.Verdict{holds}, says: "is not known"},
		"seen of the same class": {options: Options{RuntimeClass: "gvisor"}, seen: []isolation.Verdict{holds, ofGVisor}, enforced: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, client := testBackend(t, c.options)
			client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return true, a.(clienttesting.CreateAction).GetObject(), nil
			})
			for _, v := range c.seen {
				judge(t, b, v)
			}
			caps, err := b.Capabilities(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check := func(caps backend.Capabilities) {
				t.Helper()
				if k, _ := caps.Get("network"); k.Enforced != c.enforced || !strings.Contains(k.Detail+k.Why, c.says) {
					t.Errorf("%+v, want Enforced = %v, Why containing %q", k, c.enforced, c.says)
				}
			}
			check(caps)
			if c.seen == nil && slices.Contains(verbs(client), "create networkpolicies") {
				t.Errorf("requests %q, want no policy created by a question", verbs(client))
			}
			// A new process sees it when it makes sure of the policy, and asks nothing else.
			b2, err := newBackend(b.cluster, b.options)
			if err != nil {
				t.Fatal(err)
			}
			var made *corev1.Pod
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				made = a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
				return false, nil, nil
			})
			startsAs(client, waiting("ErrImagePull", "not found"))
			if _, err := b2.Create(t.Context(), backend.Spec{ID: "a", Language: "python"}); err == nil {
				t.Fatal("a pod without a kubelet has started: got no error, want an error")
			}
			check(b2.controls(made, backend.Limits{}))
		})
	}
}
