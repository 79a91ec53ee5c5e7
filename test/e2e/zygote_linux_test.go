package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/pool"
)

// newZygote starts one that is closed with the test, of a backend with no other sandboxes.
func newZygote(t *testing.T, o llmsandbox.Options) (*llmsandbox.Zygote, *local.Backend, *outside) {
	t.Helper()
	dir := t.TempDir()
	b := local.New(&local.Options{StateDir: filepath.Join(dir, "state")})
	o.Backend, o.BestEffort = b, true
	z, err := llmsandbox.NewZygote(testContext(t), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, err := b.List(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v, want none", left, err)
		}
	})
	return z, b, &outside{dir: dir}
}

func openFrom(t *testing.T, z *llmsandbox.Zygote) *llmsandbox.Sandbox {
	t.Helper()
	sb, err := z.Open(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sb
}

// controls prints all that a program sees of how it is restricted, and what it is refused.
const controls = `
import ctypes, os, resource, socket, sys, time
def read(name):
    try:
        with open(name) as f: return f.read()
    except OSError as e: return e.strerror
for line in read("/proc/self/status").splitlines():
    if line.split(":")[0] in ("Umask", "TracerPid", "Uid", "Gid", "Groups", "SigIgn", "SigBlk", "ShdPnd", "CapInh", "CapPrm", "CapEff", "CapBnd",
                              "CapAmb", "NoNewPrivs", "Seccomp", "Threads", "Cpus_allowed", "CoreDumping"):
        print(line)
print(read("/proc/self/cgroup"), read("/proc/self/oom_score_adj"), read("/proc/self/limits"))
for name in "setgroups", "projid_map", "loginuid", "timerslack_ns", "attr/current", "coredump_filter":
    print(name, read("/proc/self/" + name))
print([" ".join(l.split()[4:6] + l.split(" - ")[1].split()[:1]) for l in read("/proc/self/mountinfo").splitlines()])
print(os.uname()[:2], os.getcwd(), sorted(os.environ.items()), os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), sorted(os.listdir("/")))
print([n.split("\t")[0] for n in read("/proc/net/dev").splitlines()[2:3]], time.clock_gettime(time.CLOCK_BOOTTIME) < 1000, float(read("/proc/uptime").split()[0]) < 1000)
print(sorted(os.listdir("/proc/self/fd"))[:3], os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), read("/proc/self/comm"), os.readlink("/proc/self/exe") == os.path.realpath(sys.executable))
libc = ctypes.CDLL(None, use_errno=True)
for call in [("setns", 0, 0), ("unshare", 0x10000000), ("unshare", 0x20000), ("mount", None, b"/tmp", b"tmpfs", 0, None), ("umount2", b"/proc", 0), ("ptrace", 16, 1, 0, 0),
             ("chroot", b"/"), ("sethostname", b"x", 1), ("setuid", 0), ("setgid", 0), ("keyctl", 0, -3, 0), ("syscall", 321, 0, 0, 0), ("swapon", b"/x", 0), ("process_vm_readv", 1, 0, 0, 0, 0, 0)]:
    try: print(call[0], getattr(libc, call[0])(*call[1:]), ctypes.get_errno()); ctypes.set_errno(0)
    except AttributeError as e: print(call[0], "is not there")
for path in "/etc/x", "/usr/x", "/x", "/dev/x", "/proc/sys/kernel/hostname", "/proc/1/mem", "/proc/1/environ", "/sys/x", "/sandbox/x", "/tmp/x", "/dev/shm/x", "/proc/%d/mem" % os.getppid(), "/proc/%d/fd/3" % os.getppid():
    try: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)); print(path, "ok")
    except OSError as e: print(path.replace(str(os.getppid()), "parent"), e.strerror)
os.mkdir("moved"); open("to-move", "w").close()
for act in os.rename, os.link:
    try: act("to-move", "moved/" + act.__name__); print("done"); open("to-move", "w").close()
    except OSError as e: print(act.__name__, e.strerror)
for pid in 1, os.getppid(), -os.getppid():
    try: os.kill(pid, 9); print("killed")
    except OSError as e: print(e.strerror)
`

var manyVariables = map[string]string{"A": "1", "B": "2", "C": "3", "D": "4", "E": "5", "F": "6", "G": "7", "H": "8"}

// TestZygoteControls: what is forked from another sandbox is held to all that a program is held to which is started in its own.
func TestZygoteControls(t *testing.T) {
	z, b, _ := newZygote(t, llmsandbox.Options{Imports: []string{"decimal"}, Env: manyVariables})
	sb := openFrom(t, z)
	fresh := open(t, llmsandbox.Options{Backend: b, Env: manyVariables})
	want, got := strings.Split(run(t, fresh, controls, nil).Stdout, "\n"), strings.Split(run(t, sb, controls, nil).Stdout, "\n")
	if len(want) < 60 || len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: %s\nwant %s", i, got[i], want[i])
		}
	}
	const namespaces = "for n in cgroup ipc mnt net pid time user uts; do readlink /proc/self/ns/$n; done"
	inside := run(t, sb, namespaces, &llmsandbox.RunOptions{Language: "bash"}).Stdout
	if res := run(t, sb, "import os\nfor n in 'cgroup ipc mnt net pid time user uts'.split(): print(os.readlink('/proc/self/ns/' + n))", nil); res.Stdout != inside {
		t.Errorf("its namespaces are %s, want %s, as other programs of the sandbox have", res.Stdout, inside)
	}
	other := run(t, openFrom(t, z), namespaces, &llmsandbox.RunOptions{Language: "bash"}).Stdout
	for line := range strings.Lines(inside) {
		if strings.Contains(other, line) {
			t.Errorf("two sandboxes are in %s", line)
		}
	}
	for i, c := range fresh.Capabilities().Controls {
		if got := sb.Capabilities().Controls[i]; got != c {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
}

// TestZygoteSandboxesAreApart: what one does, the other does not see.
func TestZygoteSandboxesAreApart(t *testing.T) {
	z, _, _ := newZygote(t, llmsandbox.Options{Imports: []string{"random", "uuid", "ssl", "secrets", "decimal"}})
	one, two := openFrom(t, z), openFrom(t, z)
	// Their pids are the same, by which some find out that they were forked.
	const random = "import os, random, secrets, ssl, time, uuid, tempfile; print(random.random(), secrets.token_hex(), uuid.uuid4(), uuid.uuid1(), ssl.RAND_bytes(8), os.urandom(8), tempfile.mktemp(), sep='\\n')"
	first, second := strings.Split(run(t, one, random, nil).Stdout, "\n"), strings.Split(run(t, two, random, nil).Stdout, "\n")
	if len(first) != 8 || len(second) != 8 {
		t.Fatalf("%q, %q, want 7 lines", first, second)
	}
	for i := range 7 {
		if first[i] == second[i] {
			t.Errorf("line %d is %q in both", i, first[i])
		}
	}
	run(t, one, `
import decimal, os, socket, mmap
decimal.getcontext().prec = 3
for d in "/tmp", "/sandbox", "/dev/shm": open(d + "/seen", "w").write("x")
os.system("nohup sleep 1003 >/dev/null 2>&1 &")`, &llmsandbox.RunOptions{KeepChildren: true})
	k, err := one.Kernel(testContext(t), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run(testContext(t), "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0name'); s.listen(); i = socket.socket(); i.bind(('127.0.0.1', 4567)); i.listen()", nil); err != nil {
		t.Fatal(err)
	}
	const sees = `
import decimal, os, socket
print(decimal.getcontext().prec, [d for d in ("/tmp", "/sandbox", "/dev/shm") if os.path.exists(d + "/seen")])
print([p for p in os.listdir("/proc") if p.isdigit() and "sleep" in open("/proc/%s/cmdline" % p).read()])
for family, address in (socket.AF_UNIX, "\0name"), (socket.AF_INET, ("127.0.0.1", 4567)):
    try: socket.socket(family).connect(address); print("connected")
    except OSError as e: print(e.strerror)`
	if res := run(t, two, sees, nil); res.Stdout != "28 []\n[]\nConnection refused\nConnection refused\n" {
		t.Errorf("%+v, want nothing of the other sandbox", res)
	}
	// Nor does it reach the other, or what it was forked from.
	run(t, two, `
import os, signal
for pid in range(2, 500):
    for s in signal.SIGSTOP, signal.SIGKILL:
        try:
            if pid != os.getpid(): os.kill(pid, s)
        except OSError: pass
try: os.kill(-1, signal.SIGKILL)
except OSError: pass`, &llmsandbox.RunOptions{})
	if cell, err := k.Run(testContext(t), "s.fileno() >= 0", nil); err != nil || cell.Value["text/plain"] != "True" {
		t.Errorf("the kernel of the other sandbox: %+v, %v, want Value = True", cell, err)
	}
	if res := run(t, openFrom(t, z), "print(1)", nil); res.Stdout != "1\n" {
		t.Errorf("%+v, want a sandbox as before", res)
	}
}

// TestZygoteReaches: sandboxes have the network, secrets and mounts of the options, which the interpreter that was forked had not.
func TestZygoteReaches(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization") == "the value")
	}))
	t.Cleanup(host.Close)
	address := host.Listener.Addr().String()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("mounted"), 0o644); err != nil {
		t.Fatal(err)
	}
	z, _, _ := newZygote(t, llmsandbox.Options{
		Imports: []string{"decimal"}, Mounts: []llmsandbox.Mount{{Source: dir, Target: "/data"}},
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{address}},
		Secrets: []llmsandbox.Secret{{Name: "TOKEN", Value: "the value", Hosts: []string{address}}},
	})
	const program = `
import os, sys, urllib.error, urllib.request
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
print("decimal" in sys.modules, open("/data/file").read(), b"TOKEN" in open("/proc/self/environ", "rb").read())
print(urllib.request.urlopen(urllib.request.Request(os.environ["AT"], headers={"Authorization": os.environ["TOKEN"]})).read().decode())
try: urllib.request.urlopen("http://127.0.0.1:9/")
except urllib.error.HTTPError as e: print(e.code)
print(os.environ["TOKEN"])
`
	source := strings.Replace(program, `os.environ["AT"]`, strconv.Quote("http://"+address+"/"), 1)
	one, two := openFrom(t, z), openFrom(t, z)
	placeholders := map[string]bool{}
	for range 2 {
		for _, sb := range []*llmsandbox.Sandbox{one, two} {
			res := run(t, sb, source, nil)
			rest, ok := strings.CutPrefix(res.Stdout, "True mounted False\ntrue\n403\n")
			if !ok || len(res.Network) != 2 || !res.Network[0].Allowed || res.Network[1].Allowed {
				t.Errorf("%+v, want a module, the mount, and two attempts, of which one is allowed", res)
			}
			placeholders[rest] = true
		}
	}
	if len(placeholders) != 2 {
		t.Errorf("%d placeholders, want one of each sandbox", len(placeholders))
	}
	k, err := one.Kernel(testContext(t), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if cell, err := k.Run(testContext(t), source, nil); err != nil || !strings.HasPrefix(cell.Stdout, "True mounted False\ntrue\n403\n") {
		t.Errorf("a kernel: %+v, %v, want the same", cell, err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if err := two.SetNetwork(testContext(t), llmsandbox.Network{Mode: llmsandbox.NetworkNone}); err != nil {
		t.Fatal(err)
	}
	if res := run(t, two, source, nil); strings.Contains(res.Stdout, "\ntrue\n") {
		t.Errorf("%+v, want no network any more", res)
	}
	if res := run(t, one, source, nil); !strings.Contains(res.Stdout, "\ntrue\n") {
		t.Errorf("%+v, want the network of the first still there", res)
	}
}

// TestZygoteLimits: each sandbox has its own.
func TestZygoteLimits(t *testing.T) {
	z, _, out := newZygote(t, llmsandbox.Options{Imports: []string{"decimal"}, Limits: llmsandbox.Limits{Memory: 128 << 20, PIDs: 20}})
	one, two := openFrom(t, z), openFrom(t, z)
	c, _ := one.Capabilities().Get("memory")
	if c.Enforced {
		for range 2 {
			if res, err := one.Run(testContext(t), "x = b'x' * (300 << 20)", nil); err != nil || res.Status != llmsandbox.StatusOutOfMemory {
				t.Errorf("300 MiB of 128: %+v, %v, want status out_of_memory", res, err)
			}
		}
	}
	if c, _ := one.Capabilities().Get("pids"); c.Enforced {
		res := run(t, one, `
import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        n += 1
except OSError as e: print(n <= 20, e.strerror)`, nil)
		if res.Stdout != "True Resource temporarily unavailable\n" {
			t.Errorf("%+v, want at most 20 processes", res)
		}
	}
	if res := run(t, two, "x = b'x' * (64 << 20); print(len(x))", nil); !res.OK() {
		t.Errorf("the other sandbox: %+v, want status ok", res)
	}
	if c.Enforced { // each process is in the group of the sandbox that it is in
		for _, sb := range []*llmsandbox.Sandbox{one, two} {
			processes, err := out.Processes(t.Context(), sb.ID())
			if err != nil {
				t.Fatal(err)
			}
			interpreters := 0
			for _, p := range processes {
				groups, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cgroup")
				if err == nil && strings.Contains(p.Command, "python") && strings.Contains(string(groups), sb.ID()) {
					interpreters++
				}
			}
			if interpreters == 0 {
				t.Errorf("no interpreter is in the group of sandbox %s: %v", sb.ID(), processes)
			}
		}
	}
}

// TestZygoteFreshLayout: sandboxes of one zygote share a hash seed and addresses, but for programs that start anew.
func TestZygoteFreshLayout(t *testing.T) {
	z, _, _ := newZygote(t, llmsandbox.Options{Imports: []string{"colorsys"}})
	one, two := openFrom(t, z), openFrom(t, z)
	layout := func(sb *llmsandbox.Sandbox, fresh bool) []string {
		t.Helper()
		const code = `import sys; print('colorsys' in sys.modules, hash('a'), next(l.split("-")[0] for l in open("/proc/self/maps") if "libc" in l))`
		f := strings.Fields(run(t, sb, code, &llmsandbox.RunOptions{FreshLayout: fresh}).Stdout)
		if want := map[bool]string{false: "True", true: "False"}[fresh]; len(f) != 3 || f[0] != want {
			t.Fatalf("FreshLayout %v: %q, want %s, a hash and an address", fresh, f, want)
		}
		return f[1:]
	}
	forked := layout(one, false)
	if other := layout(two, false); !slices.Equal(other, forked) {
		t.Errorf("the layouts of forks are %q and %q, want the same", forked, other)
	}
	a, b := layout(one, true), layout(two, true)
	for i, what := range []string{"hash of a string", "address"} {
		if a[i] == b[i] || a[i] == forked[i] || b[i] == forked[i] {
			t.Errorf("the %s is %s in forks, %s and %s in new interpreters, want different ones", what, forked[i], a[i], b[i])
		}
	}
}

// TestZygoteIsReplaced when its interpreter or its whole sandbox ends.
func TestZygoteIsReplaced(t *testing.T) {
	z, b, out := newZygote(t, llmsandbox.Options{Imports: []string{"colorsys"}})
	const forked = "import sys; print('colorsys' in sys.modules)"
	check := func(sb *llmsandbox.Sandbox, when string) {
		t.Helper()
		if res := run(t, sb, forked, nil); res.Stdout != "True\n" {
			t.Errorf("%s: %+v, want Stdout = True", when, res)
		}
	}
	all, err := b.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v, want the zygote's sandbox", all, err)
	}
	// Nothing else runs in that.
	own, err := llmsandbox.Attach(t.Context(), all[0].ID, &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	if res, _ := own.Run(testContext(t), "print(1)", nil); res == nil || res.Status != llmsandbox.StatusSetupFailed || !strings.Contains(res.Reason, "runs nothing else") {
		t.Errorf("code in the sandbox of a zygote: %+v, want Status = setup_failed, and why", res)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}

	before := openFrom(t, z)
	check(before, "at first")
	processes, err := out.Processes(t.Context(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var interpreters []int // before any is killed, whose children then have another parent
	for _, p := range processes {
		// What it has forked has another parent, or is in another sandbox.
		parent := parentOf(p.PID)
		if strings.Contains(p.Command, "python") && strings.Contains(commandOf(parent), "--entrance-fd") && depthOf(p.PID) == depthOf(parent) {
			interpreters = append(interpreters, p.PID)
		}
	}
	if len(interpreters) != 1 {
		t.Fatalf("interpreters %v of %v, want 1", interpreters, processes)
	}
	if err := unix.Kill(interpreters[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	after := openFrom(t, z)
	check(after, "a new one")
	check(before, "one of before")
	if all, err := b.List(t.Context()); err != nil || len(all) != 4 {
		t.Errorf("%d sandboxes live, %v, want 4, as one lives that was forked from the first", len(all), err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	// With its sandbox end those that were forked from it.
	all, err = b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.ID == after.ID() || i.ID == before.ID() {
			continue
		}
		own, err := llmsandbox.Attach(t.Context(), i.ID, &llmsandbox.AttachOptions{Backend: b})
		if err == nil {
			err = own.Destroy(testContext(t))
		}
		if err != nil && !errors.Is(err, llmsandbox.ErrNotFound) { // it may have been closed, now that nothing needs it
			t.Fatal(err)
		}
	}
	if res, err := after.Run(testContext(t), "print(1)", nil); err == nil {
		t.Errorf("a sandbox whose zygote's sandbox has ended: %+v, want an error", res)
	}
	check(openFrom(t, z), "one after all have ended")
}

func parentOf(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// depthOf is how many pid namespaces a process is in.
func depthOf(pid int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, after, _ := strings.Cut(string(status), "NSpid:")
	pids, _, _ := strings.Cut(after, "\n")
	return len(strings.Fields(pids))
}

func commandOf(pid int) string {
	command, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.ReplaceAll(string(command), "\x00", " ")
}

// TestZygoteFromManySides opens and runs sandboxes at the same time.
func TestZygoteFromManySides(t *testing.T) {
	z, _, _ := newZygote(t, llmsandbox.Options{Imports: []string{"decimal"}})
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			sb, err := z.Open(testContext(t))
			if err != nil {
				t.Error(err)
				return
			}
			res, err := sb.Run(testContext(t), "print("+strconv.Itoa(i)+")", nil)
			if err != nil || res.Stdout != strconv.Itoa(i)+"\n" {
				t.Errorf("%+v, %v, want Stdout = %d", res, err, i)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestZygoteRefuses what it cannot have.
func TestZygoteRefuses(t *testing.T) {
	for name, o := range map[string]llmsandbox.Options{
		"a language that does not fork": {Language: "ruby"},
		"reset":                         {Resettable: true},
		"a root that can be written to": {WritableRoot: true},
		"a user":                        {User: "root"},
		"an id":                         {ID: "one"},
	} {
		if z, err := llmsandbox.NewZygote(testContext(t), &o); !errors.Is(err, llmsandbox.ErrUnsupported) {
			t.Errorf("%s: %v, %v, want ErrUnsupported", name, z, err)
		}
	}
	if z, err := llmsandbox.NewZygote(testContext(t), &llmsandbox.Options{Imports: []string{"nothing_of_this_name"}, BestEffort: true}); !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), "ModuleNotFoundError") {
		t.Errorf("a module that is not there: %v, %v, want ErrInvalid and the reason", z, err)
	}
	z, _, _ := newZygote(t, llmsandbox.Options{})
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if sb, err := z.Open(testContext(t)); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("a closed one: %v, %v, want ErrNotFound", sb, err)
	}
}

// TestZygoteInPool: the pool's sandboxes of one key are forked from one interpreter, and it goes with the pool.
func TestZygoteInPool(t *testing.T) {
	b := local.New(&local.Options{StateDir: filepath.Join(t.TempDir(), "state")})
	p, err := pool.New(&pool.Config{Options: llmsandbox.Options{Backend: b, Imports: []string{"decimal"}, BestEffort: true}, Zygote: true, Prepare: true, Min: 2, Max: 3})
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]bool{}
	for range 4 {
		res, err := p.Run(testContext(t), "import sys; print('decimal' in sys.modules, hash('x'))", nil)
		if err != nil || !strings.HasPrefix(res.Stdout, "True ") {
			t.Errorf("%+v, %v, want a module that is there", res, err)
		}
		hashes[res.Stdout] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d interpreters, want 1", len(hashes))
	}
	lease, err := p.Acquire(testContext(t), &pool.AcquireOptions{Key: pool.Key{Language: "ruby"}})
	if err != nil {
		t.Fatal(err)
	}
	if res := run(t, lease.Sandbox(), "puts 1", nil); res.Stdout != "1\n" {
		t.Errorf("%+v, want Stdout = 1", res)
	}
	lease.Release()
	if err := p.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	if left, err := b.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v, want none", left, err)
	}
}

// TestZygoteWithoutSubordinateIDs runs the tests above as a user who has one uid for all: the agent's and the code's.
func TestZygoteWithoutSubordinateIDs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the user of the other tests may have none: only root can become another one")
	}
	const nobody = 54321 // has no line in /etc/subuid
	home, err := os.MkdirTemp("", "zygote")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(home, "e2e.test")
	self, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.WriteFile(program, self, 0o755), os.Chown(home, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), program, "-test.run", "^TestZygote(Controls|SandboxesAreApart|Limits|IsReplaced)$")
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LLMSANDBOX_REQUIRE=" + os.Getenv("LLMSANDBOX_REQUIRE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestZygoteVolumes: sandboxes have the volumes of the options, each as its own user, and files stay in them.
func TestZygoteVolumes(t *testing.T) {
	ctx := testContext(t)
	b := local.New(&local.Options{StateDir: filepath.Join(t.TempDir(), "state")})
	if _, err := llmsandbox.CreateVolume(ctx, b, llmsandbox.Volume{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not all users can remove the files themselves
		if err := llmsandbox.RemoveVolume(testContext(t), b, "kept", true); err != nil {
			t.Error(err)
		}
	})
	z, err := llmsandbox.NewZygote(ctx, &llmsandbox.Options{Backend: b, BestEffort: true, Imports: []string{"decimal"}, Volumes: []llmsandbox.VolumeMount{{Name: "kept", Target: "/kept"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := z.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	one, two := openFrom(t, z), openFrom(t, z)
	for i, sb := range []*llmsandbox.Sandbox{one, two, one} {
		res := run(t, sb, `
import os, sys
with open("/kept/lines", "a") as f: f.write("line\n")
print("decimal" in sys.modules, os.stat("/kept/lines").st_uid == os.getuid(), len(open("/kept/lines").readlines()))
`, nil)
		if want := fmt.Sprintf("True True %d\n", i+1); res.Stdout != want {
			t.Errorf("stdout %q, want %q\nstderr: %s", res.Stdout, want, res.Stderr)
		}
	}
}
