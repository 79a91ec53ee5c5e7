//go:build linux

package engine

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// pidsMax is the limit that the test asks for, and the agent's reserve.
var pidsMax = strconv.Itoa(33 + agentproto.SpareThreads)

// The files of a limit in a control group, of the first and of the second version, and
// what is in them for the limits that the test asks for.
var limitFiles = map[string][]struct{ path, want string }{
	"memory": {
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "100663296"}, {"/sys/fs/cgroup/memory.max", "100663296"},
		{"/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "100663296"}, {"/sys/fs/cgroup/memory.swap.max", "0"},
	},
	"cpus": {
		{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000"}, {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"}, {"/sys/fs/cgroup/cpu.max", "50000 100000"},
	},
	"pids": {{"/sys/fs/cgroup/pids/pids.max", pidsMax}, {"/sys/fs/cgroup/pids.max", pidsMax}},
}

// The kernel has the limits that were asked for.
func TestHardeningLimits(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true, Limits: llmsandbox.Limits{
			Memory: 96 << 20, CPUs: 0.5, PIDs: 33, Disk: 8 << 20,
		}})

		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		for name, files := range limitFiles {
			c, _ := sb.Capabilities().Get(name)
			if !c.Enforced {
				t.Logf("%s is declared as not enforced: %s", name, c.Why)
				continue
			}
			found := 0
			for _, f := range files {
				res, err := sb.Shell(testfaults.Context(t), "cat "+f.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !res.OK() {
					continue // of the other version
				}
				found++
				if got := strings.TrimSpace(res.Stdout); got != f.want {
					t.Errorf("%s is %s, not %s", f.path, got, f.want)
				}
			}
			if found == 0 {
				t.Errorf("%s: no file of a control group tells of it, want found != 0", name)
			}
		}
		for _, dir := range []string{"/sandbox", "/tmp", "/dev/shm"} {
			res, err := sb.Shell(testfaults.Context(t), "head -c 9000000 /dev/zero >"+dir+"/big; wc -c <"+dir+"/big; rm "+dir+"/big", nil)
			if err != nil || strings.TrimSpace(res.Stdout) != "8388608" {
				t.Errorf("%s takes %q bytes: %v %s, want no error, strings.TrimSpace(res.Stdout) = \"8388608\"", dir, res.Stdout, err, res.Stderr)
			}
		}
		if c, _ := sb.Capabilities().Get("memory"); c.Enforced {
			res, err := sb.Shell(testfaults.Context(t), "x=$(head -c 200000000 /dev/zero | cat -v)", nil)
			if err != nil || res.Status != llmsandbox.StatusOutOfMemory || res.ExitCode == 0 {
				t.Errorf("more memory than there is: %s, %v, want no error, Status = StatusOutOfMemory, ExitCode != 0", res.Status, err)
			}
			testfaults.Works(t, sb)
		}
	})
}

// Nothing of the process that opens a sandbox, or of its machine, is found inside.
func TestHardeningSecrets(t *testing.T) {
	const canary = "canary-of-the-owner"
	t.Setenv("LLMSANDBOX_CANARY", canary)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, _ *client.Client) {
		sb := openFaults(t, b)
		seen := inside(t, sb, "env; cat /etc/hostname /etc/hosts /etc/resolv.conf /proc/sys/kernel/hostname /proc/self/environ /proc/1/cmdline 2>/dev/null; id")
		for _, secret := range []string{canary, "LLMSANDBOX_TOKEN=", "LLMSANDBOX_GUEST=", os.TempDir() + "/llmsandbox"} {
			if strings.Contains(seen, secret) {
				t.Errorf("%q is seen inside:\n%s", secret, seen)
			}
		}
		// Podman gives a container a copy of the machine's own /etc/hosts.
		if b.Name() == "docker" && host != "sandbox" && strings.Contains(seen, host) {
			t.Errorf("the machine's name is seen inside, want Name != \"docker\" or host = \"sandbox\" or seen without %q:\n%s", host, seen)
		}
		if out := inside(t, sb, "cat /proc/sys/kernel/hostname"); out != "sandbox\n" {
			t.Errorf("the sandbox is called %q, want \"sandbox\\n\"", out)
		}
	})
}

// What the caller loosens is loose, and Capabilities say so and nothing more.
func TestHardeningLoosened(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		settingsClient(t, e)
		s, err := settings.FromMap(map[string]any{"read_only": false, "user": "0"})
		if err != nil {
			t.Fatal(err)
		}
		b := newBackend(t, e, engine.Options{Settings: s})
		sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: settingsImage, BestEffort: true})
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		if out := inside(t, sb, "id -u; touch /opt/written && echo it is writable"); out != "0\nit is writable\n" {
			t.Errorf("%q, want \"0\\nit is writable\\n\"", out)
		}
		for _, c := range sb.Capabilities().Controls {
			loose := slices.Contains([]string{"user", "filesystem", "disk"}, c.Name)
			if loose && (c.Enforced || !strings.Contains(c.Why, "the caller loosened it")) {
				t.Errorf("%+v, want Enforced = false and Why to say that the caller loosened it", c)
			}
			if !loose && strings.Contains(c.Why, "loosened") {
				t.Errorf("%+v, though nobody loosened it, want loose = true or Why without \"loosened\"", c)
			}
		}
		attached, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: newBackend(t, e, engine.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		defer attached.Close()
		if diff := cmp.Diff(sb.Capabilities(), attached.Capabilities()); diff != "" {
			t.Errorf("a handle that does not know the settings says otherwise (-opened +attached):\n%s", diff)
		}
	})
}

// Raw has the last word, also over what nothing else can change.
func TestHardeningRaw(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		settingsClient(t, e)
		b := newBackend(t, e, engine.Options{Raw: func(c *container.Config, h *container.HostConfig) error {
			c.Hostname, h.ReadonlyRootfs = "raw", false
			return nil
		}})
		sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: settingsImage, BestEffort: true})
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		if out := inside(t, sb, "cat /proc/sys/kernel/hostname"); out != "raw\n" {
			t.Errorf("the sandbox is called %q, want \"raw\\n\"", out)
		}
	})
}
