package podspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A loosening is a control that no longer holds, or not fully, since the pod asks for
// something. "isolation" is one that none of the others holds without.
type loosening struct {
	control string
	what    string // what was asked for and what it means, as clauses
}

type loosenings []loosening

func (l *loosenings) add(control, format string, args ...any) {
	*l = append(*l, loosening{control: control, what: fmt.Sprintf(format, args...)})
}

// loosened returns what the pod asks for beyond the safe default.
func (v view) loosened() loosenings {
	var l loosenings
	v.loosenedNamespaces(&l)
	v.loosenedSecurity(&l)
	v.loosenedFiles(&l)
	return l.merged()
}

// merged has each control once, sorted.
func (l loosenings) merged() loosenings {
	slices.SortStableFunc(l, func(a, b loosening) int { return strings.Compare(a.control, b.control) })
	var out loosenings
	for _, x := range l {
		if n := len(out); n > 0 && out[n-1].control == x.control {
			out[n-1].what += "; " + x.what
			continue
		}
		out = append(out, x)
	}
	return out
}

// loosen takes back what the pod has loosened. What it loosens beside the controls of
// every sandbox is added.
func loosen(all []backend.Control, by loosenings) []backend.Control {
	const fix = "leave that out of the pod template"
	for _, l := range by {
		why, found := "the pod loosens it: "+l.what, false
		for i := range all {
			// Without isolation nothing of it holds.
			if all[i].Name != l.control && l.control != "isolation" {
				continue
			}
			if all[i].Enforced {
				all[i] = backend.Control{Name: all[i].Name, Why: why, Fix: fix}
			} else {
				all[i].Why += "; " + why
			}
			found = found || all[i].Name == l.control
		}
		if !found {
			all = append(all, backend.Control{Name: l.control, Why: why, Fix: fix})
		}
	}
	return all
}
