package settings

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

func TestLoosened(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Settings
		want string // controls
		says string
	}{
		{"nothing", Settings{}, "", ""},
		{"smaller limits", Settings{Memory: ptr(int64(8 << 20)), NanoCPUs: ptr(int64(1e8)), CPUPeriod: ptr(int64(1000)), PIDs: ptr(int64(5)), MemorySwap: ptr(int64(1 << 30)), OOMScoreAdj: ptr(5)}, "", ""},
		{"inside only", Settings{User: "1001:1001", Environment: map[string]string{"A": "1"}, Labels: map[string]string{"a": "b"}, Hostname: "x", Runtime: "runsc", ReadOnlyRoot: ptr(true), Privileged: ptr(false), Network: "none", IpcMode: "none", UsernsMode: "auto", LogConfig: &container.LogConfig{Type: "none"}, SecurityOpt: []string{"no-new-privileges=false", "no-new-privileges=true"}, CapDrop: []string{"ALL"}, Init: ptr(false)}, "", ""},
		{"limits", Settings{Memory: ptr(int64(0)), CPUQuota: ptr(int64(-1)), PIDs: ptr(int64(-1))}, "cpus memory pids", "mem_limit=0"},
		{"memory", Settings{MemorySwap: ptr(int64(-1)), OOMKillDisable: ptr(true), OOMScoreAdj: ptr(-1)}, "memory", "; oom_kill_disable"},
		{"no CPU limit", Settings{NanoCPUs: ptr(int64(0))}, "cpus", "no limit"},
		{"privileged", Settings{Privileged: ptr(true)}, "capabilities isolation", "as good as root"},
		{"root", Settings{User: "00:5"}, "user", "as root"},
		{"root by name", Settings{User: "root"}, "user", "as root"},
		{"root's group", Settings{User: "5:0"}, "user", "group of root"},
		{"some name", Settings{User: "daemon"}, "user", "the image decides"},
		{"groups", Settings{Groups: []string{"disk"}}, "user", "disk"},
		{"writable root", Settings{ReadOnlyRoot: ptr(false)}, "disk filesystem", "not limited"},
		{"writable root of a size", Settings{ReadOnlyRoot: ptr(false), StorageOpt: map[string]string{"size": "1g"}}, "filesystem", ""},
		{"capabilities", Settings{CapAdd: []string{"KILL"}}, "capabilities", "KILL"},
		{"security options", Settings{SecurityOpt: []string{"no-new-privileges=false", "seccomp=unconfined", "apparmor=unconfined", "label=disable", "systempaths=unconfined"}}, "apparmor masked-paths no-new-privs seccomp selinux", ""},
		{"own profile", Settings{SecurityOpt: []string{"seccomp={}"}}, "seccomp", "profile of the caller"},
		{"devices", Settings{Devices: []container.DeviceMapping{{PathOnHost: "/dev/kvm"}}, DeviceCgroupRules: []string{"c *:* rwm"}, DeviceRequests: []container.DeviceRequest{{Count: -1}}}, "devices", "/dev/kvm"},
		{"namespaces", Settings{UsernsMode: "host", IpcMode: "shareable", PidMode: "host", UTSMode: "host", CgroupnsMode: "host"}, "agent cgroup-namespace ipc processes user-namespace uts", ""},
		{"init", Settings{Init: ptr(true)}, "agent", "process 1"},
		{"logs", Settings{LogConfig: &container.LogConfig{Type: "syslog"}}, "logs", "syslog"},
		{"network", Settings{Network: "lab", Ports: []Port{{Container: 80}, {Container: 81, HostIP: netip.IPv4Unspecified()}}}, "network", "port 81"},
		{"host's network", Settings{Network: "host"}, "network", "loopback"},
		{"all ports", Settings{Network: "lab", PublishAllPorts: ptr(true)}, "network", "every interface"},
		{"read-only folder", Settings{Volumes: []Volume{{Source: "/srv/data", Target: "/data", Mode: "z,ro"}}}, "filesystem", "read-only"},
		{"writable folder", Settings{Volumes: []Volume{{Source: "./data", Target: "/data"}}}, "disk filesystem", "writable"},
		{"named volume", Settings{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "cache", Target: "/c"}}}, "disk filesystem", "volume cache"},
		{"own volume", Settings{Volumes: []Volume{{Target: "/c"}}}, "disk", ""},
		{"image", Settings{Mounts: []mount.Mount{{Type: mount.TypeImage, Source: "img", Target: "/c", ReadOnly: true}}}, "filesystem", "image img"},
		{"tmpfs", Settings{Tmpfs: map[string]string{"/t/": "size=1k"}}, "disk", "1 KiB"},
		{"tmpfs mount", Settings{Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/t"}}}, "disk", "memory limit"},
		{"a volume of the host's root", Settings{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "v", Target: "/c", VolumeOptions: &mount.VolumeOptions{DriverConfig: &mount.Driver{Options: map[string]string{"type": "none", "o": "bind", "device": "/"}}}}}}, "disk filesystem isolation", "the host's / at /c"},
		{"no volume at all", Settings{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/", Target: "/c", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{DriverConfig: &mount.Driver{Options: map[string]string{"device": "/srv"}}}}}}, "filesystem isolation", "the host's / at /c"},
		{"a volume elsewhere", Settings{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "v", Target: "/c", ReadOnly: true, VolumeOptions: &mount.VolumeOptions{DriverConfig: &mount.Driver{Options: map[string]string{"type": "nfs", "device": ":/etc"}}}}}}, "filesystem", "volume v"},
		{"another's volumes", Settings{VolumesFrom: []string{"x"}}, "filesystem", "container x"},
		{"engine's socket", Settings{Volumes: []Volume{{Source: "/var/run/docker.sock", Target: "/s", Mode: "ro"}}}, "filesystem isolation", "as good as root"},
		{"mounted socket", Settings{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/run/podman/podman.sock", Target: "/s", ReadOnly: true}}}, "filesystem isolation", "as good as root"},
	} {
		var controls []string
		says := ""
		for _, l := range c.s.Loosened() {
			controls = append(controls, l.Control)
			says += l.What + "\n"
		}
		if got := strings.Join(controls, " "); got != c.want || !strings.Contains(says, c.says) {
			t.Errorf("%s: %q, want %q and %q in:\n%s", c.name, got, c.want, c.says, says)
		}
	}
}

func TestEscapes(t *testing.T) {
	for source, want := range map[string]struct{ readOnly, writable bool }{
		"/var/run/docker.sock":             {true, true},
		"/home/me/.docker/run/docker.sock": {true, true},
		"/run/containerd/containerd.sock":  {true, true},
		"/run":                             {true, true},
		"/var/run/":                        {true, true},
		"/run/user/1000":                   {true, true},
		"/run/user/1000/podman":            {true, true},
		"/":                                {true, true},
		"//":                               {true, true},
		"/srv/..":                          {true, true},
		"/etc":                             {false, true},
		"/etc/cron.d":                      {false, true},
		"/proc":                            {false, true},
		"/home":                            {false, true},
		"/home/me/data":                    {false, false},
		"/srv/data":                        {false, false},
		"/var/lib/docker/volumes":          {false, true},
		"/var/lib/data":                    {false, false},
		"./data":                           {false, false},
		"/etcetera":                        {false, false},
	} {
		if got := escapes(source, true); got != want.readOnly {
			t.Errorf("%s read-only: %v, want %v", source, got, want.readOnly)
		}
		if got := escapes(source, false); got != want.writable {
			t.Errorf("%s writable: %v, want %v", source, got, want.writable)
		}
	}
}
