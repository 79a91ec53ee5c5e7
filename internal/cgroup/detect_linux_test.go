package cgroup

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/llmsandbox/llmsandbox/backend"
)

// tree writes a faked machine: proc files and the named cgroup files.
func tree(t *testing.T, mountinfo, own string, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{"proc/self/mountinfo": mountinfo, "proc/self/cgroup": own}
	for k, v := range files {
		all[k] = v
	}
	for name, text := range all {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const v2mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"

func TestDetect(t *testing.T) {
	user := "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers"
	for _, c := range []struct {
		name, mounts, own string
		files             map[string]string
		euid              int
		version           Version
		usable            string
	}{
		{"nothing", "", "", nil, 0, None, ""},
		{"v2 root", v2mount, "0::/\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory pids"}, 0, V2, "memory cpu pids"},
		{"v2 without memory", v2mount, "0::/\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu pids"}, 0, V2, "cpu pids"},
		{"v2 user without session", v2mount, "0::/\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory pids"}, 1000, V2, ""},
		{"v2 user with session", v2mount, "0::/user.slice/user-1000.slice/session-1.scope\n",
			map[string]string{user: "memory pids", "run/user/1000/bus": ""}, 1000, V2, "memory pids"},
		{"v2 container that shares its group", v2mount, "0::/\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory pids",
			"sys/fs/cgroup/cgroup.type": "domain\n", "sys/fs/cgroup/cgroup.subtree_control": "\n", "sys/fs/cgroup/cgroup.procs": "1\n7\n"}, 0, V2, ""},
		{"v2 container divided before", v2mount, "0::/init\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory pids",
			"sys/fs/cgroup/cgroup.type": "domain\n", "sys/fs/cgroup/cgroup.subtree_control": "cpu memory pids\n"}, 0, V2, "memory cpu pids"},
		{"v1", "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "2:memory:/a/b\n",
			map[string]string{"sys/fs/cgroup/memory/a/b/tasks": ""}, 0, V1, "memory"},
		{"hybrid", "30 23 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" + strings.Replace(v2mount, "cgroup rw", "cgroup/unified rw", 1), "2:pids:/\n0::/\n",
			map[string]string{"sys/fs/cgroup/pids/tasks": ""}, 0, Hybrid, "pids"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := detect(tree(t, c.mounts, c.own, c.files), c.euid)
			var usable []string
			for _, n := range []string{"memory", "cpu", "pids"} {
				if s.Usable(n) {
					usable = append(usable, n)
				}
			}
			if s.Version != c.version || strings.Join(usable, " ") != c.usable {
				t.Fatalf("version %s, usable %v; %+v, want Version = %s, strings.Join(usable, \" \") = %v", s.Version, usable, s.Controls(), c.version, c.usable)
			}
			for _, k := range s.Controls() {
				if k.Enforced == (k.Why != "" || k.Fix != "") || k.Enforced != (k.By != "") {
					t.Errorf("control explains itself badly: %+v, want Enforced != %v, Enforced = %v", k, k.Why != "" || k.Fix != "", k.By != "")
				}
			}
		})
	}
}

// TestUserWithoutSession: without a systemd session, as in a container with cgroup v2, limits are not enforced, but sandboxes still start.
func TestUserWithoutSession(t *testing.T) {
	s := detect(tree(t, v2mount, "0::/\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory pids"}), 1000)
	for _, c := range s.Controls() {
		if c.Enforced || !strings.Contains(c.Why, "no systemd user session") {
			t.Errorf("%+v, want Enforced = false and Why with \"no systemd user session\"", c)
		}
	}
	g, err := s.Create(t.Context(), "x", Limits{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	group, files := 0, 1
	if err := g.Start(t.Context(), func(fd int) (int, error) { group = fd; return os.Getpid(), nil }); err != nil || group != -1 {
		t.Errorf("Start: %v, in the group of descriptor %d, want no error and -1", err, group)
	}
	if err := g.StartElsewhere(t.Context(), func(tasks []*os.File) (int, error) { files = len(tasks); return os.Getpid(), nil }); err != nil || files != 0 {
		t.Errorf("StartElsewhere: %v, with %d files, want no error and 0", err, files)
	}
	if o, err := s.Open("x", os.Getpid()); err != nil || len(o.dirs) > 0 {
		t.Errorf("Open: %v, %v, want no error and no group", o, err)
	}
	if err := errors.Join(g.Destroy(t.Context()), s.Tidy()); err != nil {
		t.Error(err)
	}
}

func TestDetectDelegatedGroup(t *testing.T) {
	service := "sys/fs/cgroup/system.slice/x.service"
	for _, own := range []string{"/system.slice/x.service", "/system.slice/x.service/llmsandbox-owner"} {
		root := tree(t, v2mount, "0::"+own+"\n", map[string]string{service + "/cgroup.controllers": "memory pids",
			service + "/cgroup.subtree_control": "", service + "/cgroup.procs": "", service + "/llmsandbox-owner/cgroup.procs": ""})
		if err := unix.Setxattr(filepath.Join(root, service), "user.delegate", []byte("1"), 0); err != nil {
			t.Skip("no extended attributes in the directory for tests: ", err)
		}
		s := detect(root, 1000)
		if !s.Usable("memory") || s.Usable("cpu") || s.by() != "cgroup v2 (delegated)" || s.base != filepath.Join(root, service, dirName) {
			t.Errorf("in %s: %+v, base %s, want s.Usable(\"memory\") = true, s.Usable(\"cpu\") = false, by = \"cgroup v2 (delegated)\", s.base = filepath.Join(root, service, dirName)", own, s.Controls(), s.base)
		}
	}
}

func TestCreateWritesV2Limits(t *testing.T) {
	d := "sys/fs/cgroup/"
	files := map[string]string{d + "cgroup.controllers": "cpu memory pids", d + "cgroup.subtree_control": "cpu",
		d + "llmsandbox/cgroup.subtree_control": ""}
	root := tree(t, v2mount, "0::/\n", files)
	s := detect(root, 0)
	g := &Group{s: s, name: "x", limits: Limits{Memory: 64 << 20, CPUs: 0.5, PIDs: 10, Reserve: 5}}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	want := map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "0", "cpu.max": "50000 100000", "pids.max": "15"}
	for f := range want {
		os.WriteFile(filepath.Join(dir, f), nil, 0o644)
	}
	if err := g.limitV2(dir, false); err != nil {
		t.Fatal(err)
	}
	for f, w := range want {
		if got, _ := os.ReadFile(filepath.Join(dir, f)); string(got) != w {
			t.Errorf("%s is %q, want %q", f, got, w)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(root, d, "cgroup.subtree_control")); string(got) != "+memory +pids" {
		t.Errorf("subtree_control got %q, want got = \"+memory +pids\"", got)
	}
}

// A kernel that does not count a peak gives none: what is used now is not the peak.
func TestUsageOfV2(t *testing.T) {
	s := detect(tree(t, v2mount, "0::/\n", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu memory pids"}), 0)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  backend.Usage
	}{
		{"Linux 5.19", map[string]string{"memory.peak": "8192\n"}, backend.Usage{MemoryKnown: true, Memory: 4096, MemoryPeak: 8192, CPUKnown: true, CPU: 1500 * time.Microsecond}},
		{"Linux 5.18", nil, backend.Usage{MemoryKnown: true, Memory: 4096, CPUKnown: true, CPU: 1500 * time.Microsecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"memory.current": "4096\n", "cpu.stat": "usage_usec 1500\nuser_usec 1000\n"}
			maps.Copy(files, c.files)
			for f, text := range files {
				if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			g := &Group{s: s, dirs: map[string]string{"": dir}}
			if u, err := g.Usage(); err != nil || u != c.want {
				t.Errorf("got %+v, %v, want %+v", u, err, c.want)
			}
		})
	}
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	for _, l := range []Limits{{Memory: -1}, {Memory: 1 << 20}, {CPUs: -1}, {CPUs: 0.001}, {CPUs: math.NaN()}, {CPUs: math.Inf(1)}, {PIDs: -1}, {PIDs: 1 << 30}, {Reserve: -1}} {
		if _, err := Detect().Create(context.Background(), "x", l); err == nil {
			t.Errorf("%+v was taken, want an error", l)
		}
	}
	for _, n := range []string{"", "..", "a/b", "-a", "A", strings.Repeat("a", 65)} {
		if _, err := Detect().Create(context.Background(), n, Limits{}); err == nil {
			t.Errorf("name %q was taken, want an error", n)
		}
	}
}

func TestMountPathStaysBelowTheMount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/docker/x", "/../..", "/ab", ""})
		m := mount{root: part.Draw(t, "root"), point: "/sys/fs/cgroup"}
		p := m.path(part.Draw(t, "group"))
		if p != m.point && !strings.HasPrefix(p, m.point+"/") {
			t.Fatalf("%+v: path %q, want %q or a path below it", m, p, m.point)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(v2mount, "0::/\n")
	f.Add("1 2 3:4 /\\040 /x rw - cgroup c rw,cpu,cpuacct\n", "1:cpu,cpuacct:/a:b\n")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		groups, err := parseOwn(own)
		for controller, group := range groups {
			if err != nil || !strings.HasPrefix(group, "/") {
				t.Errorf("%q: group %q of %q, error %v, want a path from the root, no error", own, group, controller, err)
			}
		}
		for _, m := range parseMounts(mounts, "/") {
			if p := m.path(m.root); p != filepath.Clean(m.point) {
				t.Errorf("%q: the root group of %+v is at %q, want its mount point", mounts, m, p)
			}
		}
	})
}
