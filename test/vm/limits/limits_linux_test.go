// Package limits tests on whole sandboxes that this machine's control groups hold.
// Its tests run anywhere; what they are for is the machines that test/vm boots.
package limits

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open opens a sandbox whose limits all must be held, or skips the test where this
// user cannot have that.
func open(t *testing.T, l llmsandbox.Limits) *llmsandbox.Sandbox {
	t.Helper()
	return opened(t, func(ctx context.Context) (*llmsandbox.Sandbox, error) {
		return llmsandbox.Open(ctx, &llmsandbox.Options{Limits: l, BestEffort: true})
	})
}

func opened(t *testing.T, open func(context.Context) (*llmsandbox.Sandbox, error)) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := open(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		awaitNoGroup(t, sb.ID())
	})
	want := os.Getenv("LIMITS_ENFORCED_BY") // what test/vm expects of the machine
	for _, c := range sb.Capabilities().Controls {
		if c.Name != "memory" && c.Name != "cpus" && c.Name != "pids" {
			continue
		}
		if want != "" && (!c.Enforced || c.By != want) {
			t.Fatalf("%+v, want it enforced by %s", c, want)
		}
		if !c.Enforced {
			reason := fmt.Sprintf("%s is not limited here: %s: %s", c.Name, c.Why, c.Fix)
			if want != "" || os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
				t.Fatal(reason)
			}
			t.Skip(reason)
		}
	}
	return sb
}

// TestZygote: limits hold for what is forked from another sandbox, each sandbox's own.
func TestZygote(t *testing.T) {
	z, err := llmsandbox.NewZygote(testContext(t), &llmsandbox.Options{Limits: all(), BestEffort: true, Imports: []string{"decimal"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	one, two := opened(t, z.Open), opened(t, z.Open)
	for range 2 {
		if res, err := one.Run(testContext(t), "import decimal; x = b'x' * (200 << 20)", nil); err != nil || res.Status != llmsandbox.StatusOutOfMemory {
			t.Errorf("200 MiB of 96: %+v, %v, want status out_of_memory", res, err)
		}
	}
	res := run(t, one, `
import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(30); os._exit(0)
        n += 1
except OSError: print(n < 40)`, nil)
	if res.Stdout != "True\n" {
		t.Errorf("%+v, want at most 40 processes", res)
	}
	alive(t, one)
	if res := run(t, two, "x = b'x' * (50 << 20); print(len(x) >> 20)", nil); res.Stdout != "50\n" {
		t.Errorf("the other sandbox: %+v, want Stdout = 50", res)
	}
}

func all() llmsandbox.Limits {
	return llmsandbox.Limits{Memory: 96 << 20, CPUs: 1, PIDs: 40, Timeout: 40 * time.Second}
}

func run(t *testing.T, sb *llmsandbox.Sandbox, code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
	t.Helper()
	res, err := sb.Run(testContext(t), code, o)
	if err != nil {
		t.Fatalf("%v: %+v", err, res)
	}
	return res
}

// alive tests that the sandbox still runs code.
func alive(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	if res := run(t, sb, "print(6*7)", nil); !res.OK() || res.Stdout != "42\n" {
		t.Errorf("afterwards: %s %q %q, want OK, Stdout = \"42\\n\"", res.Status, res.Stdout, res.Stderr)
	}
}

// groups lists the control groups of a sandbox.
func groups(id string) []string {
	var found []string
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(d.Name(), id) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// awaitNoGroup waits for the groups to go: systemd removes its own in its own time.
func awaitNoGroup(t *testing.T, id string) {
	t.Helper()
	var left []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if left = groups(id); len(left) == 0 {
			return
		}
	}
	t.Errorf("control groups left after 10 s: %v, want none", left)
}

func TestMemory(t *testing.T) {
	sb := open(t, all())
	if len(groups(sb.ID())) == 0 {
		t.Fatalf("the sandbox has no control group: len(groups(sb.ID())) = %v, want other than 0", len(groups(sb.ID())))
	}
	res := run(t, sb, "x = bytearray(300 << 20)", nil)
	if res.Status != llmsandbox.StatusOutOfMemory {
		t.Errorf("%s %q %q, want StatusOutOfMemory", res.Status, res.Reason, res.Stderr)
	}
	alive(t, sb)
}

func TestMemoryOfManyProcesses(t *testing.T) {
	sb := open(t, all())
	res := run(t, sb, `import os, time
for i in range(6):
    if os.fork() == 0:
        x = bytearray(40 << 20)
        time.sleep(30)
        os._exit(0)
dead = sum(os.waitstatus_to_exitcode(os.wait()[1]) == -9 for _ in range(2))
print(dead, flush=True)
`, nil)
	if res.Stdout != "2\n" && res.Status != llmsandbox.StatusOutOfMemory {
		t.Errorf("%s %q %q %q, want Stdout = \"2\\n\" or Status = StatusOutOfMemory", res.Status, res.Stdout, res.Reason, res.Stderr)
	}
	alive(t, sb)
}

func TestProcesses(t *testing.T) {
	l := all()
	l.Memory = 512 << 20
	sb := open(t, l)
	res := run(t, sb, `import os, time
n = 0
try:
    for _ in range(500):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        n += 1
except OSError:
    pass
print(n)
`, nil)
	n, err := strconv.Atoi(strings.TrimSpace(res.Stdout))
	if err != nil || n < 10 || n > 40+64 { // 64: the threads allowed to the agent
		t.Errorf("%s: %q processes of 40, %q, want no error, n >= 10, n <= %d", res.Status, res.Stdout, res.Stderr, 40+64)
	}
	alive(t, sb)
}

func TestCPU(t *testing.T) {
	l := all()
	l.CPUs = 0.2
	sb := open(t, l)
	res := run(t, sb, `import time
begin = time.monotonic(); used = time.process_time()
while time.monotonic() - begin < 3: pass
print((time.process_time() - used) / (time.monotonic() - begin))
`, nil)
	share, err := strconv.ParseFloat(strings.TrimSpace(res.Stdout), 64)
	if err != nil || share > 0.3 {
		t.Errorf("%s: used %q of a CPU at a limit of 0.2; %q, want no error, share <= 0.3", res.Status, res.Stdout, res.Stderr)
	}
	if u, err := sb.Usage(testContext(t)); err != nil || !u.CPUKnown || u.CPU == 0 || !u.MemoryKnown || u.MemoryPeak == 0 {
		t.Errorf("usage %+v, %v, want no error, CPUKnown true, CPU != 0, MemoryKnown true, MemoryPeak != 0", u, err)
	}
}

func TestTimeout(t *testing.T) {
	sb := open(t, all())
	res := run(t, sb, "import os\nos.fork(); os.fork()\nwhile True: pass", &llmsandbox.RunOptions{Timeout: 2 * time.Second})
	if res.Status != llmsandbox.StatusTimeout {
		t.Errorf("%s %q, want StatusTimeout", res.Status, res.Reason)
	}
	alive(t, sb)
}

func TestCancel(t *testing.T) {
	sb := open(t, all())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	if res, err := sb.Run(ctx, "while True: pass", nil); err == nil {
		t.Errorf("no error: %+v, want an error", res)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("ended after %v, want at most 10s", d)
	}
	alive(t, sb)
}

func TestTenSandboxes(t *testing.T) {
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range 10 {
		sb := open(t, all())
		wg.Go(func() {
			res, err := sb.Run(t.Context(), fmt.Sprintf("print(%d)", i), nil)
			if err != nil || res.Stdout != fmt.Sprintf("%d\n", i) {
				t.Errorf("sandbox %d: %v, %+v, want no error, res.Stdout = %q", i, err, res, fmt.Sprintf("%d\n", i))
			}
		})
	}
	wg.Wait()
	t.Logf("ten sandboxes in %v", time.Since(begin))
}
