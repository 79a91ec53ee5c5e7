package diagnose

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"

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
	checks := map[string]func(system.Info) Finding{
		"platform": platform, "cgroup": cgroup, "limits": limits, "storage": storage, "rootless": rootless,
		"seccomp": seccomp, "confinement": confinement, "runtimes": runtimes,
	}
	for _, c := range []struct {
		check, name string
		edit        func(*system.Info)
		level       Level
		words       string
	}{
		{"platform", "good", nil, OK, "Debian"},
		{"platform", "windows", func(i *system.Info) { i.OSType = "windows" }, Failure, "windows containers"},
		{"cgroup", "good", nil, OK, "v2, driver systemd"},
		{"cgroup", "v1 of root", func(i *system.Info) { i.CgroupVersion, i.CgroupDriver = "1", "cgroupfs" }, OK, "v1, driver cgroupfs"},
		{"cgroup", "old engine", func(i *system.Info) { i.CgroupVersion = "" }, OK, "v1"},
		{"cgroup", "no driver", func(i *system.Info) { i.CgroupDriver = "none" }, Warning, "no limit"},
		{"cgroup", "v1 rootless", func(i *system.Info) {
			i.CgroupVersion, i.SecurityOptions = "1", []string{"name=rootless"}
		}, Warning, "without root cannot use"},
		{"limits", "good", nil, OK, "memory, swap, CPU, processes"},
		{"limits", "some missing", func(i *system.Info) { i.PidsLimit, i.MemoryLimit = false, false }, Warning, "cannot limit: memory, processes"},
		{"limits", "no swap", func(i *system.Info) { i.SwapLimit = false }, Warning, "swap is not limited"},
		{"storage", "good", nil, OK, "overlay2"},
		{"storage", "vfs", func(i *system.Info) { i.Driver = "vfs" }, Warning, "copies the whole image"},
		{"rootless", "no", nil, OK, "no: the engine runs as root"},
		{"rootless", "yes", func(i *system.Info) { i.SecurityOptions = []string{"name=rootless"} }, OK, "yes"},
		{"rootless", "remapped", func(i *system.Info) { i.SecurityOptions = []string{"name=userns"} }, OK, "userns-remap"},
		{"seccomp", "good", nil, OK, "profile builtin"},
		{"seccomp", "old form", func(i *system.Info) { i.SecurityOptions = []string{"seccomp"} }, OK, "profile default"},
		{"seccomp", "none", func(i *system.Info) { i.SecurityOptions = nil }, Warning, "filters no system calls"},
		{"seccomp", "unconfined", func(i *system.Info) { i.SecurityOptions = []string{"name=seccomp,profile=unconfined"} }, Warning, "unconfined"},
		{"confinement", "good", nil, OK, "AppArmor"},
		{"confinement", "selinux", func(i *system.Info) { i.SecurityOptions = []string{"name=selinux"} }, OK, "SELinux"},
		{"confinement", "none", func(i *system.Info) { i.SecurityOptions = []string{"name=apparmorish"} }, Warning, "neither"},
		{"runtimes", "good", nil, OK, "crun, runc (default runc)"},
	} {
		t.Run(c.check+"/"+c.name, func(t *testing.T) {
			i := good()
			if c.edit != nil {
				c.edit(&i)
			}
			f := checks[c.check](i)
			if f.Check != c.check || f.Level != c.level || !strings.Contains(f.Detail, c.words) || (f.Fix == "") != (f.Level == OK) {
				t.Errorf("%+v, want %s with %q", f, c.level, c.words)
			}
		})
	}
}

func TestAPIVersion(t *testing.T) {
	for _, c := range []struct {
		offered, used string
		level         Level
	}{{"1.41", "1.41", OK}, {"1.56", "1.56", OK}, {"", "1.56", OK}, {"1.40", "1.40", Failure}, {"1.56", "1.40", Failure}, {"1.9", "1.9", Failure}} {
		if f := apiVersion(c.offered, c.used); f.Level != c.level || (f.Fix == "") != (f.Level == OK) {
			t.Errorf("offered %q, used %q: %+v", c.offered, c.used, f)
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
			if all := Connection(t.Context(), e); len(all) != 1 || all[0].Level != OK || all[0].Check != "connection" {
				t.Errorf("connection: %+v", all)
			}
			c, err := e.NewClient()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			all := Engine(t.Context(), c, nil)
			if len(all) != 1 || all[0].Check != "answer" || all[0].Level != Failure || all[0].Detail == "" || all[0].Fix == "" {
				t.Errorf("%+v", all)
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
	all := Engine(late, c, nil)
	if len(all) != 1 || all[0].Level != Failure || !strings.Contains(all[0].Detail, "no answer") || all[0].Fix == "" {
		t.Errorf("%+v", all)
	}
}
