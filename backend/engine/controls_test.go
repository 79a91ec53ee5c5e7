package engine

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
)

func TestCapabilitiesTellWhatIsLoosened(t *testing.T) {
	limits := []backend.Control{{Name: "memory", Enforced: true}, {Name: "cpus", Enforced: true}, {Name: "pids", Enforced: true}}
	spec := backend.Spec{Limits: backend.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 9, Disk: 1 << 20}}
	for _, c := range []struct {
		key, value string
		lost       []string
	}{
		{"mem_limit", "256m", nil},
		{"network_mode", "host", []string{"network"}},
		{"cap_add", "SYS_ADMIN", []string{"capabilities"}},
		{"read_only", "false", []string{"filesystem"}},
		{"ipc_mode", "host", []string{"ipc"}},
		{"pid_mode", "host", []string{"agent", "processes"}},
		{"init", "true", []string{"agent"}},
		{"user", "root", []string{"user"}},
		{"privileged", "true", []string{"user", "agent", "filesystem", "processes", "network", "ipc", "capabilities", "no-new-privs", "memory", "cpus", "pids"}},
	} {
		var s settings.Settings
		if err := s.Set(c.key, c.value); err != nil {
			t.Errorf("%s=%s: %v", c.key, c.value, err)
			continue
		}
		b := &Backend{flavor: Flavor{Name: "docker"}, options: Options{Settings: s}}
		caps := b.controls(Host{Limits: limits}, hostConfig(spec, ""), spec)
		for _, name := range []string{"user", "agent", "filesystem", "processes", "network", "ipc", "capabilities", "no-new-privs", "memory", "cpus", "pids"} {
			k, ok := caps.Get(name)
			want := !strings.Contains(" "+strings.Join(c.lost, " ")+" ", " "+name+" ")
			if !ok || k.Enforced != want {
				t.Errorf("%s=%s: %s enforced %v, want %v: %s", c.key, c.value, name, k.Enforced, want, k.Why)
			}
		}
	}
}

// Whether the first process is protected is up to the kernel that the runtime brings.
func TestCapabilitiesTellOfTheRuntime(t *testing.T) {
	for _, c := range []struct {
		engine, asked string
		held          bool
	}{
		{"", "", true}, {"runc", "", true}, {"crun", "kata", true},
		{"runsc", "", false}, {"runc", "runsc", false}, {"runc", "gvisor-kvm", false}, {"runsc", "runc", true},
	} {
		b := &Backend{flavor: Flavor{Name: "docker"}}
		h := hostConfig(backend.Spec{}, "")
		h.Runtime = c.asked
		k, ok := b.controls(Host{Runtime: c.engine}, h, backend.Spec{}).Get("agent")
		if !ok || k.Enforced != c.held || k.Enforced != (k.By != "") || !k.Enforced && (k.Why == "" || k.Fix == "") {
			t.Errorf("engine's %q, asked for %q: %+v, want Enforced = %v, and By if it is, Why and Fix if not", c.engine, c.asked, k, c.held)
		}
	}
}
