package kubernetes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// isolate makes sure that the namespace has the policy that cuts sandboxes off. It is
// looked at once by each Backend.
func (b *Backend) isolate(ctx context.Context) error {
	if err := b.isolating.Lock(ctx); err != nil {
		return err
	}
	defer b.isolating.Unlock()
	if b.isolated.Load() != nil {
		return nil
	}
	policy, err := isolation.Ensure(ctx, b.cluster.Client.NetworkingV1(), b.cluster.Namespace)
	if err == nil {
		b.isolated.Store(policy)
	}
	return err
}

// policies returns what is known of the cluster's network for a pod: by the caller, or by
// what doctor has kept at the policy when that was looked at.
func (b *Backend) policies(pod *corev1.Pod) podspec.Policies {
	if b.options.NetworkPolicyEnforced {
		return podspec.Policies{Enforced: true}
	}
	policy := b.isolated.Load()
	if policy == nil {
		return podspec.Policies{}
	}
	class := ""
	if pod.Spec.RuntimeClassName != nil {
		class = *pod.Spec.RuntimeClassName
	}
	v, known := isolation.Known(policy, class, pod.Spec.NodeSelector, time.Now())
	if !known {
		return podspec.Policies{}
	}
	return podspec.Policies{Enforced: v.Enforced, Seen: v.String()}
}

// lookAtPolicy sees the policy where no sandbox was made yet. It makes nothing.
func (b *Backend) lookAtPolicy(ctx context.Context) error {
	if b.options.NetworkPolicyEnforced || b.isolated.Load() != nil {
		return nil
	}
	policy, err := b.cluster.Client.NetworkingV1().NetworkPolicies(b.cluster.Namespace).Get(ctx, isolation.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // the first sandbox makes it
		return nil
	case err != nil:
		return access.Explain(fmt.Sprintf("look at the NetworkPolicy %s", isolation.Name), err)
	case isolation.Holds(policy): // else the next sandbox repairs it
		b.isolated.CompareAndSwap(nil, policy)
	}
	return nil
}
