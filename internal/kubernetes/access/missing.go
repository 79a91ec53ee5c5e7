package access

import (
	"context"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asking is how many permissions are asked about at once.
const asking = 8

// Missing asks the cluster which of the Needed permissions the caller has not, in the
// namespace of c. Every authorizer is asked, not only RBAC.
func Missing(ctx context.Context, c *Cluster) ([]Permission, error) {
	all := Needed()
	allowed := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	for i, p := range all {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: c.Namespace, Verb: p.Verb, Group: p.Group, Resource: p.Resource, Subresource: p.Subresource,
				},
			}}
			answer, err := c.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return Explain("ask what is allowed", err)
			}
			allowed[i] = answer.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []Permission
	for i, p := range all {
		if !allowed[i] {
			missing = append(missing, p)
		}
	}
	return missing, nil
}
