package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// inPlace is the suite's view of the isolation process.
func inPlace(dir string) backendtest.Config {
	const (
		noMounts  = "the isolation process mounts nothing"
		noServers = "code may not listen: the loopback is not its own"
		noProc    = "code can read no /proc but what is about its own process, and about the machine"
		noTemp    = "the directories of the sandbox are elsewhere, and not the same in two of them"
	)
	without := map[string]string{
		"ImportsAhead":            noProc,
		"AheadOfLanguages":        noProc,
		"InterpreterAhead":        noProc,
		"FreshLayout":             noProc,
		"ForkedPrograms":          noTemp,
		"ForkedEnds":              noProc,
		"Abuse24HostileLibraries": "it looks for libraries where they are mounted",
		"MountReadOnly":           noMounts,
		"MountCopyOnWrite":        noMounts,
		"Abuse10to31Artifacts":    "a sparse file is no larger than the disk limit",
		"Abuse10to12CopyOut":      "a sparse file is no larger than the disk limit either",
	}
	for _, name := range []string{"KernelLosesItsStream", "Acceptance18BackgroundChild", "Abuse84WriteToAnotherRun"} {
		without[name] = noProc
	}
	for _, name := range []string{"CloseLeavesNothing", "ArtifactsOfAttachedRuns"} {
		without[name] = noTemp
	}
	for _, name := range []string{"ProgramGo", "ProgramNode", "ProgramRuby"} {
		without[name] = noServers
	}
	if os.Geteuid() != 0 {
		without["Acceptance42Modes"] = "code that shares the caller's uid can set no set-user-ID bits"
	}
	return backendtest.Config{
		Backend: local.New(&local.Options{StateDir: filepath.Join(dir, "state"), Isolation: "process"}),
		Without: without,
		Lacks: map[backendtest.Feature]string{
			backendtest.SeenFromOutside: "its processes are in no namespace or group of their own",
			backendtest.OtherProcesses:  "another process of the tests opens no sandboxes of this isolation",
			backendtest.NoHostPaths:     "code has the host's paths", backendtest.OnlyLoopback: "code may make no sockets that could ask", backendtest.IPv6Loopback: noServers,
			backendtest.Servers: noServers, backendtest.SharedMemory: "/dev/shm is not its own",
			backendtest.Mounts: noMounts, backendtest.Volumes: noMounts, backendtest.CopyOnWriteMounts: noMounts, backendtest.UsersApart: "there are no users inside",
		},
	}
}

// TestProcessConformance: what holds of the suite without namespaces.
func TestProcessConformance(t *testing.T) { backendtest.Run(t, inPlace(t.TempDir())) }

// openInPlace opens a sandbox of the isolation process.
func openInPlace(t testing.TB, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	o.Backend = local.New(&local.Options{StateDir: filepath.Join(t.TempDir(), "state"), Isolation: "process"})
	return open(t, o)
}

// TestInPlaceReaches: code without namespaces reaches neither the caller's files and processes nor another sandbox's.
func TestInPlaceReaches(t *testing.T) {
	own := t.TempDir()
	canary := filepath.Join(own, "canary")
	if err := os.WriteFile(canary, []byte("caller-canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(canary)
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if sleeper.ProcessState == nil {
			_ = sleeper.Process.Kill()
			_ = sleeper.Wait()
		}
	}()
	victim := openInPlace(t, llmsandbox.Options{Env: map[string]string{"SECRET": "victim-canary"}})
	if err := victim.WriteFile(testContext(t), "secret", []byte("victim-canary")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan *llmsandbox.Result, 1)
	in, end := io.Pipe()
	out, says := io.Pipe()
	go func() {
		res, _ := victim.Run(testContext(t), "import sys; print('up', flush=True); sys.stdin.read(); print('unharmed')", &llmsandbox.RunOptions{Stdin: in, Stdout: says})
		says.Close()
		ended <- res
	}()
	if line, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the victim says %q, %v, want up", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	sb := openInPlace(t, llmsandbox.Options{})
	res := run(t, sb, inPlaceAttack, &llmsandbox.RunOptions{Args: []string{canary, filepath.Join(victim.Workdir(), "secret"), strconv.Itoa(sleeper.Process.Pid), strconv.Itoa(os.Getuid())}})
	wantExit(t, res, 0)
	if !strings.HasSuffix(res.Stdout, "end\n") || strings.Contains(res.Stdout, "REACHED") || strings.Contains(res.Stdout, "victim-canary") || strings.Contains(res.Stdout, "caller-canary") {
		t.Errorf("want an end, and nothing reached:\n%s", res.Stdout)
	}
	if err := sleeper.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the caller's process: %v, want that it lives", err)
	}
	after, err := os.Stat(canary)
	if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the caller's file: %v, %v, want it as it was", after, err)
	}
	end.Close()
	if res := <-ended; res == nil || !strings.HasSuffix(res.Stdout, "unharmed\n") {
		t.Errorf("the victim's run: %+v, want that it went on to its end", res)
	}
}

// inPlaceAttack gets the path of a file of the caller, of one of another sandbox, the pid of a process of the caller's, and the caller's uid.
const inPlaceAttack = `
import ctypes, errno, mmap, os, signal, socket, sys
canary, secret, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    r = libc.syscall(number, *args)
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r
def attempt(what, f):
    try:
        r = f()
    except OSError as e:
        print(what, errno.errorcode.get(e.errno, str(e)), flush=True)
    else:
        print(what, "REACHED", r, flush=True)
for path in (canary, secret, "/etc/passwd", "/etc/shadow", "/proc/1/environ", "/proc/%d/environ" % pid, "/proc/%d/mem" % pid, "/proc/%d/cmdline" % os.getppid(), "/dev/mem", "/dev/kmsg"):
    attempt("read " + path, lambda: open(path, "rb").read(64))
for path in (canary, secret):
    attempt("write " + path, lambda: open(path, "ab"))
    attempt("truncate " + path, lambda: os.truncate(path, 0))
    attempt("remove " + path, lambda: os.unlink(path))
    attempt("rename " + path, lambda: os.rename(path, "taken"))
    attempt("link " + path, lambda: os.link(path, "linked"))
    attempt("chmod " + path, lambda: os.chmod(path, 0o777))
    attempt("chown " + path, lambda: os.chown(path, os.getuid(), os.getgid()))
    attempt("utime " + path, lambda: os.utime(path, (1, 1)))
    attempt("setxattr " + path, lambda: os.setxattr(path, "user.x", b"1"))
    os.symlink(path, "to"); attempt("chmod through a link to " + path, lambda: os.chmod("to", 0o777)); os.unlink("to")
    attempt("list around " + path, lambda: os.listdir(os.path.dirname(path)))
    attempt("write beside " + path, lambda: open(path + ".new", "w"))
for path in ("/tmp/x", "/var/tmp/x", "/dev/shm/x", "/run/x", os.path.expanduser("~root/x"), "/usr/local/x"):
    attempt("make " + path, lambda: open(path, "x"))
for directory in ("/proc", "/dev", "/dev/pts", "/root", "/home", "/tmp", "/etc", "/run", "/sys/class/net"):
    attempt("list " + directory, lambda: os.listdir(directory))
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 40):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt("socket %d %d" % (family, kind), lambda: socket.socket(family, kind))
attempt("dgram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
for n in range(1, 1 << 16): # threads have such numbers, too, the agent's among them
    if n == os.getpid():
        continue
    try:
        os.kill(n, 0)
    except OSError:
        continue
    print("signal", n, "REACHED")
try:
    os.kill(-1, signal.SIGKILL) # whoever is there of its own sandbox
except OSError:
    pass
attempt("signal the caller's process", lambda: os.kill(pid, signal.SIGKILL))
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
x86 = os.uname().machine == "x86_64"
buf = ctypes.create_string_buffer(16)
attempt("ptrace", lambda: call(101 if x86 else 117, 16, pid, 0, 0))
attempt("process_vm_readv", lambda: call(310 if x86 else 270, pid, 0, 0, 0, 0, 0))
attempt("pidfd_getfd", lambda: call(438, os.pidfd_open(pid), 0, 0))
attempt("shmget", lambda: call(29 if x86 else 194, 4711, 4096, 0o1666))
attempt("semget", lambda: call(64 if x86 else 190, 4711, 1, 0o1666))
attempt("msgget", lambda: call(68 if x86 else 186, 4711, 0o1666))
attempt("mq_open", lambda: call(240 if x86 else 180, b"x", 0o102, 0o666, 0))
attempt("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
if os.getuid() == int(sys.argv[4]): # else it is its own
    attempt("setpriority of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
import resource
attempt("prlimit", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
attempt("the mark", lambda: call(160 if x86 else 164, 10, (ctypes.c_ulong * 2)(1, 1)))
attempt("namespaces", lambda: call(272 if x86 else 97, 0x10000000))
attempt("setuid", lambda: os.setuid(0))
attempt("chroot", lambda: os.chroot("."))
attempt("device", lambda: os.mknod("device", 0o20666, os.makedev(1, 1)))
print("end")
`
