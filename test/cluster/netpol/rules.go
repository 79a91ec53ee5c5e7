package netpol

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// chain is entered from INPUT and FORWARD, by rules that inside/network makes: its
// content is all that changes.
const chain = "LLMSANDBOX-NP"

// A direction is one half of what policies are about. Egress is looked at first: a
// packet between two pods must pass the policies of both.
type direction struct {
	policy     netv1.PolicyType
	self, peer string // how iptables names the address of the pod, and of the other end
}

var directions = []direction{
	{netv1.PolicyTypeEgress, "-s", "-d"},
	{netv1.PolicyTypeIngress, "-d", "-s"},
}

// state is what the rules follow from.
type state struct {
	pods       []*corev1.Pod
	policies   []*netv1.NetworkPolicy
	namespaces map[string]labels.Set // the labels of each
}

// table is the text for iptables-restore. The same state gives the same text.
func table(pods []*corev1.Pod, namespaces []*corev1.Namespace, policies []*netv1.NetworkPolicy) string {
	s := state{pods: slices.Clone(pods), policies: slices.Clone(policies), namespaces: map[string]labels.Set{}}
	slices.SortFunc(s.pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	slices.SortFunc(s.policies, func(a, b *netv1.NetworkPolicy) int { return cmp.Compare(a.UID, b.UID) })
	for _, n := range namespaces {
		s.namespaces[n.Name] = n.Labels
	}
	var declared, entries, bodies strings.Builder
	for _, d := range directions {
		for _, p := range s.pods {
			if !addressed(p) {
				continue
			}
			allowed, isolated := s.allowed(p, d)
			if !isolated {
				continue
			}
			name := chainOf(p.UID, d)
			fmt.Fprintf(&declared, ":%s - [0:0]\n", name)
			fmt.Fprintf(&entries, "-A %s %s %s/32 -j %s\n", chain, d.self, p.Status.PodIP, name)
			for _, match := range allowed {
				fmt.Fprintf(&bodies, "-A %s%s -j RETURN\n", name, match)
			}
			fmt.Fprintf(&bodies, "-A %s -j DROP\n", name)
		}
	}
	return "*filter\n:" + chain + " - [0:0]\n" + declared.String() +
		"-A " + chain + " -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN\n" +
		entries.String() + bodies.String() + "COMMIT\n"
}

// allowed are the matches of what may pass, and whether any policy is about the pod.
func (s state) allowed(p *corev1.Pod, d direction) (matches []string, isolated bool) {
	for _, policy := range s.policies {
		if policy.Namespace != p.Namespace || !selects(&policy.Spec.PodSelector, p.Labels) || !slices.Contains(policy.Spec.PolicyTypes, d.policy) {
			continue
		}
		isolated = true
		if d.policy == netv1.PolicyTypeEgress {
			for _, r := range policy.Spec.Egress {
				matches = append(matches, s.matches(policy.Namespace, r.To, r.Ports, p, d)...)
			}
			continue
		}
		for _, r := range policy.Spec.Ingress {
			matches = append(matches, s.matches(policy.Namespace, r.From, r.Ports, p, d)...)
		}
	}
	return matches, isolated
}

// addressed tells whether a pod has an address of its own.
func addressed(p *corev1.Pod) bool {
	return p.Status.PodIP != "" && !p.Spec.HostNetwork && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// chainOf is short enough for iptables, which takes 28 bytes.
func chainOf(uid types.UID, d direction) string {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return fmt.Sprintf("%s-%.1s-%08x", chain, d.policy, h.Sum32())
}

// selects tells whether a selector matches; one that is malformed matches nothing, as
// the API server admits none.
func selects(s *metav1.LabelSelector, l labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(l)
}
