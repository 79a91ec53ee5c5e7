package diagnose

import (
	"context"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
)

// Holds reports that code in a sandbox is cut off: policies are enforced, and take effect
// before code runs.
func (r Result) Holds() bool { return r.Verdict == Enforced && r.Gap <= maxGap }

// keep records the verdict at the policy as it was when the probe began. An unknown
// verdict is not recorded: it does not replace an older one.
func (s *session) keep(ctx context.Context, policy *networkingv1.NetworkPolicy, r Result) error {
	if r.Verdict == Unknown {
		return nil
	}
	return isolation.Keep(ctx, s.cluster.Client.NetworkingV1(), policy, isolation.Verdict{
		Enforced: r.Holds(), Ingress: r.Ingress == Enforced, Egress: r.Egress == Enforced, Gap: r.Gap,
		Node: r.Node, At: time.Now().UTC().Truncate(time.Second), RuntimeClass: s.probe.RuntimeClass, NodeSelector: s.probe.NodeSelector,
	})
}

// findings are the result for a report.
func (r Result) findings() []backend.Finding {
	detail := r.Detail
	if r.Node != "" {
		detail += "; on node " + r.Node
	}
	l := backend.Finding{Check: "network", Level: backend.LevelWarning, Detail: detail, Fix: r.Fix}
	switch {
	case r.Holds():
		l.Level = backend.LevelOK
	case r.Verdict == Enforced:
		l.Fix = "the network plugin is slow to learn of new pods: see how loaded it is; code that runs so soon after its sandbox's start is not cut off yet"
	}
	lines := []backend.Finding{l}
	if r.NotKept != "" {
		lines = append(lines, weak("verdict", "those who open sandboxes here are not told of it: "+r.NotKept, "let doctor update the NetworkPolicy, or tell them to use --network-policy-enforced where policies hold"))
	}
	for _, left := range r.Left {
		lines = append(lines, weak("probe", "a pod of the probe is left: "+left, "remove it: kubectl delete pod"))
	}
	return lines
}
