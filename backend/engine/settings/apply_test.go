package settings

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
)

// defaults are a sandbox's, as in the engine's backend.
func defaults() (*container.Config, *container.HostConfig) {
	cfg := &container.Config{User: "1000:1000", Hostname: "sandbox", Env: []string{"PATH=/bin", "HOME=/sandbox"}, Labels: map[string]string{"llmsandbox.id": "a"}}
	host := &container.HostConfig{
		AutoRemove: true, NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		LogConfig: container.LogConfig{Type: "none"}, IpcMode: container.IPCModePrivate,
		Tmpfs:  map[string]string{"/sandbox": "rw,exec,nosuid,nodev,mode=1777,size=1024", "/tmp": "rw,exec,nosuid,nodev,mode=1777,size=1024"},
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "agent", Target: "/.llmsandbox", ReadOnly: true}},
		Resources: container.Resources{Memory: 512 << 20, MemorySwap: 512 << 20, NanoCPUs: 1e9, PidsLimit: ptr(int64(128)),
			Ulimits: []*container.Ulimit{{Name: "core"}, {Name: "nofile", Soft: 1, Hard: 1}}},
	}
	return cfg, host
}

// What is set changes, and nothing else.
func TestApply(t *testing.T) {
	port := func(s string) network.Port { return network.MustParsePort(s) }
	agent := mount.Mount{Type: mount.TypeVolume, Source: "agent", Target: "/.llmsandbox", ReadOnly: true}
	for _, c := range []struct {
		name string
		s    Settings
		want func(*container.Config, *container.HostConfig)
	}{
		{"nothing", Settings{}, func(*container.Config, *container.HostConfig) {}},
		{"memory brings no swap", Settings{Memory: ptr(int64(1 << 30))}, func(_ *container.Config, h *container.HostConfig) { h.Memory, h.MemorySwap = 1<<30, 1<<30 }},
		{"memory lifted", Settings{Memory: ptr(int64(0))}, func(_ *container.Config, h *container.HostConfig) { h.Memory, h.MemorySwap = 0, 0 }},
		{"swap beside the default", Settings{MemorySwap: ptr(int64(1 << 30))}, func(_ *container.Config, h *container.HostConfig) { h.MemorySwap = 1 << 30 }},
		{"swap and memory", Settings{Memory: ptr(int64(8 << 20)), MemorySwap: ptr(int64(-1)), MemoryReservation: ptr(int64(6 << 20)), MemorySwappiness: ptr(int64(0)), OOMKillDisable: ptr(false), OOMScoreAdj: ptr(7), ShmSize: ptr(int64(9))},
			func(_ *container.Config, h *container.HostConfig) {
				h.Memory, h.MemorySwap, h.MemoryReservation, h.MemorySwappiness, h.OomKillDisable, h.OomScoreAdj, h.ShmSize = 8<<20, -1, 6<<20, ptr(int64(0)), ptr(false), 7, 9
			}},
		{"nano CPUs", Settings{NanoCPUs: ptr(int64(5e8))}, func(_ *container.Config, h *container.HostConfig) { h.NanoCPUs = 5e8 }},
		{"quota takes their place", Settings{CPUQuota: ptr(int64(30000))}, func(_ *container.Config, h *container.HostConfig) {
			h.NanoCPUs, h.CPUPeriod, h.CPUQuota = 0, 100000, 30000
		}},
		{"a period keeps the limit", Settings{CPUPeriod: ptr(int64(20000))}, func(_ *container.Config, h *container.HostConfig) {
			h.NanoCPUs, h.CPUPeriod, h.CPUQuota = 0, 20000, 20000
		}},
		{"CPUs otherwise", Settings{CPUShares: ptr(int64(5)), CPURealtimePeriod: ptr(int64(6)), CPURealtimeRuntime: ptr(int64(4)), CpusetCPUs: "0", CpusetMems: "1"},
			func(_ *container.Config, h *container.HostConfig) {
				h.CPUShares, h.CPURealtimePeriod, h.CPURealtimeRuntime, h.CpusetCpus, h.CpusetMems = 5, 6, 4, "0", "1"
			}},
		{"processes", Settings{PIDs: ptr(int64(0))}, func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = ptr(int64(-1)) }},
		{"a ulimit of the defaults", Settings{Ulimits: []container.Ulimit{{Name: "nofile", Soft: 5, Hard: 6}, {Name: "cpu", Soft: 1, Hard: 1}}},
			func(_ *container.Config, h *container.HostConfig) {
				h.Ulimits = []*container.Ulimit{{Name: "core"}, {Name: "nofile", Soft: 5, Hard: 6}, {Name: "cpu", Soft: 1, Hard: 1}}
			}},
		{"block devices", Settings{BlkioWeight: ptr(uint16(10)), BlkioWeightDevice: []blkiodev.WeightDevice{{Path: "/a", Weight: 10}}, DeviceReadBps: []blkiodev.ThrottleDevice{{Path: "/b", Rate: 1}}, DeviceWriteBps: []blkiodev.ThrottleDevice{{Path: "/c", Rate: 2}}, DeviceReadIOps: []blkiodev.ThrottleDevice{{Path: "/d", Rate: 3}}, DeviceWriteIOps: []blkiodev.ThrottleDevice{{Path: "/e", Rate: 4}}},
			func(_ *container.Config, h *container.HostConfig) {
				h.BlkioWeight, h.BlkioWeightDevice = 10, []*blkiodev.WeightDevice{{Path: "/a", Weight: 10}}
				h.BlkioDeviceReadBps, h.BlkioDeviceWriteBps = []*blkiodev.ThrottleDevice{{Path: "/b", Rate: 1}}, []*blkiodev.ThrottleDevice{{Path: "/c", Rate: 2}}
				h.BlkioDeviceReadIOps, h.BlkioDeviceWriteIOps = []*blkiodev.ThrottleDevice{{Path: "/d", Rate: 3}}, []*blkiodev.ThrottleDevice{{Path: "/e", Rate: 4}}
			}},
		{"a capability", Settings{CapAdd: []string{"cap_kill", "KILL"}}, func(_ *container.Config, h *container.HostConfig) { h.CapAdd = []string{"KILL"} }},
		{"all capabilities but one", Settings{CapAdd: []string{"ALL"}, CapDrop: []string{"SYS_ADMIN"}}, func(_ *container.Config, h *container.HostConfig) {
			h.CapAdd, h.CapDrop = []string{"ALL"}, []string{"SYS_ADMIN"}
		}},
		{"privileged", Settings{Privileged: ptr(true)}, func(_ *container.Config, h *container.HostConfig) { h.Privileged, h.CapDrop = true, nil }},
		{"not privileged", Settings{Privileged: ptr(false), ReadOnlyRoot: ptr(true)}, func(*container.Config, *container.HostConfig) {}},
		{"security options add", Settings{SecurityOpt: []string{"apparmor:x", "apparmor=y", "label=type:a", "label=level:b", "no-new-privileges"}},
			func(_ *container.Config, h *container.HostConfig) {
				h.SecurityOpt = []string{"apparmor=y", "label=type:a", "label=level:b", "no-new-privileges"}
			}},
		{"new privileges by name", Settings{SecurityOpt: []string{"no-new-privileges:false", "seccomp=unconfined"}}, func(_ *container.Config, h *container.HostConfig) { h.SecurityOpt = []string{"seccomp=unconfined"} }},
		{"system paths", Settings{SecurityOpt: []string{"systempaths=unconfined"}}, func(_ *container.Config, h *container.HostConfig) {
			h.MaskedPaths, h.ReadonlyPaths = []string{}, []string{}
		}},
		{"namespaces", Settings{ReadOnlyRoot: ptr(false), UsernsMode: "host", IpcMode: "host", PidMode: "host", UTSMode: "host", CgroupnsMode: "host", CgroupParent: "/p", Sysctls: map[string]string{"a": "b"}},
			func(c *container.Config, h *container.HostConfig) {
				h.ReadonlyRootfs, h.UsernsMode, h.IpcMode, h.PidMode, h.UTSMode, h.CgroupnsMode, h.CgroupParent, h.Sysctls = false, "host", "host", "host", "host", "host", "/p", map[string]string{"a": "b"}
				c.Hostname = ""
			}},
		{"devices", Settings{Devices: []container.DeviceMapping{{PathOnHost: "/dev/fuse"}}, DeviceCgroupRules: []string{"c 1:2 r"}, DeviceRequests: []container.DeviceRequest{{Count: 1}}},
			func(_ *container.Config, h *container.HostConfig) {
				h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/fuse", PathInContainer: "/dev/fuse", CgroupPermissions: "rwm"}}
				h.DeviceCgroupRules, h.DeviceRequests = []string{"c 1:2 r"}, []container.DeviceRequest{{Count: 1}}
			}},
		{"ports on the loopback", Settings{Network: "lab", Ports: []Port{{Container: 80, HostPort: 8080}, {Container: 80, HostIP: netip.IPv6Unspecified()}, {Container: 53, Protocol: "udp"}}},
			func(c *container.Config, h *container.HostConfig) {
				h.NetworkMode = "lab"
				loop := netip.MustParseAddr("127.0.0.1")
				c.ExposedPorts = network.PortSet{port("80/tcp"): {}, port("53/udp"): {}}
				h.PortBindings = network.PortMap{port("80/tcp"): {{HostIP: loop, HostPort: "8080"}, {HostIP: netip.IPv6Unspecified()}}, port("53/udp"): {{HostIP: loop}}}
			}},
		{"another's network", Settings{Network: "container:x"}, func(c *container.Config, h *container.HostConfig) { h.NetworkMode, c.Hostname = "container:x", "" }},
		{"names", Settings{Network: "lab", PublishAllPorts: ptr(true), Hostname: "h", Domainname: "d", DNS: []netip.Addr{netip.IPv6Loopback()}, DNSSearch: []string{"s"}, DNSOptions: []string{"o"}, ExtraHosts: []string{"a:192.0.2.1"}},
			func(c *container.Config, h *container.HostConfig) {
				h.NetworkMode, h.PublishAllPorts, c.Hostname, c.Domainname = "lab", true, "h", "d"
				h.DNS, h.DNSSearch, h.DNSOptions, h.ExtraHosts = []netip.Addr{netip.IPv6Loopback()}, []string{"s"}, []string{"o"}, []string{"a:192.0.2.1"}
			}},
		{"a volume takes a tmpfs's place", Settings{Volumes: []Volume{{Source: "/a", Target: "/sandbox/", Mode: "ro"}, {Source: "v", Target: "/v"}, {Target: "/own"}}, Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "w", Target: "/tmp"}}},
			func(_ *container.Config, h *container.HostConfig) {
				h.Tmpfs = map[string]string{}
				h.Binds = []string{"/a:/sandbox/:ro", "v:/v"}
				h.Mounts = []mount.Mount{agent, {Type: mount.TypeVolume, Target: "/own"}, {Type: mount.TypeVolume, Source: "w", Target: "/tmp"}}
			}},
		{"a tmpfs keeps what is not named", Settings{Tmpfs: map[string]string{"/tmp/": "size=9,noexec", "/new": "", "/sandbox": ""}},
			func(_ *container.Config, h *container.HostConfig) {
				h.Tmpfs["/tmp"], h.Tmpfs["/new"] = "rw,nosuid,nodev,mode=1777,size=9,noexec", ""
			}},
		{"volumes otherwise", Settings{Volumes: []Volume{{Source: "v", Target: "/v"}}, VolumesFrom: []string{"x:ro"}, VolumeDriver: "local", StorageOpt: map[string]string{"size": "1g"}},
			func(_ *container.Config, h *container.HostConfig) {
				h.Binds, h.VolumesFrom, h.VolumeDriver, h.StorageOpt = []string{"v:/v"}, []string{"x:ro"}, "local", map[string]string{"size": "1g"}
			}},
		{"processes' world", Settings{User: "0", Groups: []string{"5"}, Environment: map[string]string{"HOME": "/h", "B": "2", "A": "1"}, Labels: map[string]string{"a": "b"}, WorkingDir: "/w", Init: ptr(true), Runtime: "runsc", LogConfig: &container.LogConfig{Type: "local"}},
			func(c *container.Config, h *container.HostConfig) {
				c.User, c.WorkingDir, c.Env, c.Labels = "0", "/w", []string{"PATH=/bin", "HOME=/h", "A=1", "B=2"}, map[string]string{"llmsandbox.id": "a", "a": "b"}
				h.GroupAdd, h.Init, h.Runtime, h.LogConfig = []string{"5"}, ptr(true), "runsc", container.LogConfig{Type: "local"}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, host := defaults()
			if err := c.s.Apply(cfg, host); err != nil {
				t.Fatal(err)
			}
			wantCfg, wantHost := defaults()
			c.want(wantCfg, wantHost)
			options := append(compare, cmp.Comparer(func(a, b network.Port) bool { return a == b }))
			if d := cmp.Diff(wantCfg, cfg, options...); d != "" {
				t.Errorf("Config (-want +got):\n%s", d)
			}
			if d := cmp.Diff(wantHost, host, options...); d != "" {
				t.Errorf("HostConfig (-want +got):\n%s", d)
			}
		})
	}
}

// What only shows against the defaults.
func TestApplyRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Settings
		want string
	}{
		{"swap below memory", Settings{MemorySwap: ptr(int64(16 << 20))}, "memswap_limit"},
		{"soft limit above", Settings{MemoryReservation: ptr(int64(1 << 30))}, "mem_reservation"},
		{"swap without memory", Settings{Memory: ptr(int64(0)), MemorySwap: ptr(int64(1 << 30))}, "set mem_limit"},
		{"over the agent", Settings{Tmpfs: map[string]string{"/.llmsandbox": ""}}, "keeps /.llmsandbox for itself"},
		{"in the agent's folder", Settings{Volumes: []Volume{{Source: "v", Target: "/x/../.llmsandbox/bin"}}}, "keeps /.llmsandbox for itself"},
		{"in place of the agent", Settings{Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/.llmsandbox/"}}}, "keeps /.llmsandbox for itself"},
		{"no profile", Settings{SecurityOpt: []string{"seccomp=" + filepath.Join(t.TempDir(), "none.json")}}, "give an existing file"},
		{"a folder as profile", Settings{SecurityOpt: []string{"seccomp=" + t.TempDir()}}, "regular file"},
	} {
		cfg, host := defaults()
		if err := c.s.Apply(cfg, host); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", c.name, err, c.want)
		}
	}
}

func TestSeccompProfileIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.json")
	apply := func(opt string) ([]string, error) {
		cfg, host := defaults()
		host.SecurityOpt = append(host.SecurityOpt, "seccomp=builtin")
		err := Settings{SecurityOpt: []string{opt}}.Apply(cfg, host)
		return host.SecurityOpt, err
	}
	if err := os.WriteFile(file, []byte(`{"defaultAction":"SCMP_ACT_ALLOW"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := apply("seccomp=" + file)
	if want := []string{"no-new-privileges", `seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%q, %v, want no error, cmp.Equal(got, want) = true", got, err)
	}
	if err := os.WriteFile(file, []byte("allow all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := apply("seccomp=" + file); err == nil || !strings.Contains(err.Error(), "not valid JSON") {
		t.Error(err)
	}
}

func TestRelativeSources(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cfg, host := defaults()
	s := Settings{Volumes: []Volume{{Source: "./data", Target: "/a"}, {Source: "..", Target: "/b"}}, Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "sub/data", Target: "/c"}}}
	if err := s.Apply(cfg, host); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(here, "data") + ":/a", filepath.Dir(here) + ":/b"}
	if !cmp.Equal(host.Binds, want) || host.Mounts[1].Source != filepath.Join(here, "sub/data") || s.Mounts[0].Source != "sub/data" {
		t.Errorf("%q %v %v, want cmp.Equal(host.Binds, want) = true, host.Mounts[1].Source = filepath.Join(here, \"sub/data\"), Source = \"sub/data\"", host.Binds, host.Mounts, s.Mounts)
	}
}
