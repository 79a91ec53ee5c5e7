# Attacks another sandbox and the caller: seed, seconds, number, the other's working directory, the caller's file, two of its processes, its uid.
import ctypes, errno, fcntl, mmap, os, random, resource, signal, socket, sys, threading, time
seed, seconds, me, theirs, canary, victims, uid = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5], [int(p) for p in sys.argv[6:8]], int(sys.argv[8])
rng = random.Random(seed)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
shared = os.getuid() == uid
x86 = os.uname().machine == "x86_64"
work = os.getcwd()
number = dict(ptrace=101, process_vm_readv=310, process_vm_writev=311, kcmp=312, keyctl=250, add_key=248, inotify_init1=294, fanotify_init=300, perf_event_open=298, bpf=321,
    userfaultfd=323, open_by_handle_at=304, name_to_handle_at=303, mount=165, chroot=161, shmget=29, semget=64, msgget=68, mq_open=240, execveat=322, memfd_create=319,
    personality=135, prctl=157, ioprio_set=251, migrate_pages=256, move_pages=279, setns=308, unshare=272, tgkill=234, rt_tgsigqueueinfo=297, acct=163, quotactl=179, syslog=103,
    get_robust_list=274, sched_setscheduler=144, sched_setaffinity=203, setpgid=109) if x86 else \
  dict(ptrace=117, process_vm_readv=270, process_vm_writev=271, kcmp=272, keyctl=219, add_key=217, inotify_init1=26, fanotify_init=262, perf_event_open=241, bpf=280,
    userfaultfd=282, open_by_handle_at=265, name_to_handle_at=264, mount=40, chroot=51, shmget=194, semget=190, msgget=186, mq_open=180, execveat=281, memfd_create=279,
    personality=92, prctl=167, ioprio_set=30, migrate_pages=238, move_pages=239, setns=268, unshare=97, tgkill=131, rt_tgsigqueueinfo=240, acct=89, quotactl=60, syslog=116,
    get_robust_list=100, sched_setscheduler=119, sched_setaffinity=122, setpgid=154)
number.update(io_uring_setup=425, fsopen=430, open_tree=428, mount_setattr=442, pidfd_getfd=438, process_madvise=440, process_mrelease=448, landlock_create_ruleset=444, fchmodat2=452, memfd_secret=447)

def call(name, *args):
    r = libc.syscall(ctypes.c_long(number[name]), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r

# What this one has to lose.
own = "canary-of-" + me
with open("secret", "w") as f: f.write(own)
os.chmod("secret", 0o600)
before = os.stat("secret")
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True: signal.pause()
held = bytearray(own.encode() * 100)
first = (os.getpriority(os.PRIO_PROCESS, child), os.sched_getaffinity(child), resource.prlimit(child, resource.RLIMIT_NOFILE))

def check():
    now = os.stat("secret")
    for what, good in (("contents", open("secret").read() == own), ("attributes", (now.st_mode, now.st_uid, now.st_mtime_ns, now.st_ctime_ns, now.st_nlink) == (before.st_mode, before.st_uid, before.st_mtime_ns, before.st_ctime_ns, before.st_nlink)),
            ("memory", held == own.encode() * 100), ("environment", os.environ["SECRET"] == own), ("child", os.waitpid(child, os.WNOHANG) == (0, 0)),
            ("scheduling", first == (os.getpriority(os.PRIO_PROCESS, child), os.sched_getaffinity(child), resource.prlimit(child, resource.RLIMIT_NOFILE)))):
        if not good: print("HURT", what, now, flush=True)

def pid():
    "a process of the caller's, or any that is not of this sandbox"
    while True:
        n = rng.choice(victims) if rng.random() < .3 else rng.randrange(1, 65536)
        if n not in (os.getpid(), child) and os.path.isdir("/proc/%d" % n) and n not in tasks(): return n
def group():
    "a process group's number: minus 1 is no group, but whatever may be reached, which this one's own child is"
    while True:
        n = pid()
        if n != 1: return n
def tasks():
    "threads of this process and of its child, by what only they may be asked"
    return {t.native_id for t in threading.enumerate()}
def path(): return rng.choice([canary, os.path.dirname(canary), theirs + "/secret", theirs, os.path.dirname(theirs), os.path.relpath(canary), os.path.relpath(theirs + "/secret")])
def of(p): return "/proc/%d/" % p + rng.choice(["mem", "environ", "cmdline", "maps", "fd", "fd/0", "cwd/secret", "root/etc/shadow", "status", "stat", "limits", "fdinfo", "task", "ns/user", "exe", "auxv", "oom_score_adj", "coredump_filter", "clear_refs"])
buf = ctypes.create_string_buffer(64)
iov = (ctypes.c_ulong * 2)(ctypes.addressof(buf), 64)

def through_link(f):
    name = "link%d" % rng.randrange(1000)
    os.symlink(path(), name)
    try: return f(name)
    finally: os.unlink(name)
def sigio():
    r, w = socket.socketpair()
    fcntl.fcntl(r, fcntl.F_SETOWN, pid()); fcntl.fcntl(r, 10, int(signal.SIGTERM)); fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)
    w.send(b"x")
    raise OSError(errno.EPERM, "sent to no one") # whoever gets it tells
def memfd():
    fd = call("memfd_create", b"x", 0)
    with open("/bin/true", "rb") as f: os.write(fd, f.read())
    p = os.fork()
    if p == 0:
        try: call("execveat", fd, b"", None, None, 0x1000)
        finally: os._exit(9)
    os.waitpid(p, 0); os.close(fd)
    raise OSError(errno.EPERM, "its own program")
def fifo():
    name = "fifo%d" % rng.randrange(1000)
    os.mkfifo(name); os.unlink(name)
    os.mkfifo(path() + ".fifo")
def swap():
    "what a path leads to changes while its attributes are changed"
    a, b = "swap-a", "swap-b"
    for name, to in ((a, "mine"), (b, rng.choice([canary, theirs + "/secret", theirs]))):
        try: os.unlink(name)
        except OSError: pass
        os.symlink(to, name)
    open("mine", "w").close()
    stop = []
    def turn():
        while not stop:
            try: os.rename(a, "swap-c"); os.rename(b, a); os.rename("swap-c", b)
            except OSError: pass
    t = threading.Thread(target=turn); t.start()
    for _ in range(200):
        for f in (lambda: os.chmod(a, 0o777), lambda: os.utime(a, (1, 1)), lambda: os.chown(a, os.getuid(), os.getgid())):
            try: f()
            except OSError: pass
    stop.append(1); t.join()
    raise OSError(errno.EPERM, "whoever owns it tells")
def answered():
    "whoever waits for the agent's answer ends, so that its number may be another's by then"
    for _ in range(50):
        p = os.fork()
        if p == 0:
            threading.Thread(target=lambda: [os.chmod(rng.choice(["secret-not", theirs]), 0o777) for _ in range(9)]).start()
            os._exit(0)
        os.waitpid(p, 0)
    raise OSError(errno.EPERM, "it has ended")
def tiocsti():
    m, s = os.openpty()
    try: fcntl.ioctl(s, 0x5412, b"x")
    finally: os.close(m); os.close(s)

attacks = {f.__name__: f for f in (sigio, memfd, fifo, swap, answered, tiocsti)}
def add(name, f): attacks[name] = f
for n in (0, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP):
    add("kill %d" % n, lambda n=n: os.kill(pid(), n)); add("pidfd %d" % n, lambda n=n: signal.pidfd_send_signal(os.pidfd_open(pid()), n)); add("tgkill %d" % n, lambda n=n: (lambda p: call("tgkill", p, p, n))(pid()))
    add("killpg %d" % n, lambda n=n: os.kill(-group(), n))
add("ptrace attach", lambda: call("ptrace", 16, pid(), 0, 0)); add("ptrace seize", lambda: call("ptrace", 0x4206, pid(), 0, 0))
for name in ("process_vm_readv", "process_vm_writev"): add(name, lambda name=name: call(name, pid(), iov, 1, iov, 1, 0))
add("pidfd_getfd", lambda: call("pidfd_getfd", os.pidfd_open(pid()), rng.randrange(8), 0)); add("process_madvise", lambda: call("process_madvise", os.pidfd_open(pid()), iov, 1, 21, 0))
add("process_mrelease", lambda: call("process_mrelease", os.pidfd_open(pid()), 0)); add("kcmp", lambda: call("kcmp", os.getpid(), pid(), 0, 0, 0)); add("move_pages", lambda: call("move_pages", pid(), 0, 0, 0, 0, 0))
add("migrate_pages", lambda: call("migrate_pages", pid(), 8, iov, iov)); add("setns", lambda: call("setns", os.pidfd_open(pid()), 0x20000)); add("setpgid", lambda: os.setpgid(pid(), 0))
add("prlimit", lambda: resource.prlimit(pid(), resource.RLIMIT_NOFILE, (8, 8))); add("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, pid(), 19)); add("ioprio", lambda: call("ioprio_set", 1, pid(), 3 << 13))
add("sched_setscheduler", lambda: os.sched_setscheduler(pid(), os.SCHED_IDLE, os.sched_param(0)))
if shared: # else these are its own
    add("set-id", lambda: os.chmod("mine", 0o6755))
    add("setpriority of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19)); add("ioprio of the user", lambda: call("ioprio_set", 3, os.getuid(), 3 << 13))
add("read proc", lambda: open(of(pid()), "rb").read(64)); add("write proc", lambda: open(of(pid()), "r+b").write(b"0")); add("list proc", lambda: os.listdir("/proc"))
add("read", lambda: open(path(), "rb").read(64)); add("write", lambda: open(path(), "ab")); add("truncate", lambda: os.truncate(path(), 0)); add("list", lambda: os.listdir(path())); add("remove", lambda: os.unlink(path()))
add("rmdir", lambda: os.rmdir(path())); add("rename", lambda: os.rename(path(), "taken")); add("rename over", lambda: os.rename("swap-a", path())); add("link", lambda: os.link(path(), "hard%d" % rng.randrange(1000)))
add("link to it", lambda: os.link("secret", theirs + "/hard")); add("make beside", lambda: open(path() + ".new", "x")); add("mkdir", lambda: os.mkdir(path() + "/d")); add("symlink", lambda: os.symlink("/", path() + "/l"))
add("chmod", lambda: os.chmod(path(), 0o777)); add("chown", lambda: os.chown(path(), os.getuid(), os.getgid())); add("utime", lambda: os.utime(path(), (1, 1))); add("setxattr", lambda: os.setxattr(path(), "user.x", b"1"))
add("chmod link", lambda: through_link(lambda l: os.chmod(l, 0o777))); add("utime link", lambda: through_link(lambda l: os.utime(l, (1, 1)))); add("open link", lambda: through_link(lambda l: open(l, "rb").read(9)))
add("chmod of a descriptor", lambda: os.chmod(os.open(path(), os.O_PATH), 0o777)); add("fchmodat2", lambda: call("fchmodat2", os.open(path(), os.O_PATH), b"", 0o777, 0x1000))
add("lease", lambda: fcntl.fcntl(os.open("/bin/true", os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)); add("notice", lambda: fcntl.fcntl(os.open(work, os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE))
for name in ("inotify_init1", "userfaultfd"): add(name, lambda name=name: call(name, 0))
add("fanotify_init", lambda: call("fanotify_init", 0, 0)); add("io_uring_setup", lambda: call("io_uring_setup", 8, buf)); add("perf_event_open", lambda: call("perf_event_open", buf, pid(), -1, -1, 0)); add("bpf", lambda: call("bpf", 0, buf, 64))
add("keyctl", lambda: call("keyctl", 0, -3, 1)); add("add_key", lambda: call("add_key", b"user", b"x", b"y", 1, -4)); add("shmget", lambda: call("shmget", 4711, 4096, 0o1666)); add("semget", lambda: call("semget", 4711, 1, 0o1666))
add("msgget", lambda: call("msgget", 4711, 0o1666)); add("mq_open", lambda: call("mq_open", b"x", 0o102, 0o666, 0)); add("dev shm", lambda: open("/dev/shm/x", "w")); add("name_to_handle_at", lambda: call("open_by_handle_at", os.open(work, os.O_RDONLY), buf, 0))
add("mount", lambda: call("mount", b"none", b".", b"tmpfs", 0, 0)); add("fsopen", lambda: call("fsopen", b"tmpfs", 0)); add("open_tree", lambda: call("open_tree", -100, theirs.encode(), 1)); add("mount_setattr", lambda: call("mount_setattr", -100, b"/", 0, buf, 32))
add("chroot", lambda: call("chroot", theirs.encode())); add("unshare", lambda: call("unshare", rng.choice([0x10000000, 0x20000, 0x40000000, 0x20000000]))); add("setuid", lambda: os.setuid(0 if os.getuid() else 1)); add("setresuid", lambda: os.setresuid(-1, 0, -1) if os.getuid() else os.setuid(1))
add("setgroups", lambda: os.setgroups([0])); add("PR_SET_MM", lambda: call("prctl", 35, 1, 4096, 0, 0)); add("personality", lambda: call("personality", 0x40000)); add("the mark", lambda: resource.prlimit(0, 10, (1, 1)))
add("acct", lambda: call("acct", 0)); add("syslog", lambda: call("syslog", 3, buf, 64)); add("memfd_secret", lambda: call("memfd_secret", 0))
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, 17, 38, 40): add("socket %d" % family, lambda f=family: socket.socket(f, rng.choice([1, 2, 3])))

counts, end = dict.fromkeys(attacks, 0), time.monotonic() + seconds
while time.monotonic() < end:
    name = rng.choice(list(attacks))
    counts[name] += 1
    try: r = attacks[name]()
    except (OSError, ValueError): pass
    else: print("REACHED", name, repr(r)[:100], flush=True)
    for fd in range(3, 40):
        try: os.close(fd)
        except OSError: pass
    if sum(counts.values()) % 20 == 0: check()
check()
print(sum(counts.values()), "attacks, each", min(counts.values()), "to", max(counts.values()), "times")
os.kill(child, signal.SIGKILL)
print("end")
