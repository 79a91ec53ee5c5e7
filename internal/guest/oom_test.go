//go:build linux

package guest

import (
	"strings"
	"testing"
)

const dockerV1 = `9:name=systemd:/docker/abc
4:memory:/docker/abc
3:cpu,cpuacct:/docker/abc
0::/docker/abc
`

const dockerV1Mounts = `107 106 0:46 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755
109 107 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,relatime - cgroup cgroup rw,cpu,cpuacct
111 107 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime master:11 - cgroup cgroup rw,memory
`

const (
	unifiedMounts = "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate\n"
	memoryMounts  = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	v1File        = "/sys/fs/cgroup/memory/memory.oom_control"
	v2File        = "/sys/fs/cgroup/memory.events"
)

func TestOOMFile(t *testing.T) {
	for _, c := range []struct {
		name, cgroup, mounts string
		firstNS              bool
		want                 string
	}{
		{"v1, the host's namespace", dockerV1, dockerV1Mounts, true, v1File},
		{"v1, a namespace of its own", "4:memory:/\n0::/\n", memoryMounts, false, v1File},
		{"v1, the whole machine", "4:memory:/\n0::/\n", memoryMounts, true, ""},
		{"v1, a login on a host", "4:memory:/user.slice\n0::/\n", memoryMounts, true, ""},
		{"v1, another container's group", dockerV1, strings.ReplaceAll(dockerV1Mounts, "/docker/abc", "/docker/other"), true, ""},
		{"v1, nothing mounted", dockerV1, "", true, ""},
		{"v2, a namespace of its own", "0::/\n", unifiedMounts, false, v2File},
		{"v2, the host's namespace", "0::/system.slice/x.scope\n", strings.Replace(unifiedMounts, " / ", " /system.slice/x.scope ", 1), true, v2File},
		{"v2, the whole machine", "0::/\n", unifiedMounts, true, ""},
		{"v2, a login on a host", "0::/user.slice/session-1.scope\n", unifiedMounts, true, ""},
		{"v2, above the namespace", "0::/../x\n", unifiedMounts, false, ""},
		{"both, memory in v1", dockerV1, unifiedMounts + dockerV1Mounts, true, v1File},
		{"nothing", "", "", true, ""},
	} {
		got, ok := oomFile([]byte(c.cgroup), []byte(c.mounts), c.firstNS)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, ok, c.want)
		}
	}
}

func TestParseOOMKills(t *testing.T) {
	for text, want := range map[string]struct {
		n     uint64
		known bool
	}{
		"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n":                {7, true},
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n": {2, true},
		"oom_kill_disable 0\nunder_oom 0\n":                            {0, false},
		"oom_kill -1\n":                                                {0, false},
		"oom_kill 99999999999999999999999\n":                           {0, false},
		"oom_kill ":                                                    {0, false},
		"":                                                             {0, false},
	} {
		if n, known := parseOOMKills([]byte(text)); n != want.n && want.known || known != want.known {
			t.Errorf("%q: %d, %v, want n = %d or known false, known = %v", text, n, known, want.n, want.known)
		}
	}
	var none *oomCounter
	if _, known := none.count(); known {
		t.Error("a counter that is not there knows something: known = true, want false")
	}
}

// FuzzOOMFile: whatever the files of /proc say, what is found lies in a mount that they name.
func FuzzOOMFile(f *testing.F) {
	f.Add([]byte(dockerV1), []byte(dockerV1Mounts), true)
	f.Add([]byte("0::/\n"), []byte(unifiedMounts), false)
	f.Add([]byte("4:memory:/\n"), []byte(memoryMounts), false)
	f.Add([]byte("0::"), []byte("a b c d e - cgroup2"), true)
	f.Fuzz(func(t *testing.T, cgroup, mounts []byte, firstNS bool) {
		file, ok := oomFile(cgroup, mounts, firstNS)
		if ok != (file != "") {
			t.Errorf("%q, %v, want %v", file, ok, file != "")
		}
		if ok && !strings.HasSuffix(file, "/memory.events") && !strings.HasSuffix(file, "memory.oom_control") && !strings.HasSuffix(file, "memory.events") {
			t.Errorf("%q, want ok = false or file ending in \"/memory.events\" or file ending in \"memory.oom_control\" or file ending in \"memory.events\"", file)
		}
	})
}

func FuzzParseOOMKills(f *testing.F) {
	f.Add([]byte("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"))
	f.Add([]byte("oom_kill \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, known := parseOOMKills(text); !known && n != 0 && !strings.Contains(string(text), "oom_kill ") {
			t.Errorf("%d, want known = true or n = 0 or text containing \"oom_kill \"", n)
		}
	})
}
