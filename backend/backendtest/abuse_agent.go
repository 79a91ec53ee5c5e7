package backendtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) abuse84ReachTheAgent(t *testing.T) {
	s.plantCanaries(t)
	sb := s.open(t, llmsandbox.Options{})
	t.Run("84 descriptors and sockets", func(t *testing.T) {
		wantNothingReached(t, run(t, sb, attempts+`
import socket, stat
for fd in range(3, 1024):
    attempt("inherited descriptor %d" % fd, lambda: os.fstat(fd))
# The agent's own listener may be seen where the network namespace is that of the whole
# sandbox, but it does not speak to the code.
def speaks(name):
    with socket.socket(socket.AF_UNIX) as c:
        c.settimeout(2)
        c.connect(name)
        said = c.recv(1)
        if not said: raise OSError(errno.ECONNRESET, "")
        return said
for table in ("unix", "tcp", "tcp6", "udp", "packet"):
    try:
        for line in open("/proc/net/" + table).readlines()[1:]:
            name = line.split()[-1]
            if table == "unix" and name.startswith("@"):
                attempt("speak to " + name, lambda: speaks("\0" + name[1:]))
            elif table != "unix" or name.startswith("/"):
                print("socket of somebody REACHED", table, line)
    except OSError:
        pass
for root, dirs, names in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(root, d) not in ("/usr", "/sys") and not (root == "/proc" and d.isdigit())]
    for name in names:
        path = os.path.join(root, name)
        try:
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                continue
        except OSError:
            continue
        attempt("connect to " + path, lambda: socket.socket(socket.AF_UNIX).connect(path))
for name in ("llmsandbox", "agent.sock", "/agent.sock", "llmsandbox-agent"):
    attempt("abstract " + name, lambda: socket.socket(socket.AF_UNIX).connect("\0" + name))
print("end")`, nil))
	})
	t.Run("84 agent's own files", func(t *testing.T) {
		// Of one's own uid, a process can be made slower, which slows only the runs of its own sandbox.
		separate := fmt.Sprintf("separate = %s\n", python(control(sb, "separate-uid").Enforced))
		// Of an agent that the kernel does not protect the numbers of its descriptors and
		// namespaces are reported, and no more than that.
		_, alike := s.Lacks[UsersApart]
		numbers := fmt.Sprintf("numbers = %s\n", python(control(sb, "agent").Enforced && !alike))
		settings := []string{"comm", "timerslack_ns", "uid_map", "loginuid"}
		if !alike {
			settings = append(settings, "oom_score_adj", "clear_refs")
		}
		wantNothingReached(t, run(t, sb, attempts+separate+numbers+fmt.Sprintf("settings = %q.split()\n", strings.Join(settings, " "))+`
import resource
for pid in (1, os.getppid()):
    p = "/proc/%d/" % pid
    for name in ("environ", "maps", "mem", "stack", "syscall", "auxv", "io", "pagemap"):
        attempt(p + name, lambda: open(p + name, "rb").read(64))
    for name in ("map_files", "root/", "cwd/") + (("fd", "fdinfo", "task/%d/fd" % pid) if numbers else ()):
        attempt(p + name, lambda: os.listdir(p + name))
    for name in ("exe", "root", "cwd", "fd/0", "fd/3", "fd/4") + (("ns/mnt", "ns/pid") if numbers else ()):
        attempt(p + name, lambda: os.readlink(p + name))
    for name in settings:
        attempt(p + "write " + name, lambda: os.write(os.open(p + name, os.O_WRONLY), b"1"))
    for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE): # over the first one the kernel itself kills, pid 1 too
        attempt(p + "limit %d" % limit, lambda: resource.prlimit(pid, limit, (0, 0)))
    if separate:
        attempt(p + "priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
        attempt(p + "affinity", lambda: os.sched_setaffinity(pid, {0}))
print("end")`, nil))
	})
	t.Run("84 every signal to pid 1", func(t *testing.T) {
		needs(t, sb, "agent") // abuse84EndTheAgent is what becomes of it without
		res := run(t, sb, `
import os
for again in range(20): # whether one gets through may depend on what pid 1 does just then
    for n in range(1, 65):
        try: os.kill(1, n)
        except OSError: pass
print("end")`, nil)
		wantExit(t, res, 0)
		wantStdout(t, res, "end\n")
	})
	answers(t, sb)
}

// A run's subreaper is the parent of its program. Where it has the code's own uid,
// the program can end it and loses nothing but its own outcome.
func (s *suite) abuse84EndTheSubreaper(t *testing.T) {
	s.has(t, FreshInterpreters)
	sb := s.open(t, llmsandbox.Options{})
	allowed := []llmsandbox.Status{llmsandbox.StatusOK}
	if !control(sb, "separate-uid").Enforced {
		allowed = append(allowed, llmsandbox.StatusLost, llmsandbox.StatusTimeout)
	}
	for _, signal := range []string{"SIGKILL", "SIGSTOP", "SIGSEGV", "SIGTERM"} {
		t.Run("84 "+signal, func(t *testing.T) {
			start := time.Now()
			res, _ := sb.Run(testContext(t), attempts+`
import signal, time
attempt("kill", lambda: os.kill(os.getppid(), signal.`+signal+`))
time.sleep(0.5)`, &llmsandbox.RunOptions{Timeout: 3 * time.Second})
			if !slices.Contains(allowed, res.Status) {
				t.Errorf("status %s, error %q, want one of %v", res.Status, res.Reason, allowed)
			}
			if res.Status == llmsandbox.StatusLost && res.ExitCode != -1 {
				t.Errorf("a lost run has exit code %d, want Status != StatusLost or ExitCode = -1", res.ExitCode)
			}
			if d := time.Since(start); d > hang {
				t.Errorf("took %v, want at most %v", d, hang)
			}
			answers(t, sb)
			for _, p := range processes(t, sb) {
				if strings.Contains(p, "python") {
					t.Errorf("left over: %s, want it not to contain \"python\"", p)
				}
			}
		})
	}
}
