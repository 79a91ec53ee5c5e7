package cli

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

const confined = `Seccomp: 2
NoNewPrivs: 1
CapInh: 0000000000000000
CapPrm: 0000000000000000
CapEff: 0000000000000000
CapBnd: 0000000000000000
CapAmb: 0000000000000000
core: 0
interface: lo
ns-user: user:[1]
ns-mnt: mnt:[1]
ns-pid: pid:[1]
ns-net: net:[1]
ns-ipc: ipc:[1]
ns-time: time:[1]
`

func TestCompareFindsWhatDoesNotHold(t *testing.T) {
	var all backend.Capabilities
	for _, c := range checks {
		all.Controls = append(all.Controls, backend.Control{Name: c.control, Enforced: true, By: "test"})
	}
	if err := compare(all, parseProbe(confined)); err != nil {
		t.Errorf("a confined program: %v", err)
	}
	for _, c := range []struct{ old, new, control string }{
		{"Seccomp: 2", "Seccomp: 0", "seccomp"},
		{"Seccomp: 2\n", "", "seccomp"},
		{"NoNewPrivs: 1", "NoNewPrivs: 0", "no-new-privs"},
		{"CapBnd: 0000000000000000", "CapBnd: 00000000a80425fb", "capabilities"},
		{"CapEff: 0000000000000000\n", "", "capabilities"},
		{"core: 0", "core: unlimited", "core-dumps"},
		{"interface: lo", "interface: lo\ninterface: eth0", "network"},
		{"core: 0", "core: 0\nwritable: /usr", "filesystem"},
		{"core: 0", "core: 0\npath: /home/alice/.cache", "host-paths"},
	} {
		err := compare(all, parseProbe(strings.Replace(confined, c.old, c.new, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), c.control+" is declared") {
			t.Errorf("%q instead of %q: %v, want an error beginning with %q", c.new, c.old, err, c.control+" is declared")
		}
	}
	policy := backend.Capabilities{Controls: []backend.Control{{Name: "network", Enforced: true, By: "NetworkPolicy"}}}
	if err := compare(policy, parseProbe("interface: lo\ninterface: eth0\n")); err != nil {
		t.Errorf("a pod's network: %v", err)
	}
	all.Controls = append(all.Controls, backend.Control{Name: "proc", Why: "test"})
	for seen, control := range map[string]string{"core: 0": "", "core: 0\nwritable: /usr": "filesystem", "core: unlimited": "core-dumps"} {
		if err := compare(all, parseProbe(seen)); (err == nil) != (control == "") || err != nil && !strings.HasPrefix(err.Error(), control+" is declared") {
			t.Errorf("%q without a /proc: %v, want an error about %q, if any", seen, err, control)
		}
	}
	if err := compare(backend.Capabilities{}, observed{}); err != nil {
		t.Errorf("what nobody declared: %v", err)
	}
}
