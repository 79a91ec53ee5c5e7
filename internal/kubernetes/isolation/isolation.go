// Package isolation keeps the one NetworkPolicy that cuts every sandbox's pod of a
// namespace off all networks. What a sandbox may reach rides the agent's stream, so the
// policy is the same for every network mode.
package isolation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/networking/v1"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// Name is the policy's name in each namespace.
const Name = "llmsandbox-isolated"

// Policy returns the policy that denies its pods everything, in and out.
func Policy(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name, Namespace: namespace,
			Labels: map[string]string{podspec.LabelManagedBy: podspec.ManagedBy},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{podspec.LabelNetwork: podspec.NetworkIsolated}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// Ensure makes the policy where there is none, undoes changes that others made to its
// rules, and returns it. It may be called concurrently, and by several processes.
func Ensure(ctx context.Context, c typed.NetworkPoliciesGetter, namespace string) (*networkingv1.NetworkPolicy, error) {
	policies, want := c.NetworkPolicies(namespace), Policy(namespace)
	for {
		have, err := policies.Get(ctx, Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			made, err := policies.Create(ctx, want, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				continue // another process was quicker: look at what it made
			}
			return made, access.Explain(fmt.Sprintf("create the NetworkPolicy %s", Name), err)
		case err != nil:
			return nil, access.Explain(fmt.Sprintf("look at the NetworkPolicy %s", Name), err)
		case Holds(have):
			return have, nil
		}
		have.Spec = want.Spec
		delete(have.Annotations, Annotation) // it was of these rules, but they were changed
		repaired, err := policies.Update(ctx, have, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // changed or removed since it was read
		}
		return repaired, access.Explain(fmt.Sprintf("repair the NetworkPolicy %s, whose rules were changed", Name), err)
	}
}

// Holds reports whether a policy that is there denies all that Policy does.
func Holds(p *networkingv1.NetworkPolicy) bool {
	want := Policy(p.Namespace).Spec
	if len(p.Spec.PodSelector.MatchExpressions) > 0 || !maps.Equal(p.Spec.PodSelector.MatchLabels, want.PodSelector.MatchLabels) {
		return false
	}
	for _, direction := range want.PolicyTypes {
		if !slices.Contains(p.Spec.PolicyTypes, direction) {
			return false
		}
	}
	return len(p.Spec.Ingress) == 0 && len(p.Spec.Egress) == 0
}
