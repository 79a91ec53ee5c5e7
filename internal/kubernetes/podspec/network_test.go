package podspec

import (
	"strings"
	"testing"
)

// shown is what is known of a cluster that enforces policies.
var shown = Policies{Enforced: true}

// The control says what is known, and by what.
func TestNetworkControl(t *testing.T) {
	r := plain()
	for _, c := range []struct {
		known    Policies
		enforced bool
		says     string
	}{
		{shown, true, "nothing in and nothing out"},
		{Policies{Enforced: true, Seen: "doctor saw it"}, true, "doctor saw it"},
		{Policies{}, false, "is not known"},
		{Policies{Seen: "doctor saw it: it leaks"}, false, "does not enforce policies, doctor saw it: it leaks"},
	} {
		k, _ := Controls(build(t, r), r.Spec.Limits, c.known).Get("network")
		if k.Enforced != c.enforced || !strings.Contains(k.Detail+k.Why, c.says) || !c.enforced && !strings.Contains(k.Fix, "doctor") {
			t.Errorf("%+v: %+v, want Enforced = %v, Why containing %q, enforced true or Fix containing \"doctor\"", c.known, k, c.enforced, c.says)
		}
	}
}
