package diagnose

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
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
	if p.Timeout == 0 {
		p.Timeout = DefaultTimeout
	}
	timed, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	s := newSession(c, p)
	result, err := s.run(timed)
	if err != nil {
		if timed.Err() != nil && ctx.Err() == nil {
			err = &access.Error{Why: fmt.Sprintf("the pods of the probe were not done in %v: %s", p.Timeout, s.state()),
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
	var e *access.Error
	if errors.As(err, &e) {
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
	if err := s.watch(ctx); err != nil {
		return Result{}, err
	}
	defer s.watcher.Stop()
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
