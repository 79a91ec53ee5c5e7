//go:build linux

package engine

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

const settingsImage = "llmsandbox-test/busybox:settings"

// settingsClient returns a client of an engine that has settingsImage.
func settingsClient(t *testing.T, e *testengine.Engine) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	e.Load(t, testimage.Save(t, settingsImage, testimage.Busybox(t, nil)))
	return c
}

// settingsContainer creates a container with safe defaults and the settings over them.
func settingsContainer(t *testing.T, c *client.Client, s settings.Settings, command ...string) string {
	t.Helper()
	pids := int64(64)
	cfg := &container.Config{Image: settingsImage, Entrypoint: command, User: "1000:1000", Labels: map[string]string{"llmsandbox.id": "settings"}}
	host := &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		Tmpfs:     map[string]string{"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=1048576"},
		Resources: container.Resources{Memory: 64 << 20, MemorySwap: 64 << 20, NanoCPUs: 1e9, PidsLimit: &pids},
	}
	if err := s.Apply(cfg, host); err != nil {
		t.Fatal(err)
	}
	made, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: cfg, HostConfig: host})
	if err != nil {
		t.Fatalf("the engine refuses it: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if _, err := c.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
	})
	return made.ID
}

// What was asked for is what the engine says it has; what was not is as it was.
func TestSettingsInspect(t *testing.T) {
	e := testengine.Docker(t)
	c := settingsClient(t, e)
	dir := t.TempDir()
	for _, k := range []struct {
		key   string
		value any
		look  func(*container.Config, *container.HostConfig) (got, want any)
	}{
		{"mem_limit", "32m", func(_ *container.Config, h *container.HostConfig) (any, any) {
			return []int64{h.Memory, h.MemorySwap}, []int64{32 << 20, 32 << 20}
		}},
		{"mem_reservation", "16m", func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.MemoryReservation, int64(16 << 20)
		}},
		{"memswap_limit", -1, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.MemorySwap, int64(-1) }},
		{"oom_score_adj", 300, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.OomScoreAdj, 300 }},
		{"shm_size", "1m", func(_ *container.Config, h *container.HostConfig) (any, any) { return h.ShmSize, int64(1 << 20) }},
		{"nano_cpus", 5e8, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.NanoCPUs, int64(5e8) }},
		{"cpu_quota", 20000, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return []int64{h.NanoCPUs, h.CPUPeriod, h.CPUQuota}, []int64{0, 100000, 20000}
		}},
		{"cpu_period", 50000, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return []int64{h.NanoCPUs, h.CPUPeriod, h.CPUQuota}, []int64{0, 50000, 50000}
		}},
		{"cpu_shares", 100, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.CPUShares, int64(100) }},
		{"cpuset_cpus", "0", func(_ *container.Config, h *container.HostConfig) (any, any) { return h.CpusetCpus, "0" }},
		{"pids_limit", 10, func(_ *container.Config, h *container.HostConfig) (any, any) { return *h.PidsLimit, int64(10) }},
		{"ulimits", []string{"nofile=10:20"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.Ulimits, []*container.Ulimit{{Name: "nofile", Soft: 10, Hard: 20}}
		}},
		{"user", 1234, func(c *container.Config, _ *container.HostConfig) (any, any) { return c.User, "1234" }},
		{"group_add", []any{7}, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.GroupAdd, []string{"7"} }},
		{"privileged", true, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.Privileged, true }},
		{"read_only", false, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.ReadonlyRootfs, false }},
		{"cap_add", []string{"KILL"}, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.CapAdd, []string{"CAP_KILL"} }},
		{"security_opt", []string{"no-new-privileges=false", "seccomp=unconfined"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.SecurityOpt, []string{"seccomp=unconfined"}
		}},
		{"ipc_mode", "none", func(_ *container.Config, h *container.HostConfig) (any, any) { return string(h.IpcMode), "none" }},
		{"pid_mode", "host", func(_ *container.Config, h *container.HostConfig) (any, any) { return string(h.PidMode), "host" }},
		{"uts_mode", "host", func(_ *container.Config, h *container.HostConfig) (any, any) { return string(h.UTSMode), "host" }},
		{"userns_mode", "host", func(_ *container.Config, h *container.HostConfig) (any, any) { return string(h.UsernsMode), "host" }},
		{"cgroup_parent", "/llmsandbox-test", func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.CgroupParent, "/llmsandbox-test"
		}},
		{"sysctls", map[string]any{"kernel.msgmax": 9000}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.Sysctls["kernel.msgmax"], "9000"
		}},
		{"devices", []string{"/dev/null:/dev/nothing:r"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.Devices, []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/nothing", CgroupPermissions: "r"}}
		}},
		{"device_cgroup_rules", []string{"c 1:3 r"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.DeviceCgroupRules, []string{"c 1:3 r"}
		}},
		{"device_requests", []any{map[string]any{"driver": "nvidia", "count": -1}}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return []any{h.DeviceRequests[0].Driver, h.DeviceRequests[0].Count, h.DeviceRequests[0].Capabilities[0][0]}, []any{"nvidia", -1, "gpu"}
		}},
		{"network_mode", "bridge", func(_ *container.Config, h *container.HostConfig) (any, any) { return string(h.NetworkMode), "bridge" }},
		{"hostname", "box", func(c *container.Config, _ *container.HostConfig) (any, any) { return c.Hostname, "box" }},
		{"dns", []string{"192.0.2.1"}, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.DNS[0].String(), "192.0.2.1" }},
		{"dns_search", []string{"example.org"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.DNSSearch, []string{"example.org"}
		}},
		{"dns_opt", []string{"ndots:3"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.DNSOptions, []string{"ndots:3"}
		}},
		{"extra_hosts", map[string]any{"db": "192.0.2.7"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.ExtraHosts, []string{"db:192.0.2.7"}
		}},
		{"volumes", map[string]any{dir: map[string]any{"bind": "/data", "mode": "ro"}}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.Binds, []string{dir + ":/data:ro"}
		}},
		{"mounts", []any{map[string]any{"Type": "bind", "Source": dir, "Target": "/tmp", "ReadOnly": true}}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return []any{h.Mounts[0].Source, h.Mounts[0].Target, h.Mounts[0].ReadOnly, len(h.Tmpfs)}, []any{dir, "/tmp", true, 0}
		}},
		{"tmpfs", map[string]any{"/tmp": "size=2m"}, func(_ *container.Config, h *container.HostConfig) (any, any) {
			return h.Tmpfs["/tmp"], "rw,exec,nosuid,nodev,mode=1777,size=2m"
		}},
		{"environment", map[string]any{"A": 1}, func(c *container.Config, _ *container.HostConfig) (any, any) {
			return slices.Contains(c.Env, "A=1"), true
		}},
		{"labels", []string{"a=b"}, func(c *container.Config, _ *container.HostConfig) (any, any) {
			return []string{c.Labels["a"], c.Labels["llmsandbox.id"]}, []string{"b", "settings"}
		}},
		{"working_dir", "/opt", func(c *container.Config, _ *container.HostConfig) (any, any) { return c.WorkingDir, "/opt" }},
		{"init", true, func(_ *container.Config, h *container.HostConfig) (any, any) { return *h.Init, true }},
		{"runtime", "runc", func(_ *container.Config, h *container.HostConfig) (any, any) { return h.Runtime, "runc" }},
		{"log_config", map[string]any{"type": "none"}, func(_ *container.Config, h *container.HostConfig) (any, any) { return h.LogConfig.Type, "none" }},
	} {
		t.Run(k.key, func(t *testing.T) {
			s, err := settings.FromMap(map[string]any{k.key: k.value})
			if err != nil {
				t.Fatal(err)
			}
			cfg, host := inspect(t, c, settingsContainer(t, c, s, "true"))
			if got, want := k.look(cfg, host); !cmp.Equal(got, want) {
				t.Errorf("the engine has %v, not %v, want cmp.Equal(got, want) = true", got, want)
			}
			if s.Loosened() == nil && (!host.ReadonlyRootfs || host.NetworkMode != "none" || len(host.CapAdd) > 0 || !slices.Contains(host.SecurityOpt, "no-new-privileges")) {
				t.Errorf("something else is loosened: %+v", host)
			}
		})
	}
	t.Run("ports", func(t *testing.T) {
		s, err := settings.FromMap(map[string]any{"network": "bridge", "ports": map[string]any{"80/tcp": 8080}})
		if err != nil {
			t.Fatal(err)
		}
		cfg, host := inspect(t, c, settingsContainer(t, c, s, "true"))
		port := network.MustParsePort("80/tcp")
		if _, exposed := cfg.ExposedPorts[port]; !exposed || len(host.PortBindings[port]) != 1 || host.PortBindings[port][0].HostIP.String() != "127.0.0.1" || host.PortBindings[port][0].HostPort != "8080" {
			t.Errorf("the engine has %v and %v, want exposed = true, len(host.PortBindings[port]) = 1, HostIP = \"127.0.0.1\", HostPort = \"8080\"", cfg.ExposedPorts, host.PortBindings)
		}
	})
}

func inspect(t *testing.T, c *client.Client, id string) (*container.Config, *container.HostConfig) {
	t.Helper()
	r, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Container.Config, r.Container.HostConfig
}

// What was asked for is what a program inside finds, on every engine.
func TestSettingsInside(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			e := engine.start(t)
			c := settingsClient(t, e)
			dir := openDir(t)
			if err := os.WriteFile(filepath.Join(dir, "greeting"), []byte("from outside\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			asked := map[string]any{
				"user": "1234:1235", "environment": []string{"GREETING=hello"}, "working_dir": "/opt", "hostname": "box",
				"volumes":     map[string]any{dir: map[string]any{"bind": "/data", "mode": "ro"}},
				"tmpfs":       map[string]any{"/tmp": "size=2m"},
				"extra_hosts": map[string]any{"db": "192.0.2.7"}, "shm_size": "1m",
			}
			look, limits := "", []string(nil)
			if !e.Podman {
				// With any ulimit Podman gives its default ones up, and then asks for
				// more processes than an engine within a container may have.
				asked["ulimits"] = []any{map[string]any{"name": "nofile", "soft": 33, "hard": 44}}
				look, limits = "ulimit -n; ulimit -Hn; ", []string{"33", "44"}
			}
			s, err := settings.FromMap(asked)
			if err != nil {
				t.Fatal(err)
			}
			out := output(t, c, settingsContainer(t, c, s, "sh", "-c", `id -u; id -g; echo $GREETING; pwd; hostname; cat /data/greeting
				touch /data/x 2>/dev/null || echo data is read-only; touch /x 2>/dev/null || echo root is read-only
				df -k /tmp /dev/shm | awk 'NR > 1 { print $2 }'; `+look+`grep -c '192.0.2.7.*db' /etc/hosts
				grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status | tr '\t' ' '`))
			want := strings.Join(slices.Concat([]string{"1234", "1235", "hello", "/opt", "box", "from outside", "data is read-only", "root is read-only",
				"2048", "1024"}, limits, []string{"1", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", ""}), "\n")
			if d := cmp.Diff(want, out); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// openDir is a directory that the user of a rootless engine can reach, unlike t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "llmsandbox-settings-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is loosened by name is loose: root with a capability that may gain privileges.
func TestSettingsLoosened(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			c := settingsClient(t, engine.start(t))
			s, err := settings.FromMap(map[string]any{"user": 0, "cap_add": []string{"kill"}, "security_opt": []string{"no-new-privileges=false"}, "read_only": false})
			if err != nil {
				t.Fatal(err)
			}
			out := output(t, c, settingsContainer(t, c, s, "sh", "-c", `id -u; awk '$2 == "/" { print substr($4, 1, 2) }' /proc/mounts; grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr '\t' ' '`))
			if want := "0\nrw\nCapEff: 0000000000000020\nNoNewPrivs: 0\n"; out != want {
				t.Errorf("%q, not %q", out, want)
			}
		})
	}
}

// output runs the container and returns what it printed.
func output(t *testing.T, c *client.Client, id string) string {
	t.Helper()
	attached, err := c.ContainerAttach(t.Context(), id, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		_, why := c.ContainerStart(t.Context(), id, client.ContainerStartOptions{}) // a refusal of the attachment has no words
		t.Fatalf("%v: %v", err, why)
	}
	defer attached.Close()
	if _, err := c.ContainerStart(t.Context(), id, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if _, err := stdcopy.StdCopy(&stdout, &stderr, io.LimitReader(attached.Reader, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Logf("stderr: %s", &stderr)
	}
	return stdout.String()
}
