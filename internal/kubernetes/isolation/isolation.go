// Package isolation keeps the one NetworkPolicy that cuts every sandbox's pod of a
// namespace off all networks. What a sandbox may reach rides the agent's stream, so the
// policy is the same for every network mode.
package isolation

import (
	"context"
	"encoding/json"
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

// Annotation is what verdicts are kept in, at the policy: JSON, a list of Verdict. Who may
// write it may also change the policy, or make another one that opens what it closes.
const Annotation = "llmsandbox.dev/verdicts"

const (
	maxVerdicts   = 16      // are kept
	maxAnnotation = 8 << 10 // bytes that are read
)

// Keep puts a verdict at the policy that it was given on, in place of an older one on the
// same pods; tried is the policy as it was before the pods of the verdict were made. It
// fails when the policy has other rules now, or is another one.
func Keep(ctx context.Context, c typed.NetworkPoliciesGetter, tried *networkingv1.NetworkPolicy, v Verdict) error {
	const doing = "keep the verdict at the NetworkPolicy " + Name
	policies, p := c.NetworkPolicies(tried.Namespace), tried.DeepCopy()
	v.Policy, v.Generation = tried.UID, tried.Generation
	for {
		if !v.of(p, v.At) || !Holds(p) {
			return &access.Error{Doing: doing, Why: "it was changed while it was tried", Fix: "try again"}
		}
		if err := put(p, v); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		_, err := policies.Update(ctx, p, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return access.Explain(doing, err)
		}
		if p, err = policies.Get(ctx, Name, metav1.GetOptions{}); err != nil {
			return access.Explain(doing, err)
		}
	}
}

// put adds a verdict to those of a policy, and drops those that are out of date.
func put(p *networkingv1.NetworkPolicy, v Verdict) error {
	all := slices.DeleteFunc(verdicts(p), func(old Verdict) bool { return v.replaces(old) || !old.of(p, v.At) })
	all = append(all, v)
	slices.SortFunc(all, newest)
	text, err := json.Marshal(all[:min(len(all), maxVerdicts)])
	if err != nil {
		return err
	}
	if len(text) > maxAnnotation { // by long selectors
		if text, err = json.Marshal([]Verdict{v}); err != nil {
			return err
		}
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, Annotation, string(text))
	return nil
}

// verdicts are those at a policy. What is none of ours is no verdict.
func verdicts(p *networkingv1.NetworkPolicy) []Verdict {
	text := p.Annotations[Annotation]
	var all []Verdict
	if len(text) > maxAnnotation || json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all
}
