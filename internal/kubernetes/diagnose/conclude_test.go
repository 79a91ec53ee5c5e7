package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestConclude(t *testing.T) {
	must := step{kind: "must", address: "10.0.0.1", reached: true}
	lost := step{kind: "must", address: "10.0.0.1"}
	shut := step{kind: "cut", address: "10.0.0.2"}
	open := step{kind: "cut", address: "10.0.0.2", reached: true, took: time.Second}
	late := step{kind: "cut", address: "10.0.0.2", took: 200 * time.Millisecond}
	slow := step{kind: "cut", address: "10.0.0.2", took: 2 * maxGap}
	open6 := step{kind: "cut", address: "fd00::2", reached: true}
	for _, c := range []struct {
		name                     string
		open, closed             []step
		verdict, ingress, egress Verdict
		words                    string
		ok                       bool
	}{
		{"enforced", []step{must, shut, must}, []step{shut}, Enforced, Enforced, Enforced, "are enforced", true},
		{"after a moment", []step{must, shut, must}, []step{late}, Enforced, Enforced, Enforced, "200ms", true},
		{"too late", []step{must, shut, must}, []step{slow}, Enforced, Enforced, Enforced, "10s", false},
		{"not at all", []step{must, open, must}, []step{open}, NotEnforced, NotEnforced, NotEnforced, "are not enforced", false},
		{"inwards only", []step{must, shut, must}, []step{open}, NotEnforced, Enforced, NotEnforced, "inwards only", false},
		{"outwards only", []step{must, open, must}, []step{shut}, NotEnforced, NotEnforced, Enforced, "outwards only", false},
		{"one family is open", []step{must, must, shut, open6, must, must}, []step{shut, open6}, NotEnforced, NotEnforced, NotEnforced, "not enforced", false},
		{"no network before", []step{lost, shut, must}, []step{shut}, Unknown, Unknown, Unknown, "cannot be told", false},
		{"no network after", []step{must, shut, lost}, []step{shut}, Unknown, Unknown, Unknown, "cannot be told", false},
		{"nothing asked", []step{must}, nil, Unknown, Unknown, Unknown, "no addresses", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := conclude(c.open, c.closed)
			if r.Verdict != c.verdict || r.Ingress != c.ingress || r.Egress != c.egress || !strings.Contains(r.Detail, c.words) {
				t.Errorf("%+v, want Verdict = %v, Ingress = %v, Egress = %v, Detail containing %q", r, c.verdict, c.ingress, c.egress, c.words)
			}
			level := backend.LevelWarning
			if c.ok {
				level = backend.LevelOK
			}
			if f := r.findings()[0]; f.Level != level || (f.Fix == "") != c.ok {
				t.Errorf("%+v, want %s", f, level)
			}
		})
	}
}

func TestParse(t *testing.T) {
	asked := []string{"must=10.0.0.1", "cut=fd00::1"}
	const said = "must 10.0.0.1 reached 3\ncut fd00::1 blocked 250\n"
	steps, err := parse(said, asked)
	if err != nil || len(steps) != 2 || !steps[0].reached || steps[1].reached || steps[1].took != 250*time.Millisecond || steps[1].kind != "cut" || steps[1].address != "fd00::1" {
		t.Fatalf("%+v, %v, want no error, len(steps) = 2, reached true, reached false, took = 250ms, kind = \"cut\", address = \"fd00::1\"", steps, err)
	}
	for name, said := range map[string]string{
		"nothing":         "",
		"an answer less":  "must 10.0.0.1 reached 3",
		"an answer more":  said + "cut fd00::1 blocked 1",
		"another order":   "cut fd00::1 blocked 250\nmust 10.0.0.1 reached 3",
		"another address": "must 10.0.0.9 reached 3\ncut fd00::1 blocked 250",
		"another outcome": "must 10.0.0.1 perhaps 3\ncut fd00::1 blocked 250",
		"no time":         "must 10.0.0.1 reached x\ncut fd00::1 blocked 250",
		"negative time":   "must 10.0.0.1 reached -3\ncut fd00::1 blocked 250",
		"huge time":       "must 10.0.0.1 reached 99999999999999999999\ncut fd00::1 blocked 250",
	} {
		if steps, err := parse(said, asked); err == nil {
			t.Errorf("%s is taken for %+v, want an error", name, steps)
		}
	}
}

// FuzzParse: what is taken for an answer is one to what was asked, whatever a pod says.
func FuzzParse(f *testing.F) {
	for _, said := range []string{"", "must 1.2.3.4 reached 1\ncut ::1 blocked 0\n", "must 1.2.3.4 blocked 1\ncut ::1 reached 2147483647", "cut ::1 blocked 0\nmust 1.2.3.4 reached 1", "\x00 \n \xff"} {
		f.Add(said)
	}
	asked := []string{"must=1.2.3.4", "cut=::1"}
	f.Fuzz(func(t *testing.T, said string) {
		steps, err := parse(said, asked)
		if err != nil {
			return
		}
		for i, s := range steps {
			if s.kind+"="+s.address != asked[i] || s.took < 0 {
				t.Errorf("%q: %+v, want s.kind+\"=\"+s.address = asked[i], took >= 0", said, s)
			}
		}
		if len(steps) != len(asked) || !strings.Contains(said, "must 1.2.3.4 ") {
			t.Errorf("%q: %+v, want len(steps) = %v, said containing \"must 1.2.3.4 \"", said, steps, len(asked))
		}
	})
}
