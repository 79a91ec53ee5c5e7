package access

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Permission is one thing that the caller must be allowed in the namespace.
type Permission struct {
	Verb, Group, Resource, Subresource string
	// Optional says that sandboxes work without it, with less; Why says what is lost.
	Optional bool
	Why      string
}

// String is the permission as text, such as "create pods/exec".
func (p Permission) String() string {
	s := p.Verb + " " + p.path()
	if p.Group != "" {
		s += "." + p.Group
	}
	return s
}

func (p Permission) path() string {
	if p.Subresource == "" {
		return p.Resource
	}
	return p.Resource + "/" + p.Subresource
}

// Needed are the permissions that the backend uses, and none that it does not.
func Needed() []Permission {
	return slices.Clone(needed)
}

var needed = []Permission{
	{Verb: "create", Resource: "pods", Why: "a sandbox is a pod"},
	{Verb: "get", Resource: "pods", Why: "attaching to a sandbox reads its pod"},
	{Verb: "list", Resource: "pods", Why: "what there is, and what was left behind"},
	{Verb: "watch", Resource: "pods", Why: "when a sandbox is ready, and when and why it ended"},
	{Verb: "delete", Resource: "pods", Why: "closing a sandbox"},
	// The stream into a pod is asked for with GET (WebSocket) or, from servers and proxies
	// that have no WebSocket, with POST (SPDY). Since Kubernetes 1.35 a WebSocket needs
	// the right to create, too.
	{Verb: "get", Resource: "pods", Subresource: "exec", Why: "the stream to the agent, over WebSocket"},
	{Verb: "create", Resource: "pods", Subresource: "exec", Why: "the stream to the agent, over SPDY, and over WebSocket since Kubernetes 1.35"},
	{Verb: "get", Resource: "pods", Subresource: "attach", Why: "bringing the agent and libraries into a pod, over WebSocket"},
	{Verb: "create", Resource: "pods", Subresource: "attach", Why: "bringing the agent and libraries into a pod, over SPDY, and over WebSocket since Kubernetes 1.35"},
	{Verb: "patch", Resource: "pods", Optional: true, Why: "a sandbox's deadline otherwise stays as it was opened with"},
	{Verb: "get", Group: "networking.k8s.io", Resource: "networkpolicies", Why: "the policy that cuts sandboxes off the network must be there"},
	{Verb: "create", Group: "networking.k8s.io", Resource: "networkpolicies", Optional: true, Why: "the policy must otherwise be made by deploy/"},
	{Verb: "update", Group: "networking.k8s.io", Resource: "networkpolicies", Optional: true, Why: "a changed policy must otherwise be repaired by hand, and doctor cannot keep what it saw"},
	{Verb: "list", Group: "networking.k8s.io", Resource: "networkpolicies", Optional: true, Why: "doctor otherwise cannot see whether another policy opens what ours closes"},
	{Verb: "get", Resource: "persistentvolumeclaims", Optional: true, Why: "no sandbox can otherwise have a volume"},
	{Verb: "list", Resource: "persistentvolumeclaims", Optional: true, Why: "volumes otherwise cannot be listed"},
	{Verb: "watch", Resource: "persistentvolumeclaims", Optional: true, Why: "the name of a removed volume is otherwise free a moment later only"},
	{Verb: "create", Resource: "persistentvolumeclaims", Optional: true, Why: "volumes otherwise cannot be created"},
	{Verb: "delete", Resource: "persistentvolumeclaims", Optional: true, Why: "volumes otherwise cannot be removed"},
	{Verb: "list", Resource: "events", Optional: true, Why: "without it each start takes a second longer, and why one fails is told in fewer words, or only by the timeout"},
	{Verb: "watch", Resource: "events", Optional: true, Why: "without it each start takes a second longer, and why one fails is told in fewer words, or only by the timeout"},
	{Verb: "list", Group: "batch", Resource: "jobs", Optional: true, Why: "gc otherwise cannot tell whose owner is gone"},
	{Verb: "create", Group: "batch", Resource: "jobs", Optional: true, Why: "abandoned pods are otherwise not removed by the cluster itself"},
	{Verb: "patch", Group: "batch", Resource: "jobs", Optional: true, Why: "abandoned pods are otherwise not removed by the cluster itself"},
	{Verb: "delete", Group: "batch", Resource: "jobs", Optional: true, Why: "the owner's Job otherwise stays until its deadline"},
}

// Rules are the RBAC rules that grant permissions, those of one resource as one rule.
func Rules(permissions []Permission) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, p := range permissions {
		i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == p.Group && r.Resources[0] == p.path()
		})
		if i < 0 {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.path()}})
			i = len(rules) - 1
		}
		if !slices.Contains(rules[i].Verbs, p.Verb) {
			rules[i].Verbs = append(rules[i].Verbs, p.Verb)
		}
	}
	return rules
}

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
