package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// enforceLabel is what a namespace's pods are refused by.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// untold is a check of something that the caller may not see, and that is not needed.
func untold(name, what string, err error) []backend.Finding {
	if apierrors.IsForbidden(err) {
		return []backend.Finding{fine(name, what+" is not known: the caller may not see it")}
	}
	l := broken(name, access.Explain("look at "+name, err))
	l.Level = backend.LevelWarning
	return []backend.Finding{l}
}

// namespace looks at what the namespace lets in.
func namespace(ctx context.Context, c *access.Cluster) []backend.Finding {
	const name = "namespace"
	n, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return []backend.Finding{fatal(name, fmt.Sprintf("there is no namespace %s", c.Namespace), "make it (kubectl create namespace, or deploy/), or name another one")}
	case err != nil:
		return untold(name, c.Namespace+": its Pod Security level", err)
	case n.Status.Phase == corev1.NamespaceTerminating:
		return []backend.Finding{fatal(name, fmt.Sprintf("%s is being removed", c.Namespace), "wait until it is gone and make it anew, or name another one")}
	}
	if level := n.Labels[enforceLabel]; level == "restricted" {
		return []backend.Finding{fine(name, c.Namespace+`, which lets in only "restricted" pods`)}
	}
	return []backend.Finding{weak(name, fmt.Sprintf("%s, which lets in pods that are not \"restricted\" (Pod Security level %q)", c.Namespace, cmp.Or(n.Labels[enforceLabel], "privileged")),
		fmt.Sprintf("kubectl label namespace %s %s=restricted: a pod template then cannot loosen more than that", c.Namespace, enforceLabel))}
}

// policies looks at the policy of the sandboxes, and at others that open what it closes.
func policies(ctx context.Context, c *access.Cluster) []backend.Finding {
	const name = "NetworkPolicy"
	all, err := c.Client.NetworkingV1().NetworkPolicies(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return untold(name, "what other policies open", err)
	}
	detail := isolation.Name + " is not there; the first sandbox makes it"
	var open []string
	for _, p := range all.Items {
		switch {
		case p.Name == isolation.Name && isolation.Holds(&p):
			detail = isolation.Name + " is there, and denies sandboxes everything"
		case p.Name == isolation.Name:
			detail = isolation.Name + " is there, but was changed; the next sandbox repairs it"
		case opens(&p):
			open = append(open, p.Name)
		}
	}
	if len(open) > 0 {
		return []backend.Finding{weak(name, fmt.Sprintf("%s. Sandboxes are also selected by %s, which lets traffic through", detail, strings.Join(open, ", ")),
			fmt.Sprintf("let these policies not select pods with the label %s=%s, or put sandboxes in a namespace of their own", podspec.LabelNetwork, podspec.NetworkIsolated))}
	}
	return []backend.Finding{fine(name, detail)}
}

// opens reports whether a policy lets anything through to or from sandboxes: what policies
// allow adds up. An id and an owner are different with each sandbox, so a selector that
// asks for these is not seen.
func opens(p *networkingv1.NetworkPolicy) bool {
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
	return err == nil && len(p.Spec.Ingress)+len(p.Spec.Egress) > 0 && selector.Matches(labels.Set{
		podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelName: podspec.NameSandbox,
		podspec.LabelRole: podspec.RoleSandbox, podspec.LabelNetwork: podspec.NetworkIsolated,
	})
}

// runtimeClasses returns what pods can be run by.
func runtimeClasses(ctx context.Context, c *access.Cluster) []backend.Finding {
	const name = "RuntimeClasses"
	all, err := c.Client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return untold(name, "which there are", err)
	}
	if len(all.Items) == 0 {
		return []backend.Finding{fine(name, "none: sandboxes share the kernel of their node")}
	}
	var names []string
	for _, r := range all.Items {
		names = append(names, fmt.Sprintf("%s (%s)", r.Name, r.Handler))
	}
	slices.Sort(names)
	return []backend.Finding{fine(name, strings.Join(names, ", "))}
}

// nodes counts what could run sandboxes.
func nodes(ctx context.Context, c *access.Cluster) []backend.Finding {
	const name = "nodes"
	all, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return untold(name, "how many there are", err)
	}
	counts := map[string]int{}
	ready := 0
	for _, n := range all.Items {
		if !usable(n) {
			continue
		}
		ready++
		counts[n.Status.NodeInfo.OperatingSystem+"/"+n.Status.NodeInfo.Architecture]++
	}
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", counts[k], k))
	}
	if counts["linux/amd64"]+counts["linux/arm64"] == 0 {
		return []backend.Finding{weak(name, fmt.Sprintf("of %d, none is ready that could run sandboxes (Linux on amd64 or arm64)", len(all.Items)), "see kubectl get nodes; where nodes are started on demand, use --wait-for-node")}
	}
	return []backend.Finding{fine(name, fmt.Sprintf("%d of %d ready: %s", ready, len(all.Items), strings.Join(kinds, ", ")))}
}

func usable(n corev1.Node) bool {
	return !n.Spec.Unschedulable && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
