package kubernetes

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// Capabilities returns what a sandbox with the backend's options would be held to.
func (b *Backend) Capabilities(ctx context.Context) (backend.Capabilities, error) {
	if b.options.Pod != "" {
		return b.existingCapabilities(ctx)
	}
	pod, err := b.plan(backend.Spec{
		ID: "capabilities", Language: "python", BestEffort: true, Deadline: time.Now().Add(time.Hour),
		Limits: backend.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 1 << 10, Disk: 1 << 30},
	})
	if err != nil {
		return backend.Capabilities{}, err
	}
	if err := b.lookAtPolicy(ctx); err != nil {
		return backend.Capabilities{}, err
	}
	may, err := b.mayOwn(ctx)
	if err != nil {
		return backend.Capabilities{}, err
	}
	if may {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: ownerName(b.owner.id)}}
	}
	return b.controls(pod, backend.Limits{Memory: 1, CPUs: 1, PIDs: 1, Disk: 1}), nil
}

// controls returns the controls of a pod that this package made.
func (b *Backend) controls(pod *corev1.Pod, limits backend.Limits) backend.Capabilities {
	return podspec.Controls(pod, limits, b.policies(pod))
}

// mayOwn asks whether the cluster lets us make the Job that owns sandboxes.
func (b *Backend) mayOwn(ctx context.Context) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: b.cluster.Namespace, Verb: "create", Group: "batch", Resource: "jobs",
		},
	}}
	answer, err := b.cluster.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, access.Explain("ask what the cluster allows", err)
	}
	return answer.Status.Allowed, nil
}
