package diagnose

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// good is an engine without a fault.
func good() system.Info {
	return system.Info{
		OSType: "linux", OperatingSystem: "Debian", Architecture: "x86_64", KernelVersion: "6.1", ServerVersion: "28.0",
		CgroupVersion: "2", CgroupDriver: "systemd", Driver: "overlay2", DefaultRuntime: "runc",
		MemoryLimit: true, SwapLimit: true, CPUCfsQuota: true, PidsLimit: true,
		SecurityOptions: []string{"name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"},
		Runtimes:        map[string]system.RuntimeWithStatus{"runc": {}, "crun": {}},
	}
}

func TestInfo(t *testing.T) {
	checks := map[string]func(system.Info) backend.Finding{
		"platform": platform, "cgroup": cgroup, "limits": limits, "storage": storage, "rootless": rootless,
		"seccomp": seccomp, "confinement": confinement, "runtimes": runtimes,
	}
	for _, c := range []struct {
		check, name string
		edit        func(*system.Info)
		level       backend.Level
		words       string
	}{
		{"platform", "good", nil, backend.LevelOK, "Debian"},
		{"platform", "windows", func(i *system.Info) { i.OSType = "windows" }, backend.LevelFailure, "windows containers"},
		{"cgroup", "good", nil, backend.LevelOK, "v2, driver systemd"},
		{"cgroup", "v1 of root", func(i *system.Info) { i.CgroupVersion, i.CgroupDriver = "1", "cgroupfs" }, backend.LevelOK, "v1, driver cgroupfs"},
		{"cgroup", "old engine", func(i *system.Info) { i.CgroupVersion = "" }, backend.LevelOK, "v1"},
		{"cgroup", "no driver", func(i *system.Info) { i.CgroupDriver = "none" }, backend.LevelWarning, "no limit"},
		{"cgroup", "v1 rootless", func(i *system.Info) {
			i.CgroupVersion, i.SecurityOptions = "1", []string{"name=rootless"}
		}, backend.LevelWarning, "without root cannot use"},
		{"limits", "good", nil, backend.LevelOK, "memory, swap, CPU, processes"},
		{"limits", "some missing", func(i *system.Info) { i.PidsLimit, i.MemoryLimit = false, false }, backend.LevelWarning, "cannot limit: memory, processes"},
		{"limits", "no swap", func(i *system.Info) { i.SwapLimit = false }, backend.LevelWarning, "swap is not limited"},
		{"storage", "good", nil, backend.LevelOK, "overlay2"},
		{"storage", "vfs", func(i *system.Info) { i.Driver = "vfs" }, backend.LevelWarning, "copies the whole image"},
		{"rootless", "no", nil, backend.LevelOK, "no: the engine runs as root"},
		{"rootless", "yes", func(i *system.Info) { i.SecurityOptions = []string{"name=rootless"} }, backend.LevelOK, "yes"},
		{"rootless", "remapped", func(i *system.Info) { i.SecurityOptions = []string{"name=userns"} }, backend.LevelOK, "userns-remap"},
		{"seccomp", "good", nil, backend.LevelOK, "profile builtin"},
		{"seccomp", "old form", func(i *system.Info) { i.SecurityOptions = []string{"seccomp"} }, backend.LevelOK, "profile default"},
		{"seccomp", "none", func(i *system.Info) { i.SecurityOptions = nil }, backend.LevelWarning, "filters no system calls"},
		{"seccomp", "unconfined", func(i *system.Info) { i.SecurityOptions = []string{"name=seccomp,profile=unconfined"} }, backend.LevelWarning, "unconfined"},
		{"confinement", "good", nil, backend.LevelOK, "AppArmor"},
		{"confinement", "selinux", func(i *system.Info) { i.SecurityOptions = []string{"name=selinux"} }, backend.LevelOK, "SELinux"},
		{"confinement", "none", func(i *system.Info) { i.SecurityOptions = []string{"name=apparmorish"} }, backend.LevelWarning, "neither"},
		{"runtimes", "good", nil, backend.LevelOK, "crun, runc (default runc)"},
	} {
		t.Run(c.check+"/"+c.name, func(t *testing.T) {
			i := good()
			if c.edit != nil {
				c.edit(&i)
			}
			f := checks[c.check](i)
			if f.Check != c.check || f.Level != c.level || !strings.Contains(f.Detail, c.words) || (f.Fix == "") != (f.Level == backend.LevelOK) {
				t.Errorf("%+v, want %s with %q", f, c.level, c.words)
			}
		})
	}
}

func TestAPIVersion(t *testing.T) {
	for _, c := range []struct {
		offered, used string
		level         backend.Level
	}{{"1.41", "1.41", backend.LevelOK}, {"1.56", "1.56", backend.LevelOK}, {"", "1.56", backend.LevelOK}, {"1.40", "1.40", backend.LevelFailure}, {"1.56", "1.40", backend.LevelFailure}, {"1.9", "1.9", backend.LevelFailure}} {
		if f := apiVersion(c.offered, c.used); f.Level != c.level || (f.Fix == "") != (f.Level == backend.LevelOK) {
			t.Errorf("offered %q, used %q: %+v, want Level = %v, f.Fix == \"\" = %v", c.offered, c.used, f, c.level, f.Level == backend.LevelOK)
		}
	}
}

// TestEngineThatAnswersOddly: what the daemon's end says goes into the finding, and
// nothing after it is looked at.
func TestEngineThatAnswersOddly(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "authorization denied by plugin", http.StatusForbidden)
		},
		"no JSON": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				_, _ = w.Write([]byte("<html>"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			e := dial.Endpoint{Host: "tcp://" + s.Listener.Addr().String()}
			if all := connection(t.Context(), e); len(all) != 1 || all[0].Level != backend.LevelOK || all[0].Check != "connection" {
				t.Errorf("connection: %+v, want len(all) = 1, Level = LevelOK, Check = \"connection\"", all)
			}
			c, err := e.NewClient()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			all := engine(t.Context(), c, nil)
			if len(all) != 1 || all[0].Check != "answer" || all[0].Level != backend.LevelFailure || all[0].Detail == "" || all[0].Fix == "" {
				t.Errorf("%+v, want len(all) = 1, Check = \"answer\", Level = LevelFailure, Detail not empty, Fix not empty", all)
			}
		})
	}
}

func TestEngineThatDoesNotAnswerInTime(t *testing.T) {
	e := dial.Endpoint{Host: "tcp://127.0.0.1:1"}
	c, err := e.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	all := engine(late, c, nil)
	if len(all) != 1 || all[0].Level != backend.LevelFailure || !strings.Contains(all[0].Detail, "no answer") || all[0].Fix == "" {
		t.Errorf("%+v, want len(all) = 1, Level = LevelFailure, Detail containing \"no answer\", Fix not empty", all)
	}
}
