package podspec

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Policies say what is known of how the cluster's network plugin takes NetworkPolicies.
type Policies struct {
	Enforced bool   // it is known to enforce them
	Seen     string // what that is known by, or that it does not; empty: not looked at yet
}

func (v view) network(p Policies) backend.Control {
	detail := "nothing in and nothing out; a network that is asked for goes through a proxy of the process that opens the sandbox"
	if others := v.others(); len(others) > 0 {
		detail += "; the loopback is shared with " + strings.Join(others, ", ")
	}
	switch {
	case v.pod.Labels[LabelNetwork] != NetworkIsolated:
		return backend.Control{Name: "network", Why: "the pod has no label " + LabelNetwork + ", by which the NetworkPolicy selects it", Fix: "leave the label as it was"}
	case !p.Enforced && p.Seen != "":
		return backend.Control{Name: "network", By: "NetworkPolicy",
			Why: "this cluster's network plugin does not enforce policies, " + p.Seen,
			Fix: "install one that does, and let `llmsandbox doctor --backend kubernetes` look again"}
	case !p.Enforced:
		return backend.Control{Name: "network", By: "NetworkPolicy",
			Why: "whether this cluster's network plugin enforces policies is not known",
			Fix: "`llmsandbox doctor --backend kubernetes` finds out, and keeps it for those who open sandboxes"}
	}
	if p.Seen != "" {
		detail += "; " + p.Seen
	}
	return on("network", "NetworkPolicy", detail)
}
