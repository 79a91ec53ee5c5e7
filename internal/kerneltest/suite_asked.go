//go:build unix

package kerneltest

import (
	"slices"
	"strings"
	"testing"
)

func asked(t *testing.T, k *Kernel, c Cells) {
	k.MustRun(c.Define)
	if e := k.Ask("complete", "é;"+c.Complete, len([]rune(c.Complete))+2); !slices.Contains(e.Matches, c.Completes) || e.Start != 2 || e.End != 2+len(c.Complete) {
		t.Errorf("complete: %+v, want Matches containing %v, Start = 2, End = %d", e, c.Completes, 2+len(c.Complete))
	}
	if c.Member != "" {
		if e := k.Ask("complete", c.Member, len(c.Member)); !slices.Contains(e.Matches, c.MemberIs) {
			t.Errorf("complete: %+v, want Matches containing %v", e, c.MemberIs)
		}
	}
	if e := k.Ask("inspect", c.Inspect, len(c.Inspect)); !strings.Contains(e.Text, c.Inspects) {
		t.Errorf("inspect: %+v, want Text containing %q", e, c.Inspects)
	}
	if e := k.Ask("inspect", "nothing_of_this_name", 3); e.Text != "" {
		t.Errorf("inspect: %+v, want Text empty", e)
	}
	found := func() bool {
		for _, v := range k.Ask("variables", "", 0).Variables {
			if v.Name == c.Variable[0] {
				if v.Type != c.Variable[1] || v.Value == "" {
					t.Errorf("variables: %+v, want v.Type = c.Variable[1], Value not empty", v)
				}
				return true
			}
		}
		return false
	}
	if !found() {
		t.Errorf("variables: no %s in %+v, want found() = true", c.Variable[0], k.Ask("variables", "", 0))
	}
	if e := k.Ask("reset", "", 0); string(e.Error) != "" {
		t.Errorf("reset: %s, want Error empty", e.Error)
	}
	if found() {
		t.Error("a variable outlives a reset: found() = true, want false")
	}
	k.MustRun(c.Define)
	if !found() {
		t.Error("no variable after a reset: found() = false, want true")
	}
}
