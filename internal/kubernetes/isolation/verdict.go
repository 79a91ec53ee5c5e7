package isolation

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// MaxAge is how long a verdict is believed: network plugins and nodes are replaced.
	MaxAge = 30 * 24 * time.Hour
	// maxSkew is how far the clock behind a verdict may be ahead of ours.
	maxSkew = 5 * time.Minute
)

// A Verdict is what doctor has seen of a policy, with pods that tried. It is one of the
// pods of one runtime class, on nodes with the labels of a selector.
type Verdict struct {
	Enforced bool `json:"enforced"`
	// Ingress and Egress say that a pod that the policy cuts off could not be reached, and
	// could reach nothing.
	Ingress bool `json:"ingress"`
	Egress  bool `json:"egress"`
	// Gap is how long after its start a pod could still reach others.
	Gap  time.Duration `json:"gap_ns,omitempty"`
	Node string        `json:"node,omitempty"` // where it was seen
	At   time.Time     `json:"at"`

	RuntimeClass string            `json:"runtime_class,omitempty"`
	NodeSelector map[string]string `json:"node_selector,omitempty"`
	// Policy and Generation are which policy it was, with which rules.
	Policy     types.UID `json:"policy"`
	Generation int64     `json:"generation"`
}

// of reports whether the verdict is on a policy with the rules that it has now, and young
// enough.
func (v Verdict) of(p *networkingv1.NetworkPolicy, now time.Time) bool {
	age := now.Sub(v.At)
	return v.Policy == p.UID && v.Generation == p.Generation && age <= MaxAge && age >= -maxSkew
}

// about reports whether the verdict is about pods of a class that run on nodes with labels:
// on some of the nodes that it could have been given on.
func (v Verdict) about(class string, nodes map[string]string) bool {
	for label, value := range v.NodeSelector {
		if have, ok := nodes[label]; !ok || have != value {
			return false
		}
	}
	return v.RuntimeClass == class
}

// replaces reports whether v is a newer verdict on the same pods.
func (v Verdict) replaces(old Verdict) bool {
	return v.RuntimeClass == old.RuntimeClass && maps.Equal(v.NodeSelector, old.NodeSelector)
}

// String says when and where it was given, and why it is bad if it is.
func (v Verdict) String() string {
	where := v.Node
	if len(validation.IsDNS1123Subdomain(where)) > 0 { // anybody may have written it
		where = ""
	}
	s := "doctor saw it on " + v.At.UTC().Format(time.DateOnly)
	if where != "" {
		s += " on node " + where
	}
	switch {
	case v.Enforced:
		return s
	case v.Ingress && v.Egress:
		return fmt.Sprintf("%s: a pod that is cut off could reach others for %v", s, v.Gap)
	case v.Ingress:
		return s + ": a pod that is cut off reached others"
	case v.Egress:
		return s + ": a pod that is cut off was reached"
	}
	return s + ": a pod that is cut off was reached, and reached others"
}

// Known is the verdict on a policy for pods of a runtime class, on nodes with labels, if
// there is one to believe. Of several the bad one counts.
func Known(p *networkingv1.NetworkPolicy, class string, nodes map[string]string, now time.Time) (v Verdict, known bool) {
	if !Holds(p) {
		return Verdict{}, false
	}
	for _, kept := range verdicts(p) {
		if kept.of(p, now) && kept.about(class, nodes) && (!known || !kept.Enforced) {
			v, known = kept, true
		}
	}
	return v, known
}

// newest orders verdicts by age.
func newest(a, b Verdict) int { return cmp.Compare(b.At.UnixNano(), a.At.UnixNano()) }
