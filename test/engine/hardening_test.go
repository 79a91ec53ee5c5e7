//go:build linux

package engine

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// inside runs a line in a sandbox's shell and returns what it printed.
func inside(t *testing.T, sb *llmsandbox.Sandbox, line string) string {
	t.Helper()
	res, err := sb.Shell(testfaults.Context(t), line, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Stdout
}

// statusOf are the fields of a process's /proc/PID/status.
func statusOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// Nothing of root is left to the code or to what it could become.
func TestHardeningPrivileges(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		sb := openFaults(t, b)
		status := statusOf(inside(t, sb, "cat /proc/self/status"))
		for name, want := range map[string]string{
			"Uid": "1000\t1000\t1000\t1000", "Gid": "1000\t1000\t1000\t1000", "Groups": "1000",
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
			"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
		} {
			if got := status[name]; got != want && !(name == "Groups" && got == "") {
				t.Errorf("%s is %q, not %q", name, got, want)
			}
		}
		// The engine's own filter and the agent's.
		if n, err := strconv.Atoi(status["Seccomp_filters"]); err == nil && n < 2 {
			t.Errorf("%d system call filters, want an error or n >= 2", n)
		}
		for _, look := range []string{"cat /proc/1/environ", "cat /proc/1/maps", "cat /proc/1/mem", "ls /proc/1/fd", "ls /proc/1/root/"} {
			if out := inside(t, sb, look+" 2>/dev/null"); out != "" {
				t.Errorf("the agent can be looked into: %s: %q, want empty", look, out)
			}
		}
		if out := inside(t, sb, "cat /proc/1/cmdline"); !strings.HasPrefix(out, "/.llmsandbox/agent\x00") {
			t.Errorf("the first process is %q, want it to begin with \"/.llmsandbox/agent\\x00\"", out)
		}
		if out := inside(t, sb, "cat /.llmsandbox/agent 2>/dev/null; echo end"); out != "end\n" {
			t.Errorf("the agent's file can be read: out = %v, want \"end\\n\"", out)
		}
	})
}

// writable are the only places that code may write to. The kernel bounds a user's message
// queues.
var writable = []string{"/dev/mqueue", "/dev/shm", "/sandbox", "/tmp"}

// Of all that is mounted, only these can be written to, and nothing of it again
// mounted otherwise.
func TestHardeningMounts(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		sb := openFaults(t, b)
		var points []string
		for line := range strings.Lines(inside(t, sb, "cat /proc/self/mountinfo")) {
			fields := strings.Fields(line)
			point, options := fields[4], fields[5]
			points = append(points, point)
			if slices.Contains(writable, point) && (!strings.Contains(options, "nosuid") || !strings.Contains(options, "nodev")) {
				t.Errorf("%s is mounted %s, want nosuid and nodev", point, options)
			}
		}
		for _, want := range append([]string{"/", "/proc", "/sys", "/.llmsandbox"}, writable...) {
			if !slices.Contains(points, want) {
				t.Fatalf("%s is no mount: %q", want, points)
			}
		}
		points = append(points, "/run", "/var/tmp", "/var/run", "/dev", "/home", "/root", "/etc", "/srv", "/opt", "/bin", "/sys/fs/cgroup", "/proc/sys/kernel")
		slices.Sort(points)
		for _, p := range slices.Compact(points) {
			out := inside(t, sb, "(touch "+p+"/written && rm "+p+"/written && echo folder) 2>/dev/null; mount -o remount,rw,bind "+p+" 2>/dev/null && echo remounted")
			if want := slices.Contains(writable, p); (out == "folder\n") != want || !want && out != "" {
				t.Errorf("%s: %q, want out == \"folder\\n\" = %v, want = true or out empty", p, out, want)
			}
		}
		for _, path := range []string{"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd", "/run/.containerenv/x"} {
			if out := inside(t, sb, "ls "+path+" 2>/dev/null"); out != "" {
				t.Errorf("%s is there: %q, want empty", path, out)
			}
		}
	})
}

// Of the kernel's own files, what is not the sandbox's is hidden or cannot be changed.
func TestHardeningKernelFiles(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		sb := openFaults(t, b)
		for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/kmsg", "/proc/1/stack"} {
			if out := inside(t, sb, "head -c 64 "+path+" 2>/dev/null"); out != "" {
				t.Errorf("%s can be read: %q, want empty", path, out)
			}
		}
		for _, path := range []string{"/proc/acpi", "/proc/scsi", "/sys/firmware"} {
			if out := inside(t, sb, "ls "+path+" 2>/dev/null"); out != "" {
				t.Errorf("%s can be listed: %q, want empty", path, out)
			}
		}
		for _, path := range []string{"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/irq/default_smp_affinity", "/proc/1/oom_score_adj", "/sys/kernel/uevent_helper"} {
			if out := inside(t, sb, "(echo 1 >"+path+") 2>/dev/null && echo written"); out != "" {
				t.Errorf("%s can be written to, want out empty", path)
			}
		}
		devices := strings.Fields(inside(t, sb, "ls /dev"))
		allowed := []string{"console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
		for _, d := range devices {
			if !slices.Contains(allowed, d) {
				t.Errorf("/dev/%s is there", d)
			}
		}
		if out := inside(t, sb, "cat /proc/net/dev"); strings.Count(out, ":") != 1+strings.Count(out, "tunl")+strings.Count(out, "sit0")+strings.Count(out, "gre")+strings.Count(out, "erspan")+strings.Count(out, "_vti")+strings.Count(out, "ip6tnl") {
			t.Errorf("more than a loopback:\n%s", out)
		}
	})
}
