package settings

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A value that is wrong is an error that names the key, the value and what is allowed.
func TestRefusedValues(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"mem_limit", "lots", "512m"},
		{"mem_limit", "512x", "512m"},
		{"mem_limit", "-1", "512m"},
		{"mem_limit", 1024, "at least 6m"},
		{"mem_limit", 1.5, "512m"},
		{"mem_limit", true, "512m"},
		{"mem_limit", []string{"512m"}, "512m"},
		{"memswap_limit", -2, "or -1 for any swap"},
		{"mem_swappiness", 101, "0 to 100"},
		{"oom_score_adj", 1 << 40, "whole number"},
		{"oom_score_adj", 1001, "-1000 to 1000"},
		{"shm_size", 0, "from 1"},
		{"nano_cpus", 2, "1500000000 for 1.5 CPUs"},
		{"nano_cpus", "1.5", "whole number"},
		{"cpu_count", 0, "from 1 to 4096"},
		{"cpu_count", 1.5, "whole number"},
		{"timeout", 0, "from 1 to"},
		{"timeout", "30s", "whole number"},
		{"cpu_quota", 0, "-1 for no limit"},
		{"cpu_period", 10, "1000 to 1000000"},
		{"cpu_shares", "many", "whole number"},
		{"cpuset_cpus", "0..3", "0-3"},
		{"pids_limit", -2, "-1 to"},
		{"ulimits", "files=1", "nofile"},
		{"ulimits", "nofile", "NAME=SOFT"},
		{"ulimits", "nofile=2:1", "not be above"},
		{"ulimits", "nofile=-1:1", "not be above"},
		{"ulimits", []any{map[string]any{"name": "nofile"}}, "NAME=SOFT"},
		{"ulimits", []any{map[string]any{"name": "nofile", "soft": "1"}}, "int64"},
		{"ulimits", []any{map[string]any{"name": "nofile", "limit": 1}}, "limit"},
		{"ulimits", []any{map[string]any{"name": "nofile", "Name": "core"}}, "twice"},
		{"blkio_weight", 70000, "smaller"},
		{"blkio_weight", 1, "10 to 1000"},
		{"device_read_bps", "sda:1m", "absolute"},
		{"device_read_bps", "/dev/sda:0", "/dev/sda:10m"},
		{"device_read_bps", []any{map[string]any{"Path": "/dev/sda"}}, "Rate"},
		{"user", "a b", "USER"},
		{"user", "1:2:3", "USER"},
		{"user", "", "must not be empty"},
		{"group_add", []any{nil}, "string"},
		{"privileged", "yes please", "true or false"},
		{"privileged", 1, "true or false"},
		{"cap_add", "NET_ADMN", "did you mean NET_ADMIN"},
		{"cap_add", []string{"NONSENSE"}, "is no capability"},
		{"security_opt", "no-new-privs=false", "no-new-privileges=true"},
		{"security_opt", "no-new-privileges=no", "no-new-privileges=false"},
		{"security_opt", "seccomp=", "seccomp=FILE"},
		{"security_opt", "seccomp={", "JSON"},
		{"security_opt", "systempaths=open", "unconfined"},
		{"userns_mode", "guest", "host, private, auto"},
		{"ipc_mode", "container:", "container:..."},
		{"cgroupns", "shared", "private, host"},
		{"sysctls", "net.core.somaxconn", "NAME=VALUE"},
		{"devices", "fuse", "absolute"},
		{"devices", "/dev/fuse:/dev/fuse:x", "rwm"},
		{"devices", "/a:/b:r:w", "HOST[:INSIDE"},
		{"device_cgroup_rules", "c all", "TYPE MAJOR:MINOR"},
		{"device_requests", "some", "all, a number"},
		{"device_requests", "0", "count"},
		{"device_requests", []any{map[string]any{"count": 1, "device_ids": []string{"a"}}}, "either a count"},
		{"network_mode", "a b", "white space"},
		{"network_mode", "container:", "container:ID"},
		{"network_disabled", false, "network_mode=bridge"},
		{"ports", "80:http", "port numbers"},
		{"ports", "999999", "port numbers"},
		{"ports", map[string]any{"80/icmp": 80}, "tcp, udp or sctp"},
		{"ports", map[string]any{"80/tcp": "web"}, "port numbers"},
		{"ports", map[string]any{"80/tcp": []any{"localhost", 80}}, "IP address"},
		{"ports", map[string]any{"80/tcp": map[string]any{"Port": 1}}, "Port"},
		{"ports", "a:b:80", "IP address"},
		{"ports", "1:2:3:80", "HOSTPORT"},
		{"hostname", "-x", "letters"},
		{"dns", "resolver.example", "IP address"},
		{"extra_hosts", "db", "NAME:ADDRESS"},
		{"extra_hosts", map[string]any{"db": "elsewhere"}, "NAME:ADDRESS"},
		{"volumes", "data:relative", "absolute path"},
		{"volumes", "/a:/b:readonly", "ro or rw"},
		{"volumes", "/a:/", "root cannot be mounted"},
		{"volumes", "~/data:/data", "home folder"},
		{"volumes", "my data:/data", "volume's name"},
		{"volumes", "/a:/b:ro:z", "SOURCE:TARGET"},
		{"volumes", map[string]any{"/a": map[string]any{"bind": "/b", "mode": "ro", "ro": true}}, "either mode or ro"},
		{"volumes", map[string]any{"/a": map[string]any{"target": "/b"}}, "bind: TARGET"},
		{"volumes", map[string]any{"/a:b": "/b"}, "mounts key"},
		{"mounts", "type=bind,target=/b", "path of the host"},
		{"mounts", "type=nfs,target=/b", "bind, volume, tmpfs"},
		{"mounts", "type=volume,source=/a,target=/b", "type bind"},
		{"mounts", "target=/b,what=1", "what"},
		{"mounts", "target=/b,ro=maybe", "true or false"},
		{"mounts", "type=tmpfs,target=/b,tmpfs-mode=9", "octal"},
		{"mounts", []any{map[string]any{"Target": "/b", "ReadOnly": "yes"}}, "bool"},
		{"mounts", "type=bind,src=/a,dst=/b,bind-propagation=up", "rslave"},
		{"tmpfs", "scratch", "absolute"},
		{"tmpfs", "/scratch:size=big", "size=64m"},
		{"volumes_from", "a:b", "ID:ro"},
		{"storage_opt", "size", "NAME=VALUE"},
		{"labels", "llmsandbox.id=x", "sandbox's own"},
		{"labels", map[string]any{"a": nil}, "string"},
		{"working_dir", "data", "absolute"},
		{"log_config", map[string]any{"Type": 1}, "string"},
		{"log_config", map[string]any{"Config": map[string]any{}}, "driver's name"},
		{"runtime", "a b", "white space"},
	} {
		s := Settings{Hostname: "kept"}
		err := error(nil)
		if text, ok := c.value.(string); ok {
			err = s.Set(c.key, text)
		} else {
			_, err = FromMap(map[string]any{c.key: c.value})
		}
		var key *KeyError
		if !errors.As(err, &key) || key.Key != c.key || !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s=%v: %v is no KeyError of it, want an error of type %T, Key = %v, backend.ErrInvalid", c.key, c.value, err, key, c.key)
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, "value ") && c.value != "" {
			t.Errorf("%s=%v: %q does not say %q", c.key, c.value, text, c.want)
		}
		if s.Hostname != "kept" || s.Memory != nil {
			t.Errorf("%s=%v: settings changed, want Hostname = \"kept\", Memory = nil", c.key, c.value)
		}
	}
}

// Values of the environment may be secrets.
func TestSecretsAreNotShown(t *testing.T) {
	var s Settings
	_, mapErr := FromMap(map[string]any{"environment": map[string]any{"A": []string{"hunter2"}}})
	typed := Settings{Environment: map[string]string{"LLMSANDBOX_TOKEN": "hunter2"}}
	for _, err := range []error{s.Set("environment", "LLMSANDBOX_TOKEN=hunter2"), s.Set("environment", "hunter2"), s.Set("environment", "{hunter2}"), mapErr, typed.Validate()} {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want an error without \"hunter2\"", err)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	for key, want := range map[string]string{
		"memory":                       "use mem_limit, or the sandbox's memory limit",
		"Memory":                       "use mem_limit, or the sandbox's memory limit",
		"cpus":                         "nano_cpus (2000000000)",
		"cpu_percent":                  "Windows containers only: use nano_cpus",
		"timeouts":                     "did you mean timeout?",
		"runtime_config":               "give the keys in it by themselves",
		"mem_limt":                     "did you mean mem_limit?",
		"mount":                        "did you mean mounts?",
		"CapAdd":                       "did you mean cap_add?",
		"cap-add":                      "did you mean cap_add?",
		"NanoCpus":                     "did you mean nano_cpus?",
		"network-mode":                 "did you mean network_mode?",
		"restartpolicy":                "open a new sandbox",
		"restart_policy":               "open a new sandbox",
		"image":                        "option of the sandbox itself",
		"command":                      "guest agent",
		"entrypoint":                   "guest agent",
		"name":                         "id",
		"detach":                       "leave it out",
		"stdin_open":                   "leave it out",
		"tty":                          "leave it out",
		"auto_remove":                  "always removed",
		"remove":                       "always removed",
		"stream":                       "leave it out",
		"gpus":                         "or device_requests",
		"xyzzy":                        "use one of mem_limit, ",
		"":                             "use one of mem_limit, ",
		strings.Repeat("memory", 1000): "use one of mem_limit, ",
		"a\x1b[2Jb":                    "use one of mem_limit, ",
	} {
		var s Settings
		setErr := s.Set(key, "1")
		_, mapErr := FromMap(map[string]any{key: nil}) // unknown even when it is not set
		for _, err := range []error{setErr, mapErr} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v does not say %q", key, err, want)
			} else if strings.ContainsRune(err.Error(), '\x1b') || len(err.Error()) > 2000 {
				t.Errorf("%q: the error repeats the key: %v, want strings.ContainsRune(err.Error(), '\\x1b') = false, len(err.Error()) <= 2000", key, err)
			}
		}
	}
}

// What is advised is a key.
func TestAdviceNamesKeys(t *testing.T) {
	for word, advice := range other {
		if _, err := lookUp(word); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: got %v, want %q", word, err, advice)
		}
		for _, field := range strings.FieldsFunc(advice, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
			if _, known := optionByName[field]; strings.Contains(field, "_") && !known {
				t.Errorf("%s: %q is no key, want field without \"_\" or known = true", word, field)
			}
		}
	}
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Settings
		want string
	}{
		{"two ways of CPUs", Settings{NanoCPUs: ptr(int64(1e9)), CPUQuota: ptr(int64(1000))}, "nano_cpus: contradicts cpu_quota"},
		{"ports without network", Settings{Ports: []Port{{Container: 80}}}, "network_mode=bridge"},
		{"all ports without network", Settings{PublishAllPorts: ptr(true), Network: "none"}, "network_mode=bridge"},
		{"ports of the host", Settings{Ports: []Port{{Container: 80}}, Network: "host"}, "published already"},
		{"hostname of another", Settings{Hostname: "x", UTSMode: "host"}, "another one's"},
		{"hostname of a container", Settings{Hostname: "x", Network: "container:y"}, "another one's"},
		{"all and none", Settings{CapAdd: []string{"CAP_ALL"}, CapDrop: []string{"all"}}, "name the capabilities"},
		{"no killing, no limit", Settings{OOMKillDisable: ptr(true), Memory: ptr(int64(0))}, "needs a memory limit"},
		{"twice", Settings{Volumes: []Volume{{Source: "/a", Target: "/x/"}}, Tmpfs: map[string]string{"/x": ""}}, "mounted upon twice"},
		{"driver of nothing", Settings{VolumeDriver: "nfs", Volumes: []Volume{{Source: "/a", Target: "/b"}}}, "no named volume"},
		// Values set from Go are checked as well.
		{"Go value", Settings{Network: "a b"}, "network_mode"},
		{"Go list", Settings{CapAdd: []string{"NOTHING"}}, "is no capability"},
		{"Go map", Settings{Labels: map[string]string{"llmsandbox.id": "x"}}, "sandbox's own"},
		{"Go mount", Settings{Mounts: []mount.Mount{{Type: mount.TypeCluster, Target: "/x"}}}, "bind, volume"},
		{"Go port", Settings{Network: "x", Ports: []Port{{}}}, "PORT"},
		{"Go address", Settings{DNS: []netip.Addr{{}}}, "IP address"},
		{"Go log", Settings{LogConfig: &container.LogConfig{}}, "driver"},
	} {
		err := c.s.Validate()
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", c.name, err, c.want)
		}
		if applied := c.s.Apply(&container.Config{}, &container.HostConfig{}); applied == nil || applied.Error() != err.Error() {
			t.Errorf("%s: Apply: %v, not %v, want applied not nil, applied.Error() = err.Error()", c.name, applied, err)
		}
	}
	for _, m := range []map[string]any{
		{"cpu_count": 1, "nano_cpus": 1000000000}, {"cpu_count": 1, "cpu_quota": 50000},
		{"network": "a", "network_mode": "b"}, {"network": "a", "network_disabled": true},
		{"network": "bridge", "hostname": make(chan int)},
	} {
		if _, err := FromMap(m); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%v: %v, want backend.ErrInvalid", m, err)
		}
	}
}
