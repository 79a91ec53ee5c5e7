package local

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestInside(t *testing.T) {
	t.Setenv("LOCAL_TEST_CANARY", "canary-in-the-environment")
	m := create(t, newBackend(t), nil)
	for _, c := range []struct{ name, script, want string }{
		{"user", "id -u; id -g; id -G", "1000\n1000\n1000\n"},
		{"host name", "hostname", "sandbox\n"},
		{"home directories", "ls -A /home /root /var/lib /run /sys 2>/dev/null | grep -v : | tr -d '\\n'", ""},
		{"environment", "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c canary", "0\n"},
		{"capabilities", "grep -c '^Cap.*:.0000000000000000$' /proc/self/status", "5\n"},
		{"no new privileges", "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'", "NoNewPrivs:1Seccomp:2"},
		{"read-only root", "for p in / /usr /etc /dev /proc/sys/kernel; do echo x 2>/dev/null >$p/x && echo $p; done; true", ""},
		{"writable", "for p in /sandbox /tmp /dev/shm $HOME; do echo x >$p/x && cat $p/x; done", "x\nx\nx\nx\n"},
		{"one disk", "stat -f -c %i /sandbox /tmp /dev/shm | sort -u | wc -l", "1\n"},
		{"masked", "cd /proc; cat " + strings.Join(maskedFiles, " ") + " 2>/dev/null | wc -c; ls -A " + strings.Join(maskedDirs, " ") + " 2>/dev/null | grep -v : | tr -d '\\n'", "0\n"},
		{"sysctl", "(echo 1 >/proc/sys/kernel/panic) 2>/dev/null; echo $?", "2\n"},
		{"processes", "ls /proc | grep -cx '[0-9]*' | xargs test 6 -ge && echo few", "few\n"},
		{"pid 1", "cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c; ls /proc/1/root/ /proc/1/fd 2>/dev/null | wc -l", "0\n0\n"},
		{"network", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n"},
		{"cgroup", "grep -vc ':/$' /proc/self/cgroup", "0\n"},
		{"uptime", "cut -d. -f1 /proc/uptime | xargs test 60 -gt && echo young", "young\n"},
		{"core dumps", "ulimit -c; ulimit -Hc 2>/dev/null", "0\n0\n"},
		{"sockets", "find / -type s 2>/dev/null | wc -l", "0\n"},
		{"setuid", "test -u /usr/bin/su && su -c id </dev/null 2>&1 | grep -c uid=0", "0\n"},
		{"remount", "mount -o remount,rw / 2>/dev/null; echo $?; unshare -Ur true 2>/dev/null; echo $?", "32\n1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shell(t, m, c.script); got != c.want {
				t.Errorf("%s prints %q, not %q", c.script, got, c.want)
			}
		})
	}
}

func TestDiskFull(t *testing.T) {
	b := newBackend(t)
	full, other := create(t, b, nil), create(t, b, nil)
	got := shell(t, full, "dd if=/dev/zero of=/sandbox/big bs=1M 2>&1 | grep -c 'No space left'; rm /sandbox/big; echo ok >/tmp/x; cat /tmp/x")
	if got != "1\nok\n" {
		t.Errorf("a full disk prints %q, want \"1\\nok\\n\"", got)
	}
	if got := shell(t, other, "echo fine >/sandbox/x; cat /sandbox/x"); got != "fine\n" {
		t.Errorf("the other sandbox prints %q, want \"fine\\n\"", got)
	}
	if disk, _ := full.Capabilities().Get("disk"); os.Geteuid() == 0 && disk.By != "ext4 on a loop device" {
		t.Logf("disk: %+v", disk)
	}
}

func TestLayers(t *testing.T) {
	b := newBackend(t)
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/sub/file", []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := create(t, b, func(s *backend.Spec) {
		s.Layers = []backend.Layer{{Source: dir, Target: "/opt/layer"}, {Source: dir, Target: "/tmp/home/.cache/a", Writable: true}}
	})
	got := shell(t, m, "cat /opt/layer/sub/file; (echo x >/opt/layer/sub/file) 2>/dev/null || echo refused; cd /tmp/home/.cache/a && cat sub/file && echo new >sub/new && mv -f sub/new sub/file && cat sub/file && echo more >sub/more && mkdir ../b && cat sub/more")
	if want := "old\nrefused\nold\nnew\nmore\n"; got != want {
		t.Errorf("prints %q, not %q", got, want)
	}
	if b, err := os.ReadFile(dir + "/sub/file"); err != nil || string(b) != "old\n" {
		t.Errorf("the host's file is %q, %v, want no error, b = \"old\\n\"", b, err)
	}
}

func TestControls(t *testing.T) {
	m := create(t, newBackend(t), nil)
	var names []string
	for _, c := range m.Capabilities().Controls {
		names = append(names, c.Name)
		if !c.Enforced && (c.Why == "" || c.Fix == "") {
			t.Errorf("%s is not enforced: %+v, want Why and Fix not empty", c.Name, c)
		}
	}
	for _, want := range []string{"memory", "cpus", "pids", "disk", "network", "seccomp", "landlock", "separate-uid", "agent"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}
