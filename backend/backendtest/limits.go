package backendtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// limitAskedForHoldsOrOpenFails: what the caller asked for is enforced, or Open
// says that it cannot be and what to do; best effort opens nevertheless and says so.
func (s *suite) limitAskedForHoldsOrOpenFails(t *testing.T) {
	ctx := testContext(t)
	for name, limits := range map[string]llmsandbox.Limits{
		"memory": {Memory: 128 << 20}, "cpus": {CPUs: 0.5}, "pids": {PIDs: 20}, "disk": {Disk: 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			held, known := s.open(t, llmsandbox.Options{Limits: limits}).Capabilities().Get(name)
			if !known {
				t.Fatalf("Capabilities does not have %s, want it declared", name)
			}
			sb, err := llmsandbox.Open(ctx, new(s.options(llmsandbox.Options{Limits: limits})))
			if err == nil {
				defer sb.Close()
			}
			switch {
			case held.Enforced && err != nil:
				t.Errorf("%s is enforced, and Open fails: %v, want Enforced false or no error", name, err)
			case !held.Enforced && !errors.Is(err, llmsandbox.ErrNotEnforced):
				t.Errorf("%s is not enforced (%s), and Open says %v, want ErrNotEnforced", name, held.Why, err)
			case !held.Enforced && (!strings.Contains(err.Error(), name) || held.Why == "" || held.Fix == ""):
				t.Errorf("error %q, control %+v: want the limit, why and how to fix it", err, held)
			}
		})
	}
}

func (s *suite) resultCarriesCapabilities(t *testing.T) {
	sb := s.shared(t)
	res := run(t, sb, "print(1)", nil)
	for _, name := range []string{"memory", "cpus", "pids", "disk", "network", "seccomp"} {
		c, ok := res.Capabilities.Get(name)
		if !ok || c.Enforced && c.By == "" || !c.Enforced && c.Why == "" {
			t.Errorf("%s: %+v, %v: want what enforces it, or why nothing does", name, c, ok)
		}
	}
}
