package settings

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

func ptr[T any](v T) *T { return &v }

// Each key in the command line's shape and in those of docker-py; all say the same.
var shapes = []struct {
	key   string
	texts []string // one Set each
	json  []string // one FromMap each
	want  Settings
}{
	{"mem_limit", []string{"512m"}, []string{`"512m"`, `"512MB"`, `536870912`, `5.36870912e8`, `"536870912b"`}, Settings{Memory: ptr(int64(512 << 20))}},
	{"mem_limit", []string{"0"}, []string{`0`}, Settings{Memory: ptr(int64(0))}},
	{"mem_reservation", []string{"1g"}, []string{`"1g"`}, Settings{MemoryReservation: ptr(int64(1 << 30))}},
	{"memswap_limit", []string{"-1"}, []string{`-1`, `"-1"`}, Settings{MemorySwap: ptr(int64(-1))}},
	{"memswap_limit", []string{"1g"}, []string{`"1G"`}, Settings{MemorySwap: ptr(int64(1 << 30))}},
	{"mem_swappiness", []string{"0"}, []string{`0`}, Settings{MemorySwappiness: ptr(int64(0))}},
	{"oom_kill_disable", []string{"true"}, []string{`true`}, Settings{OOMKillDisable: ptr(true)}},
	{"oom_score_adj", []string{"-5"}, []string{`-5`}, Settings{OOMScoreAdj: ptr(-5)}},
	{"shm_size", []string{"64m"}, []string{`"64m"`, `67108864`}, Settings{ShmSize: ptr(int64(64 << 20))}},
	{"nano_cpus", []string{"500000000"}, []string{`500000000`, `5e8`}, Settings{NanoCPUs: ptr(int64(5e8))}},
	{"cpu_count", []string{"2"}, []string{`2`, `"2"`}, Settings{NanoCPUs: ptr(int64(2e9))}},
	{"cpu_quota", []string{"50000"}, []string{`50000`}, Settings{CPUQuota: ptr(int64(50000))}},
	{"cpu_period", []string{"100000"}, []string{`100000`}, Settings{CPUPeriod: ptr(int64(100000))}},
	{"cpu_shares", []string{"512"}, []string{`512`}, Settings{CPUShares: ptr(int64(512))}},
	{"cpu_rt_period", []string{"1000000"}, []string{`1000000`}, Settings{CPURealtimePeriod: ptr(int64(1000000))}},
	{"cpu_rt_runtime", []string{"950000"}, []string{`950000`}, Settings{CPURealtimeRuntime: ptr(int64(950000))}},
	{"cpuset_cpus", []string{"0-2,4"}, []string{`"0-2,4"`}, Settings{CpusetCPUs: "0-2,4"}},
	{"cpuset_cpus", []string{"0"}, []string{`0`}, Settings{CpusetCPUs: "0"}},
	{"cpuset_mems", []string{"0"}, []string{`"0"`}, Settings{CpusetMems: "0"}},
	{"pids_limit", []string{"-1"}, []string{`-1`}, Settings{PIDs: ptr(int64(-1))}},
	{"ulimits", []string{"nofile=1024:2048", "core=0"},
		[]string{`[{"Name":"nofile","Soft":1024,"Hard":2048},{"name":"core","hard":0}]`, `["nofile=1024:2048","core=0"]`, `[{"name":"nofile","soft":1024,"hard":2048},{"name":"core","soft":0,"hard":null}]`},
		Settings{Ulimits: []container.Ulimit{{Name: "nofile", Soft: 1024, Hard: 2048}, {Name: "core"}}}},
	{"blkio_weight", []string{"300"}, []string{`300`}, Settings{BlkioWeight: ptr(uint16(300))}},
	{"blkio_weight_device", []string{"/dev/sda:200"}, []string{`[{"Path":"/dev/sda","Weight":200}]`}, Settings{BlkioWeightDevice: []blkiodev.WeightDevice{{Path: "/dev/sda", Weight: 200}}}},
	{"device_read_bps", []string{"/dev/sda:1m"}, []string{`[{"Path":"/dev/sda","Rate":1048576}]`, `[{"Path":"/dev/sda","Rate":"1m"}]`}, Settings{DeviceReadBps: []blkiodev.ThrottleDevice{{Path: "/dev/sda", Rate: 1 << 20}}}},
	{"device_write_bps", []string{"/dev/sda:1m"}, []string{`["/dev/sda:1m"]`}, Settings{DeviceWriteBps: []blkiodev.ThrottleDevice{{Path: "/dev/sda", Rate: 1 << 20}}}},
	{"device_read_iops", []string{"/dev/sda:10"}, []string{`[{"Path":"/dev/sda","Rate":10}]`}, Settings{DeviceReadIOps: []blkiodev.ThrottleDevice{{Path: "/dev/sda", Rate: 10}}}},
	{"device_write_iops", []string{"/dev/sda:10"}, []string{`[{"Path":"/dev/sda","Rate":10}]`}, Settings{DeviceWriteIOps: []blkiodev.ThrottleDevice{{Path: "/dev/sda", Rate: 10}}}},

	{"user", []string{"1000:1000"}, []string{`"1000:1000"`}, Settings{User: "1000:1000"}},
	{"user", []string{"0"}, []string{`0`, `"0"`}, Settings{User: "0"}},
	{"group_add", []string{"audio", "44"}, []string{`["audio",44]`}, Settings{Groups: []string{"audio", "44"}}},
	{"privileged", []string{"false"}, []string{`false`}, Settings{Privileged: ptr(false)}},
	{"read_only", []string{"false"}, []string{`false`}, Settings{ReadOnlyRoot: ptr(false)}},
	{"cap_add", []string{"cap_net_admin", "SYS_PTRACE"}, []string{`["CAP_NET_ADMIN","sys_ptrace"]`}, Settings{CapAdd: []string{"NET_ADMIN", "SYS_PTRACE"}}},
	{"cap_drop", []string{"all"}, []string{`["ALL"]`, `"ALL"`}, Settings{CapDrop: []string{"ALL"}}},
	{"security_opt", []string{"no-new-privileges=false", "apparmor:x"}, []string{`["no-new-privileges=false","apparmor:x"]`}, Settings{SecurityOpt: []string{"no-new-privileges=false", "apparmor:x"}}},
	{"userns_mode", []string{"keep-id:uid=1000"}, []string{`"keep-id:uid=1000"`}, Settings{UsernsMode: "keep-id:uid=1000"}},
	{"ipc_mode", []string{"container:abc"}, []string{`"container:abc"`}, Settings{IpcMode: "container:abc"}},
	{"pid_mode", []string{"host"}, []string{`"host"`}, Settings{PidMode: "host"}},
	{"uts_mode", []string{"host"}, []string{`"host"`}, Settings{UTSMode: "host"}},
	{"cgroupns", []string{"private"}, []string{`"private"`}, Settings{CgroupnsMode: "private"}},
	{"cgroup_parent", []string{"/a/b"}, []string{`"/a/b"`}, Settings{CgroupParent: "/a/b"}},
	{"sysctls", []string{"net.core.somaxconn=1024", "net.ipv4.ip_forward=1"}, []string{`{"net.core.somaxconn":1024,"net.ipv4.ip_forward":"1"}`}, Settings{Sysctls: map[string]string{"net.core.somaxconn": "1024", "net.ipv4.ip_forward": "1"}}},
	{"devices", []string{"/dev/fuse:/dev/f:rw", "/dev/kvm"}, []string{`["/dev/fuse:/dev/f:rw","/dev/kvm"]`, `[{"PathOnHost":"/dev/fuse","PathInContainer":"/dev/f","CgroupPermissions":"rw"},{"path_on_host":"/dev/kvm"}]`},
		Settings{Devices: []container.DeviceMapping{{PathOnHost: "/dev/fuse", PathInContainer: "/dev/f", CgroupPermissions: "rw"}, {PathOnHost: "/dev/kvm"}}}},
	{"device_cgroup_rules", []string{"c 10:229 rw"}, []string{`["c 10:229 rw"]`}, Settings{DeviceCgroupRules: []string{"c 10:229 rw"}}},
	{"device_requests", []string{"all"}, []string{`[{"Driver":"","Count":-1,"DeviceIDs":[],"Capabilities":[["gpu"]],"Options":{}}]`, `[{"count":-1,"capabilities":[["gpu"]]}]`},
		Settings{DeviceRequests: []container.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu"}}}}}},
	{"device_requests", []string{"device=a,device=b,driver=nvidia,capability=gpu,capability=utility"}, []string{`[{"driver":"nvidia","device_ids":["a","b"],"capabilities":[["gpu","utility"]]}]`},
		Settings{DeviceRequests: []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: []string{"a", "b"}, Capabilities: [][]string{{"gpu", "utility"}}}}}},
	{"device_requests", []string{"2"}, []string{`[{"Count":2}]`, `2`}, Settings{DeviceRequests: []container.DeviceRequest{{Count: 2, Capabilities: [][]string{{"gpu"}}}}}},

	{"network_mode", []string{"container:abc"}, []string{`"container:abc"`}, Settings{Network: "container:abc"}},
	{"network", []string{"lab"}, []string{`"lab"`}, Settings{Network: "lab"}},
	{"network_disabled", []string{"true"}, []string{`true`}, Settings{Network: "none"}},
	{"publish_all_ports", []string{"false"}, []string{`false`}, Settings{PublishAllPorts: ptr(false)}},
	{"hostname", []string{"box"}, []string{`"box"`}, Settings{Hostname: "box"}},
	{"domainname", []string{"example.org"}, []string{`"example.org"`}, Settings{Domainname: "example.org"}},
	{"dns", []string{"192.0.2.1", "2001:db8::1"}, []string{`["192.0.2.1","2001:db8::1"]`}, Settings{DNS: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}},
	{"dns_search", []string{"example.org"}, []string{`["example.org"]`}, Settings{DNSSearch: []string{"example.org"}}},
	{"dns_opt", []string{"ndots:2"}, []string{`["ndots:2"]`}, Settings{DNSOptions: []string{"ndots:2"}}},
	{"extra_hosts", []string{"a:192.0.2.1", "b:2001:db8::1", "c:host-gateway"}, []string{`{"a":"192.0.2.1","b":"2001:db8::1","c":"host-gateway"}`, `["a:192.0.2.1","b:2001:db8::1","c:host-gateway"]`},
		Settings{ExtraHosts: []string{"a:192.0.2.1", "b:2001:db8::1", "c:host-gateway"}}},

	{"volumes", []string{"/srv/data:/data:ro", "cache:/cache"}, []string{`{"/srv/data":{"bind":"/data","mode":"ro"},"cache":"/cache"}`, `["/srv/data:/data:ro","cache:/cache"]`, `{"/srv/data":{"bind":"/data","mode":"ro"},"cache":{"bind":"/cache"}}`},
		Settings{Volumes: []Volume{{Source: "/srv/data", Target: "/data", Mode: "ro"}, {Source: "cache", Target: "/cache"}}}},
	{"volumes", []string{`C:\data:/data:ro,z`}, []string{`{"C:\\data":{"bind":"/data","mode":"ro,z"}}`}, Settings{Volumes: []Volume{{Source: `C:\data`, Target: "/data", Mode: "ro,z"}}}},
	{"volumes", []string{"./data:/data:ro", "/own"}, []string{`["./data:/data:ro","/own"]`}, Settings{Volumes: []Volume{{Source: "./data", Target: "/data", Mode: "ro"}, {Target: "/own"}}}},
	{"volumes", []string{`{"/a":{"bind":"/b","ro":true}}`}, []string{`{"/a":{"bind":"/b","ro":true}}`}, Settings{Volumes: []Volume{{Source: "/a", Target: "/b", Mode: "ro"}}}},
	{"mounts", []string{"type=bind,source=/srv,target=/data,readonly,bind-propagation=rslave"}, []string{`[{"Target":"/data","Source":"/srv","Type":"bind","ReadOnly":true,"BindOptions":{"Propagation":"rslave"}}]`},
		Settings{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/srv", Target: "/data", ReadOnly: true, BindOptions: &mount.BindOptions{Propagation: "rslave"}}}}},
	{"mounts", []string{"type=tmpfs,dst=/t,tmpfs-size=1m,tmpfs-mode=1777"}, []string{`[{"Target":"/t","Source":null,"Type":"tmpfs","TmpfsOptions":{"SizeBytes":1048576,"Mode":1023}}]`},
		Settings{Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/t", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: 1 << 20, Mode: 0o1777}}}}},
	{"mounts", []string{"src=cache,target=/c,volume-nocopy,volume-subpath=a"}, []string{`[{"Target":"/c","Source":"cache","VolumeOptions":{"NoCopy":true,"Subpath":"a"}}]`},
		Settings{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "cache", Target: "/c", VolumeOptions: &mount.VolumeOptions{NoCopy: true, Subpath: "a"}}}}},
	{"mounts", []string{`type=bind,"src=/a,b",dst=/c,bind-recursive=disabled`}, []string{`[{"Target":"/c","Source":"/a,b","Type":"bind","BindOptions":{"NonRecursive":true}}]`},
		Settings{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/a,b", Target: "/c", BindOptions: &mount.BindOptions{NonRecursive: true}}}}},
	{"tmpfs", []string{"/a:size=64m,mode=1777", "/b"}, []string{`{"/a":"size=64m,mode=1777","/b":""}`, `["/a:size=64m,mode=1777","/b"]`}, Settings{Tmpfs: map[string]string{"/a": "size=64m,mode=1777", "/b": ""}}},
	{"volumes_from", []string{"other:ro"}, []string{`["other:ro"]`}, Settings{VolumesFrom: []string{"other:ro"}}},
	{"storage_opt", []string{"size=1g"}, []string{`{"size":"1g"}`}, Settings{StorageOpt: map[string]string{"size": "1g"}}},

	{"environment", []string{"A=1", "B=x=y", "C="}, []string{`{"A":1,"B":"x=y","C":""}`, `["A=1","B=x=y","C="]`}, Settings{Environment: map[string]string{"A": "1", "B": "x=y", "C": ""}}},
	{"environment", []string{`{"A":true}`}, []string{`{"A":true}`}, Settings{Environment: map[string]string{"A": "true"}}},
	{"labels", []string{"a=b", "c"}, []string{`{"a":"b","c":""}`, `["a=b","c"]`}, Settings{Labels: map[string]string{"a": "b", "c": ""}}},
	{"working_dir", []string{"/data"}, []string{`"/data"`}, Settings{WorkingDir: "/data"}},
	{"init", []string{"true"}, []string{`true`}, Settings{Init: ptr(true)}},
	{"timeout", []string{"30"}, []string{`30`, `30.0`}, Settings{Timeout: ptr(int64(30))}},
	{"runtime", []string{"runsc"}, []string{`"runsc"`}, Settings{Runtime: "runsc"}},
	{"log_config", []string{"json-file"}, []string{`{"Type":"json-file"}`, `{"type":"json-file","config":null}`}, Settings{LogConfig: &container.LogConfig{Type: "json-file"}}},
	{"log_config", []string{`{"Type":"json-file","Config":{"max-size":"1m"}}`}, []string{`{"type":"json-file","config":{"max-size":"1m"}}`}, Settings{LogConfig: &container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m"}}}},
}

var compare = []cmp.Option{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}

func TestShapes(t *testing.T) {
	for _, c := range shapes {
		t.Run(c.key, func(t *testing.T) {
			var s Settings
			for _, text := range c.texts {
				if err := s.Set(c.key, text); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(c.want, s, compare...); d != "" {
				t.Errorf("Set %q (-want +got):\n%s", c.texts, d)
			}
			for _, text := range c.json {
				var v any
				if err := json.Unmarshal([]byte(text), &v); err != nil {
					t.Fatal(err)
				}
				got, err := FromMap(map[string]any{c.key: v})
				if err != nil {
					t.Errorf("FromMap %s: %v", text, err)
				} else if d := cmp.Diff(c.want, got, compare...); d != "" {
					t.Errorf("FromMap %s (-want +got):\n%s", text, d)
				}
			}
		})
	}
}

// These need another key beside them.
func TestShapesWithAnother(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.9")
	ports := []Port{{Container: 80, Protocol: "tcp", HostIP: address, HostPort: 8080}, {Container: 81, Protocol: "udp"}, {Container: 82, Protocol: "tcp", HostPort: 1}, {Container: 82, Protocol: "tcp", HostPort: 2}}
	for _, v := range []any{
		map[string]any{"80/tcp": []any{"192.0.2.9", 8080}, "81/udp": nil, "82": []int{1, 2}},
		map[string]any{"80": map[string]string{"HostIp": "192.0.2.9", "HostPort": "8080"}, "81/UDP": nil, "82": []any{"1", "2"}},
		[]string{"192.0.2.9:8080:80", "81/udp", "1:82", "2:82"},
	} {
		got, err := FromMap(map[string]any{"network": "lab", "ports": v})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(ports, got.Ports, compare...); d != "" {
			t.Errorf("%v (-want +got):\n%s", v, d)
		}
	}
	var s Settings
	for _, text := range []string{"[2001:db8::1]:8080:80", "127.0.0.1::80", ":80"} {
		if err := s.Set("ports", text); err != nil {
			t.Error(err)
		}
	}
	want := []Port{{Container: 80, Protocol: "tcp", HostIP: netip.MustParseAddr("2001:db8::1"), HostPort: 8080}, {Container: 80, Protocol: "tcp", HostIP: netip.MustParseAddr("127.0.0.1")}, {Container: 80, Protocol: "tcp"}}
	if d := cmp.Diff(want, s.Ports, compare...); d != "" {
		t.Errorf("d = %v, want d empty", d)
	}
	got, err := FromMap(map[string]any{"volume_driver": "local", "volumes": []string{"cache:/c"}})
	if err != nil || got.VolumeDriver != "local" {
		t.Errorf("volume_driver: %v, %v, want no error, VolumeDriver = \"local\"", got, err)
	}
}

// Every key is tested, documented, and takes its own example.
func TestEveryKey(t *testing.T) {
	tested := map[string]bool{"ports": true, "volume_driver": true}
	for _, c := range shapes {
		tested[c.key] = true
	}
	for key := range fieldByKey() {
		if _, ok := optionByName[key]; !ok {
			t.Errorf("field %d has the tag %q, want a key", fieldByKey()[key], key)
		}
	}
	for _, k := range Keys() {
		if _, ok := fieldByKey()[k.Name]; !ok {
			t.Errorf("%s has no field, want one with the tag", k.Name)
		}
		if !tested[k.Name] {
			t.Errorf("%s is not tested, want tested[k.Name] = true", k.Name)
		}
		if k.Meaning == "" || k.Group == "" {
			t.Errorf("%s is not described, want Meaning not empty, Group not empty", k.Name)
		}
		switch k.Type {
		case "size", "integer", "boolean", "text", "list", "map":
		default:
			t.Errorf("%s: type %q, want one that the test knows", k.Name, k.Type)
		}
		var s Settings
		if err := s.Set(k.Name, k.Example); err != nil {
			t.Errorf("%s: its example is refused: %v", k.Name, err)
		}
		if _, ok := decided[k.Name]; ok {
			t.Errorf("%s is both a key and refused, want one of them", k.Name)
		}
		if _, ok := other[k.Name]; ok {
			t.Errorf("%s is both a key and another name of one, want one of them", k.Name)
		}
	}
}

// None of docker-py is not set, and a copy shares nothing that Set changes.
func TestNotSet(t *testing.T) {
	s, err := FromMap(map[string]any{"mem_limit": nil, "ports": nil, "environment": nil})
	if err != nil || !cmp.Equal(s, Settings{}, compare...) {
		t.Fatalf("%+v, %v, want no error, cmp.Equal(s, Settings{}, compare...) = true", s, err)
	}
	for _, kv := range [][2]string{{"environment", "A=1"}, {"cap_add", "CHOWN"}, {"cap_add", "FOWNER"}, {"cap_add", "KILL"}} {
		if err := s.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	a, b := s, s
	if err := a.Set("environment", "A=2"); err != nil {
		t.Fatal(err)
	}
	a.Set("cap_add", "SYSLOG")
	b.Set("cap_add", "LEASE")
	if s.Environment["A"] != "1" || a.CapAdd[3] != "SYSLOG" || b.CapAdd[3] != "LEASE" || len(s.CapAdd) != 3 {
		t.Errorf("copies share: %v %v %v, want s.Environment[\"A\"] = \"1\", a.CapAdd[3] = \"SYSLOG\", b.CapAdd[3] = \"LEASE\", len(s.CapAdd) = 3", s, a, b)
	}
}
