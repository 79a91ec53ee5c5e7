package llmsandbox

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLimitsResolve(t *testing.T) {
	def := DefaultLimits()
	got, kernel, err := Limits{}.resolve()
	if err != nil || got != def {
		t.Fatalf("zero limits: %+v, %v, want the defaults", got, err)
	}
	if len(kernel.Required) != 0 || kernel.Memory != def.Memory || kernel.CPUs != def.CPUs {
		t.Errorf("kernel limits %+v: defaults are not required, want no Required, Memory = %v, CPUs = %v", kernel, def.Memory, def.CPUs)
	}

	got, kernel, err = Limits{Memory: 64 << 20, CPUs: 0.5, PIDs: 7, Disk: 5 << 20, Timeout: time.Second, Output: 9}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(kernel.Required)
	if !slices.Equal(kernel.Required, []string{"cpus", "disk", "memory", "pids"}) {
		t.Errorf("required %q: what was asked for must hold, output is the agent's, want [\"cpus\" \"disk\" \"memory\" \"pids\"]", kernel.Required)
	}
	if got.Timeout != time.Second || got.Output != 9 {
		t.Errorf("%+v, want Timeout = 1s, Output = 9", got)
	}

	got, kernel, err = Limits{Memory: Unlimited, CPUs: Unlimited, PIDs: Unlimited, Disk: Unlimited, Timeout: Unlimited, Output: Unlimited}.resolve()
	if err != nil || got != (Limits{}) || len(kernel.Required) != 0 {
		t.Errorf("unlimited: %+v, %+v, %v, want zeros", got, kernel, err)
	}
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	for name, l := range map[string]Limits{
		"memory negative": {Memory: -5}, "memory tiny": {Memory: 1024}, "cpus negative": {CPUs: -2},
		"cpus NaN": {CPUs: math.NaN()}, "cpus huge": {CPUs: 1e9}, "cpus infinite": {CPUs: math.Inf(1)},
		"pids negative": {PIDs: -3}, "pids huge": {PIDs: 1 << 40}, "disk tiny": {Disk: 1}, "timeout negative": {Timeout: -time.Second},
		"timeout tiny": {Timeout: time.Nanosecond}, "output negative": {Output: -7},
	} {
		_, _, err := l.resolve()
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Limits.") || !strings.HasSuffix(err.Error(), ", or Unlimited") {
			t.Errorf("%s: %v, want ErrInvalid with the field and what it takes", name, err)
		}
	}
}

func TestEnvList(t *testing.T) {
	got, err := envList([]string{"PATH=/bin", "HOME=/x"}, map[string]string{"HOME": "/y"})
	if err != nil || !slices.Equal(got, []string{"PATH=/bin", "HOME=/y"}) {
		t.Errorf("%q, %v, want no error, got [\"PATH=/bin\" \"HOME=/y\"]", got, err)
	}
	for _, bad := range []map[string]string{{"": "x"}, {"A=B": "x"}, {"A\x00": "x"}, {"A": "\x00"}} {
		if _, err := envList(nil, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("envList(%q): %v, want ErrInvalid", bad, err)
		}
	}
}

func TestIDs(t *testing.T) {
	for _, id := range []string{newID(), "a", "my-box", "0123456789012345678901234567890123456789"} {
		if !validID(id) {
			t.Errorf("%q is refused, want validID(id) = true", id)
		}
	}
	for _, id := range []string{"", "-a", "a-", "A", "a/b", "..", "a b", "01234567890123456789012345678901234567890"} {
		if validID(id) {
			t.Errorf("%q is accepted, want validID(id) = false", id)
		}
	}
}

func TestProjectPaths(t *testing.T) {
	for _, p := range []string{"a.py", "dir/a.py", "a..b.txt", ".env", "./a.py", "x/../a.py"} {
		if err := checkProjectPath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{"", ".", "..", "../a", "/a", "x/../../a", "a\x00b"} {
		if err := checkProjectPath(p); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", p, err)
		}
	}
}
