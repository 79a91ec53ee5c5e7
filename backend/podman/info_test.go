package podman

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// What Podman 4.3 says of itself, shortened.
const infoRootless = `{"host":{"arch":"amd64","cgroupManager":%M,"cgroupVersion":%V,"cgroupControllers":%C,"cpus":2,
"distribution":{"distribution":"debian","version":"12"},"kernel":"6.1.0","memTotal":1000,"ociRuntime":{"name":"crun","path":"/usr/bin/crun"},"os":"linux",
"security":{"apparmorEnabled":false,"rootless":%R,"seccompEnabled":true,"selinuxEnabled":true},"swapTotal":%S},
"store":{"graphDriverName":"overlay","graphRoot":"/data"},"version":{"Version":"4.3.1"}}`

func TestInfo(t *testing.T) {
	all := `["cpu","memory","pids"]`
	for _, c := range []struct {
		name, version, manager, controllers, rootless, swap string
		memory, cpu, pids, counted                          bool
		fix                                                 string // of the first limit that does not hold
	}{
		{name: "root, v1", version: "v1", manager: "cgroupfs", controllers: all, rootless: "false", swap: "0", memory: true, cpu: true, pids: true, counted: true},
		{name: "root, v1 with swap", version: "v1", manager: "systemd", controllers: all, rootless: "false", swap: "1", memory: true, cpu: true, pids: true},
		{name: "root, v2 with swap", version: "v2", manager: "systemd", controllers: all, rootless: "false", swap: "1", memory: true, cpu: true, pids: true, counted: true},
		{name: "rootless, v1", version: "v1", manager: "cgroupfs", controllers: "[]", rootless: "true", swap: "0", fix: "cgroup v2"},
		{name: "rootless, v1, controllers claimed", version: "v1", manager: "cgroupfs", controllers: all, rootless: "true", swap: "0", fix: "cgroup v2"},
		{name: "rootless, v2", version: "v2", manager: "systemd", controllers: all, rootless: "true", swap: "0", memory: true, cpu: true, pids: true, counted: true},
		{name: "rootless, v2, some", version: "v2", manager: "systemd", controllers: `["memory","pids"]`, rootless: "true", swap: "0", memory: true, pids: true, counted: true, fix: "Delegate="},
		{name: "rootless, v2, no systemd", version: "v2", manager: "cgroupfs", controllers: all, rootless: "true", swap: "0", fix: "enable-linger"},
		{name: "root, a controller missing", version: "v1", manager: "cgroupfs", controllers: `["cpu"]`, rootless: "false", swap: "0", cpu: true, fix: "enable the controller"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer("%M", `"`+c.manager+`"`, "%V", `"`+c.version+`"`, "%C", c.controllers, "%R", c.rootless, "%S", c.swap).Replace(infoRootless)
			var i info
			if err := json.Unmarshal([]byte(text), &i); err != nil {
				t.Fatal(err)
			}
			d := i.docker()
			if d.MemoryLimit != c.memory || d.CPUCfsQuota != c.cpu || d.PidsLimit != c.pids || d.SwapLimit != c.counted {
				t.Errorf("memory %v, cpu %v, pids %v, swap %v, want MemoryLimit = %v, CPUCfsQuota = %v, PidsLimit = %v, SwapLimit = %v", d.MemoryLimit, d.CPUCfsQuota, d.PidsLimit, d.SwapLimit, c.memory, c.cpu, c.pids, c.counted)
			}
			if rootless(d) != (c.rootless == "true") || d.DefaultRuntime != "crun" || d.ServerVersion != "4.3.1" || d.OSType != "linux" {
				t.Errorf("got %+v, want rootless(d) = %v, DefaultRuntime = \"crun\", ServerVersion = \"4.3.1\", OSType = \"linux\"", d, c.rootless == "true")
			}
			missing := ""
			for n, l := range limits(d) {
				holds := []bool{c.memory, c.cpu, c.pids}[n]
				if l.Name != []string{"memory", "cpus", "pids"}[n] || l.Enforced != holds {
					t.Errorf("control %+v, want l.Name = []string{\"memory\", \"cpus\", \"pids\"}[n], Enforced = %v", l, holds)
				}
				if holds && l.By != "cgroup "+c.version {
					t.Errorf("control %+v, want holds = false or By = %q", l, "cgroup "+c.version)
				}
				if !holds && (l.Why == "" || !strings.Contains(l.Fix, c.fix)) {
					t.Errorf("control %+v, want the fix %q", l, c.fix)
				}
				if !holds && missing == "" {
					missing = l.Fix
				}
			}
			if (missing != "") != (c.fix != "") {
				t.Errorf("fix %q, want %q", missing, c.fix)
			}
		})
	}
}

// serve starts an engine that gives one answer.
func serve(t *testing.T, status int, body string) *client.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/v4.0.0/libpod/info" {
			t.Errorf("asked for %s, want \"/base/v4.0.0/libpod/info\"", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(&ClientOptions{Host: "tcp://" + net.JoinHostPort(host, port) + "/base"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAskInfo(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // of the error
	}{
		{"not Podman", 404, "page not found", "is not Podman"},
		{"failed", 500, `{"message":"no"}`, `500 Internal Server Error: "{\"message\":\"no\"}"`},
		{"garbage", 200, "<html>", "is not understood"},
		{"endless", 200, `{"host":{"arch":"` + strings.Repeat("x", maxInfo) + `"}}`, "is not understood"},
		{"good", 200, `{"version":{"Version":"4.3.1"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := askInfo(context.Background(), serve(t, c.status, c.body))
			if c.want == "" {
				if err != nil || i.ServerVersion != "4.3.1" {
					t.Errorf("got %+v, %v, want no error, ServerVersion = \"4.3.1\"", i, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
