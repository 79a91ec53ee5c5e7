package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
)

func TestNetworkFlag(t *testing.T) {
	for _, c := range []struct {
		values string // separated by blanks
		mode   llmsandbox.NetworkMode
		allow  []string
		wrong  string // in the error
	}{
		{values: ""},
		{values: "none", mode: "none"}, // not what a template says
		{values: "full", mode: "full"},
		{values: "allow=a.test", mode: "allow", allow: []string{"a.test"}},
		{values: "allow=a.test,*.b.test:443 allow=10.0.0.0/8", mode: "allow", allow: []string{"a.test", "*.b.test:443", "10.0.0.0/8"}},
		{values: "full allow=10.0.0.1:80", mode: "full", allow: []string{"10.0.0.1:80"}},
		{values: "os-packages", mode: "allow", allow: []string{"os-packages"}},
		{values: "os-packages allow=a.test", mode: "allow", allow: []string{"os-packages", "a.test"}},
		{values: "full os-packages", mode: "full", allow: []string{"os-packages"}},
		{values: "none os-packages", wrong: "together"},
		{values: "os-packages=x", wrong: "use none, full"},
		{values: "allow", wrong: "allow=RULE"},
		{values: "allow=", wrong: "at least one"},
		{values: "allow=,", wrong: "at least one"},
		{values: "open", wrong: "use none, full"},
		{values: "full=x", wrong: "use none, full"},
		{values: "none full", wrong: "together"},
	} {
		t.Run(c.values, func(t *testing.T) {
			n, err := networkFlag(strings.Fields(c.values))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%v, want %q", err, c.wrong)
				}
				return
			}
			if err != nil || n.Mode != c.mode {
				t.Errorf("mode %q, %v, want no error, Mode = %q", n.Mode, err, c.mode)
			}
			if diff := cmp.Diff(c.allow, n.Allow); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrintRefused(t *testing.T) {
	var attempts []llmsandbox.NetworkAttempt
	for i := range 30 {
		attempts = append(attempts,
			llmsandbox.NetworkAttempt{Name: "a.test", Port: uint16(i/2 + 1), Reason: "why"},
			llmsandbox.NetworkAttempt{Name: "fine.test", Port: 80, Allowed: true})
	}
	attempts = append([]llmsandbox.NetworkAttempt{{Name: "\x1b[2Jx", Reason: "bad\nname"}}, attempts...)
	var b strings.Builder
	printRefused(&b, attempts)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != maxRefusedLines+1 || lines[0] != "llmsandbox: network: refused x: bad name" || !strings.Contains(lines[1], "refused a.test:1: why") || !strings.Contains(lines[maxRefusedLines], "6 more") {
		t.Errorf("%q, want len(lines) = %v, lines[0] = \"llmsandbox: network: refused x: bad name\", lines[1] containing \"refused a.test:1: why\", lines[maxRefusedLines] containing \"6 more\"", lines, maxRefusedLines+1)
	}
	if strings.ContainsAny(b.String(), "\x1b") || strings.Contains(b.String(), "fine") {
		t.Errorf("%q, want strings.ContainsAny(b.String(), \"\\x1b\") = false, b without \"fine\"", b.String())
	}
}
