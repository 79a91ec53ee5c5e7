package netpol

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func pod(name, ip string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}}}
	p.Status.PodIP = ip
	return p
}

func policy(app string, types ...netv1.PolicyType) *netv1.NetworkPolicy {
	return &netv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a", UID: "p"},
		Spec:       netv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, PolicyTypes: types},
	}
}

func TestTable(t *testing.T) {
	one, two := pod("one", "10.0.0.1"), pod("two", "10.0.0.2")
	deny := policy("one", netv1.PolicyTypeEgress, netv1.PolicyTypeIngress)
	port := intstr.FromInt32(80)
	some := policy("one", netv1.PolicyTypeIngress)
	some.Spec.Ingress = []netv1.NetworkPolicyIngressRule{{
		From:  []netv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "two"}}}},
		Ports: []netv1.NetworkPolicyPort{{Port: &port}},
	}}
	elsewhere := policy("one", netv1.PolicyTypeEgress)
	elsewhere.Namespace = "b"
	ended := pod("one", "10.0.0.1")
	ended.Status.Phase = corev1.PodFailed
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		policy *netv1.NetworkPolicy
		drops  int
		passes []string
	}{
		"deny":                 {[]*corev1.Pod{one, two}, deny, 2, nil},
		"from one pod":         {[]*corev1.Pod{one, two}, some, 1, []string{"-s 10.0.0.2/32 -p tcp --dport 80"}},
		"of another namespace": {[]*corev1.Pod{one, two}, elsewhere, 0, nil},
		"a pod that has ended": {[]*corev1.Pod{ended}, deny, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := table(c.pods, nil, []*netv1.NetworkPolicy{c.policy})
			if n := strings.Count(text, "-j DROP\n"); n != c.drops {
				t.Errorf("%d drops, not %d:\n%s", n, c.drops, text)
			}
			var passes []string
			for line := range strings.Lines(text) {
				if match, ok := strings.CutSuffix(line, " -j RETURN\n"); ok && !strings.Contains(line, "conntrack") {
					passes = append(passes, strings.SplitN(match, " ", 3)[2])
				}
			}
			if !slices.Equal(passes, c.passes) {
				t.Errorf("passes %q, not %q:\n%s", passes, c.passes, text)
			}
		})
	}
}

// A chain of a pod that has gone is removed, and only that.
func TestRetire(t *testing.T) {
	deny := policy("one", netv1.PolicyTypeEgress)
	before := table([]*corev1.Pod{pod("one", "10.0.0.1")}, nil, []*netv1.NetworkPolicy{deny})
	after := table(nil, nil, []*netv1.NetworkPolicy{deny})
	text := retire(before, after)
	gone := chainOf(pod("one", "").UID, directions[0])
	for _, want := range []string{":" + gone + " - [0:0]\n", "-X " + gone + "\nCOMMIT\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Count(text, "-X ") != 1 || retire(after, after) != after {
		t.Errorf("more is removed than was there, want strings.Count(text, \"-X \") = 1, retire(after, after) = %v:\n%s", after, text)
	}
}

func TestSubtract(t *testing.T) {
	for _, c := range []struct{ whole, except, left string }{
		{"10.0.0.0/30", "10.0.0.0/31", "10.0.0.2/31"},
		{"10.0.0.0/30", "10.0.0.1/32", "10.0.0.0/32 10.0.0.2/31"},
		{"10.0.0.0/30", "10.0.0.0/8", ""},
		{"10.0.0.0/30", "10.1.0.0/30", "10.0.0.0/30"},
	} {
		var left []string
		for _, p := range subtract(netip.MustParsePrefix(c.whole), netip.MustParsePrefix(c.except)) {
			left = append(left, p.String())
		}
		if got := strings.Join(left, " "); got != c.left {
			t.Errorf("%s without %s is %q, not %q", c.whole, c.except, got, c.left)
		}
	}
}
