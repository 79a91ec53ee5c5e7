package local

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// Beside a cgroup the code's user is limited too, so that the agent's share of the
// cgroup stays the agent's.
func TestProcessLimitBesideGroup(t *testing.T) {
	made := creation{
		identity: identity{separate: true}, spec: backend.Spec{Limits: backend.Limits{PIDs: 100}},
	}
	controls := []backend.Control{{Name: "pids", Enforced: true, By: "cgroup v2"}}
	want := nsinit.Rlimit{Resource: unix.RLIMIT_NPROC, Value: 100}
	if got := made.rlimits(controls); len(got) != 1 || got[0] != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	made.spec.Limits.PIDs = 0
	if got := made.rlimits(controls); len(got) != 0 {
		t.Errorf("limits %+v without a limit of processes, want none", got)
	}
}

// Without a cgroup the number of processes is held by a limit of the code's user, in
// whose count the agent's threads are when they share it.
func TestProcessLimitWithoutGroup(t *testing.T) {
	for _, c := range []struct {
		name     string
		separate bool
		want     uint64
	}{{"own user", true, 100}, {"the caller's user", false, 100 + agentThreads}} {
		t.Run(c.name, func(t *testing.T) {
			if !c.separate && !countsPerNamespace() {
				t.Skip("before Linux 5.14 the limit would count all of the user's processes")
			}
			id := identity{separate: c.separate}
			missing := []backend.Control{{Name: "pids", Why: "no cgroup", Fix: "delegate one"}}
			made := creation{identity: id, spec: backend.Spec{Limits: backend.Limits{PIDs: 100}}}
			controls := substitutes(missing, id)
			got := made.rlimits(controls)
			if len(got) != 1 || got[0] != (nsinit.Rlimit{Resource: unix.RLIMIT_NPROC, Value: c.want}) {
				t.Errorf("limits %+v, want RLIMIT_NPROC of %d", got, c.want)
			}
			if controls[0].Enforced || controls[0].By == "" {
				t.Errorf("declared as %+v, want a substitute that does not count as enforced", controls[0])
			}
		})
	}
}

func TestReleaseAtLeast(t *testing.T) {
	for release, want := range map[string]bool{
		"5.14.0": true, "5.13.19-generic": false, "6.1": true, "4.19.0-25-amd64": false, "5.9": false, "": false, "x": false,
	} {
		if got := releaseAtLeast(release, 5, 14); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}

// What an older Landlock does not restrict is said.
func TestLandlockControl(t *testing.T) {
	for abi, want := range map[int]string{0: "", 4: "ABI 4, which does not restrict device ioctls, signals between runs", 7: "ABI 7"} {
		if got := landlockControl(abi); got.Enforced != (abi > 0) || got.Detail != want || abi == 0 && got.Fix == "" {
			t.Errorf("ABI %d: %+v, want enforced %v, detail %q", abi, got, abi > 0, want)
		}
	}
}
