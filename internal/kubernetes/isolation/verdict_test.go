package isolation

import (
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// judged is a policy with verdicts, each as of noon unless it says.
func judged(t *testing.T, verdicts ...Verdict) *networkingv1.NetworkPolicy {
	t.Helper()
	p := Policy(ns)
	p.UID, p.Generation = "u1", 1
	for _, v := range verdicts {
		if v.At.IsZero() {
			v.At = noon
		}
		v.Policy, v.Generation = p.UID, p.Generation
		if err := put(p, v); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

var good = Verdict{Enforced: true, Ingress: true, Egress: true, Node: "n1"}

func TestKnown(t *testing.T) {
	blue := map[string]string{"pool": "blue"}
	ofGVisor, ofBlue, bad, ahead := good, good, Verdict{}, good
	ofGVisor.RuntimeClass, ofBlue.NodeSelector, ahead.At = "gvisor", blue, noon.Add(time.Hour)
	badBlue := Verdict{NodeSelector: blue}
	for name, c := range map[string]struct {
		policy          *networkingv1.NetworkPolicy
		class           string
		nodes           map[string]string
		after           time.Duration
		change          func(*networkingv1.NetworkPolicy)
		known, enforced bool
	}{
		"none":               {policy: judged(t)},
		"good":               {policy: judged(t, good), known: true, enforced: true},
		"bad":                {policy: judged(t, bad), known: true},
		"the newer one":      {policy: judged(t, good, bad), known: true},
		"old enough still":   {policy: judged(t, good), after: MaxAge, known: true, enforced: true},
		"too old":            {policy: judged(t, good), after: MaxAge + time.Second},
		"of tomorrow":        {policy: judged(t, ahead)},
		"of another runtime": {policy: judged(t, good), class: "gvisor"},
		"of this runtime":    {policy: judged(t, good, ofGVisor), class: "gvisor", known: true, enforced: true},
		"of fewer nodes":     {policy: judged(t, ofBlue)},
		"of other nodes":     {policy: judged(t, ofBlue), nodes: map[string]string{"pool": "red"}},
		"of these nodes":     {policy: judged(t, ofBlue), nodes: map[string]string{"pool": "blue", "disk": "fast"}, known: true, enforced: true},
		"of more nodes":      {policy: judged(t, good), nodes: blue, known: true, enforced: true},
		"bad of these nodes": {policy: judged(t, badBlue, good), nodes: blue, known: true},
		"of another policy":  {policy: judged(t, good), change: func(p *networkingv1.NetworkPolicy) { p.UID = "u2" }},
		"of other rules":     {policy: judged(t, good), change: func(p *networkingv1.NetworkPolicy) { p.Generation = 3 }},
		"the rules are open": {policy: judged(t, good), change: func(p *networkingv1.NetworkPolicy) { p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1] }},
		"none of ours": {policy: judged(t), change: func(p *networkingv1.NetworkPolicy) {
			p.Annotations = map[string]string{Annotation: `{"enforced":true}`}
		}},
		"more than can be read": {policy: judged(t, good), change: func(p *networkingv1.NetworkPolicy) { p.Annotations[Annotation] += strings.Repeat(" ", maxAnnotation) }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.policy)
			}
			if v, known := Known(c.policy, c.class, c.nodes, noon.Add(c.after)); known != c.known || v.Enforced != c.enforced {
				t.Errorf("%v %+v, want known = %v, Enforced = %v", known, v, c.known, c.enforced)
			}
		})
	}
}

// What a verdict says is in our own text, whatever its author wrote.
func TestVerdictInWords(t *testing.T) {
	for want, v := range map[string]Verdict{
		"doctor saw it on 2026-03-01 on node n1":                                                  good,
		"doctor saw it on 2026-03-01: a pod that is cut off was reached, and reached others":      {Node: "n1\x1b[31m"},
		"doctor saw it on 2026-03-01: a pod that is cut off reached others":                       {Ingress: true},
		"doctor saw it on 2026-03-01: a pod that is cut off was reached":                          {Egress: true},
		"doctor saw it on 2026-03-01 on node n2: a pod that is cut off could reach others for 9s": {Ingress: true, Egress: true, Gap: 9 * time.Second, Node: "n2"},
	} {
		if v.At = noon; v.String() != want {
			t.Errorf("%q, want %q", v, want)
		}
	}
}

// What is kept stays small, and the newest.
func TestManyVerdicts(t *testing.T) {
	p := judged(t)
	for i := range 2 * maxVerdicts {
		v := good
		v.RuntimeClass, v.At = strings.Repeat("c", i+1), noon.Add(time.Duration(i)*time.Minute)
		v.Policy, v.Generation = p.UID, p.Generation
		if err := put(p, v); err != nil {
			t.Fatal(err)
		}
	}
	if all := verdicts(p); len(all) != maxVerdicts || len(all[0].RuntimeClass) != 2*maxVerdicts {
		t.Errorf("%d, %+v, want len(all) = %d, len(all[0].RuntimeClass) = %v", len(all), all, maxVerdicts, 2*maxVerdicts)
	}
	long := good
	long.RuntimeClass, long.At, long.Policy, long.Generation = strings.Repeat("c", maxAnnotation-500), noon.Add(time.Hour), p.UID, p.Generation
	if err := put(p, long); err != nil {
		t.Fatal(err)
	}
	if all := verdicts(p); len(all) != 1 || all[0].RuntimeClass != long.RuntimeClass {
		t.Errorf("%d, want len(all) = 1, RuntimeClass = %v", len(all), long.RuntimeClass)
	}
}
