package diagnose

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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

// A step is one thing that a caller has tried.
type step struct {
	kind    string // "must" or "cut"
	address string
	reached bool
	took    time.Duration
}

// parse reads what a caller said of the steps it was given. The image may be anybody's,
// so that nothing but exactly that is taken for an answer.
func parse(said string, asked []string) ([]step, error) {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) != len(asked) {
		return nil, fmt.Errorf("%d answers to %d questions", len(lines), len(asked))
	}
	steps := make([]step, len(asked))
	for i, line := range lines {
		words := strings.Split(line, " ")
		if len(words) != 4 || words[0]+"="+words[1] != asked[i] || words[2] != "reached" && words[2] != "blocked" {
			return nil, fmt.Errorf("%.80q is no answer to %s", line, asked[i])
		}
		ms, err := strconv.ParseUint(words[3], 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%.80q is no answer to %s", line, asked[i])
		}
		steps[i] = step{kind: words[0], address: words[1], reached: words[2] == "reached", took: time.Duration(ms) * time.Millisecond}
	}
	return steps, nil
}

// conclude says what the answers show. open are the steps of the caller without the
// label, closed those of the one with.
func conclude(open, closed []step) Result {
	for _, s := range open {
		if s.kind == "must" && !s.reached {
			return Result{Verdict: Unknown, Ingress: Unknown, Egress: Unknown,
				Detail: fmt.Sprintf("whether NetworkPolicies are enforced cannot be told: a pod that no policy of ours selects cannot reach another one at %s", s.address),
				Fix:    "another policy may be in the way: let it spare pods with the label llmsandbox.dev/role=probe; or the pod network does not work"}
		}
	}
	r := Result{Ingress: verdict(open), Egress: verdict(closed)}
	const (
		control = " (another pod beside it could all the time)"
		fix     = "install a network plugin that enforces NetworkPolicies, such as Calico or Cilium, and see that no other policy opens what ours closes; until then what runs in a sandbox may use the pod's network"
	)
	switch {
	case r.Ingress == Enforced && r.Egress == Enforced:
		r.Verdict = Enforced
		r.Detail = "NetworkPolicies are enforced: a pod that is cut off could neither be reached nor reach anything" + control
		for _, s := range closed {
			r.Gap = max(r.Gap, s.took)
		}
		if r.Gap > 0 {
			r.Detail += fmt.Sprintf("; it took effect %v after the pod's program had started", r.Gap)
		}
	case r.Ingress == Unknown || r.Egress == Unknown:
		r.Verdict, r.Detail = Unknown, "whether NetworkPolicies are enforced cannot be told: the pods of the probe have no addresses"
		r.Fix = "look at the pod network"
	case r.Ingress == Enforced:
		r.Verdict, r.Fix = NotEnforced, fix
		r.Detail = "NetworkPolicies are enforced inwards only: a pod that is cut off could not be reached, but reached others"
	case r.Egress == Enforced:
		r.Verdict, r.Fix = NotEnforced, fix
		r.Detail = "NetworkPolicies are enforced outwards only: a pod that is cut off could reach nothing, but could be reached"
	default:
		r.Verdict, r.Fix = NotEnforced, fix
		r.Detail = "NetworkPolicies are not enforced: a pod that should be cut off was reached, and reached others"
	}
	return r
}

// verdict is Enforced when every cut address is out of reach: one family of addresses that
// is left open is a way out.
func verdict(steps []step) Verdict {
	v := Unknown
	for _, s := range steps {
		switch {
		case s.kind != "cut":
		case s.reached:
			return NotEnforced
		default:
			v = Enforced
		}
	}
	return v
}
