package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// DefaultTimeout bounds a probe; it is mostly for pulling its image.
const DefaultTimeout = 2 * time.Minute

// maxGap is how long a policy may take to take effect on a new pod. Code runs in a sandbox
// only when its agent has been reached through the API server, which is later.
const maxGap = 5 * time.Second

// Probe says how the pods of a probe are made.
type Probe struct {
	// Image must have sh, and python3 or perl. Empty means the default image of Python.
	Image       string
	PullPolicy  corev1.PullPolicy
	PullSecrets []string
	// RuntimeClass, NodeSelector and Tolerations should be those of the sandboxes: networks
	// may differ from node to node.
	RuntimeClass string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Timeout bounds all of it; 0 means DefaultTimeout.
	Timeout time.Duration
}

// A Verdict says whether something is enforced.
type Verdict string

// The verdicts.
const (
	Enforced    Verdict = "enforced"
	NotEnforced Verdict = "not enforced"
	Unknown     Verdict = "unknown"
)

// A Result is what a probe of the network has shown.
type Result struct {
	Verdict Verdict `json:"verdict"` // of both directions
	Ingress Verdict `json:"ingress"` // into a pod that the policy cuts off
	Egress  Verdict `json:"egress"`  // out of one
	// Detail says how it was shown, or why it could not be.
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
	Node   string `json:"node,omitempty"` // where it was shown
	// Gap is how long after its start a pod could still reach others, until the policy
	// took effect on it.
	Gap time.Duration `json:"gap_ns,omitempty"`
	// NotKept is why the verdict could not be kept in the namespace, for those who open
	// sandboxes there.
	NotKept string `json:"not_kept,omitempty"`
	// Left are pods that could not be removed, with the reason.
	Left []string `json:"left,omitempty"`
}

// Network shows with pods whether the cluster enforces NetworkPolicies. Two servers and
// two callers run on one node, of each one with the label by which the policy cuts
// sandboxes off, and one without. The caller without the label must reach the server
// without, before and after its other tries; otherwise nothing is shown. Enforced is what
// the label keeps apart. The pods are removed, also when ctx ends.
func Network(ctx context.Context, c *access.Cluster, p Probe) Result {
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	timed, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	s := newSession(c, p)
	result, err := s.run(timed)
	if err != nil {
		if timed.Err() != nil && ctx.Err() == nil {
			err = &access.Error{Why: fmt.Sprintf("the pods of the probe were not done in %v: %v", p.Timeout, err),
				Fix: "give it more time; kubectl describe pods says more while it runs", Cause: err}
		}
		result = unknown(err)
	}
	result.Left = s.remove(ctx)
	return result
}

// unknown is the result of a probe that failed with err.
func unknown(err error) Result {
	r := Result{Verdict: Unknown, Ingress: Unknown, Egress: Unknown, Detail: err.Error()}
	if e, ok := errors.AsType[*access.Error](err); ok {
		r.Detail, r.Fix = e.Why, e.Fix
		if e.Doing != "" {
			r.Detail = e.Doing + ": " + e.Why
		}
	}
	return r
}

// run makes the pods, and reads what the callers have found out.
func (s *session) run(ctx context.Context) (Result, error) {
	policy, err := isolation.Ensure(ctx, s.cluster.Client.NetworkingV1(), s.cluster.Namespace)
	if err != nil {
		return Result{}, err
	}
	if err := s.create(ctx, openServer, closedServer); err != nil {
		return Result{}, err
	}
	if err := s.wait(ctx, ready, openServer, closedServer); err != nil {
		return Result{}, err
	}
	if err := s.create(ctx, openCaller, closedCaller); err != nil {
		return Result{}, err
	}
	if err := s.wait(ctx, done, openCaller, closedCaller); err != nil {
		return Result{}, err
	}
	open, err := s.found(openCaller)
	if err != nil {
		return Result{}, err
	}
	closed, err := s.found(closedCaller)
	if err != nil {
		return Result{}, err
	}
	r := conclude(open, closed)
	r.Node = s.pods[closedCaller].Spec.NodeName
	if err := s.keep(ctx, policy, r); err != nil {
		r.NotKept = err.Error()
	}
	return r, nil
}

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
