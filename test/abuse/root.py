import ctypes, os, signal, socket, stat, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def attack(what, do):
    try:
        do()
    except (OSError, ValueError):
        return
    print("reached:", what)
def call(number, *args):
    def do():
        if libc.syscall(number, *args) < 0:
            raise OSError(ctypes.get_errno(), "")
    return do
def write(path, text):
    def do():
        fd = os.open(path, os.O_WRONLY)
        try: os.write(fd, text.encode())
        finally: os.close(fd)
    return do
def look(path):
    if path.split("/")[3] in ("root", "cwd", "exe"):
        return os.stat(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if path.split("/")[3] in ("io", "stack", "syscall"): os.read(fd, 1) # the kernel asks only now
    finally: os.close(fd)
os.chdir("/sandbox")
for kind, name in ((stat.S_IFBLK, "block"), (stat.S_IFCHR, "char")):
    for device in ((8, 0), (1, 1), (10, 229), (0, 0)):
        attack(name + " device %d:%d" % device, lambda: os.mknod("dev", kind | 0o600, os.makedev(*device)))
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET6, socket.SOCK_RAW, 58), (17, socket.SOCK_RAW, 0x300), (16, socket.SOCK_RAW, 9), (16, socket.SOCK_RAW, 12)):
    attack("socket %d %d" % (family, protocol), lambda: socket.socket(family, kind, protocol))
attack("ptrace of the agent", call(101, 16, 1, 0, 0))
attack("process_vm_readv of the agent", call(310, 1, 0, 0, 0, 0, 0))
attack("pidfd_getfd of the agent", lambda: call(438, os.pidfd_open(1), 0, 0)())
for sig in (signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT, signal.SIGSEGV, signal.SIGSTOP, signal.SIGHUP, 0):
    attack("signal %d to the agent" % sig, lambda: os.kill(1, sig))
for name in ("mem", "environ", "maps", "root", "cwd", "exe", "fd/0", "fd/3", "ns/user", "ns/mnt", "ns/net", "io", "stack", "auxv", "syscall"):
    attack("/proc/1/" + name, lambda: look("/proc/1/" + name))
for name, text in (("oom_score_adj", "1000"), ("coredump_filter", "1"), ("timerslack_ns", "1"), ("clear_refs", "1"), ("comm", "x"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1"), ("setgroups", "deny"), ("sched", "0")):
    attack("write to /proc/1/" + name, write("/proc/1/" + name, text))
# The subreapers and what else of the agent's there is have its user, which no file of the sandbox can have.
for pid in os.listdir("/proc"):
    if pid.isdigit() and pid != "1" and os.stat("/proc/" + pid).st_uid == 65534:
        for sig in (signal.SIGKILL, signal.SIGSTOP):
            attack("signal %d to a process of the agent's" % sig, lambda: os.kill(int(pid), sig))
for path, text in (("/proc/sysrq-trigger", "h"), ("/proc/sys/kernel/core_pattern", "|/x"), ("/proc/sys/kernel/modprobe", "/x"), ("/proc/sys/kernel/hostname", "x"), ("/proc/sys/kernel/randomize_va_space", "0"),
        ("/proc/sys/vm/overcommit_memory", "1"), ("/proc/sys/net/ipv4/ip_forward", "1"), ("/proc/sys/net/ipv4/ping_group_range", "0 1"), ("/proc/sys/user/max_user_namespaces", "1"), ("/proc/sys/fs/mqueue/msg_max", "9"),
        ("/proc/self/uid_map", "0 0 1"), ("/proc/self/oom_score_adj", "-1000")):
    attack("write to " + path, write(path, text))
for where, _, names in os.walk("/sys"):
    for name in names: attack("open %s/%s to write" % (where, name), lambda: os.close(os.open(where + "/" + name, os.O_WRONLY)))
# What only root of the machine may read of it.
def some(path):
    with open(path, "rb", 0) as f:
        if not f.read(64): raise ValueError(path)
for name in ("kcore", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "pagetypeinfo", "slabinfo", "vmallocinfo", "timer_list", "sched_debug"):
    attack("/proc/" + name, lambda: some("/proc/" + name))
for name, flag in (("mount", 0x20000), ("user", 0x10000000), ("pid", 0x20000000), ("net", 0x40000000), ("ipc", 0x8000000), ("uts", 0x4000000), ("cgroup", 0x2000000), ("time", 0x80)):
    attack("a %s namespace" % name, call(272, flag))
    attack("setns %s" % name, lambda: call(308, os.open("/proc/self/ns/" + ("mnt" if name == "mount" else name), os.O_RDONLY), 0)())
attack("mount", call(165, b"none", b"/tmp", b"tmpfs", 0, 0))
attack("a bind mount", call(165, b"/", b"/tmp", 0, 4096, 0))
attack("remount", call(165, 0, b"/", 0, 32, 0))
attack("umount", call(166, b"/proc", 2))
attack("pivot_root", call(155, b"/tmp", b"/tmp"))
attack("open_tree", call(428, -100, b"/", 1))
attack("fsopen", call(430, b"proc", 0))
# The classic way out: chroot below a directory that stays open.
attack("chroot", lambda: os.chroot("/tmp"))
attack("chroot of a folder", lambda: (os.makedirs("/tmp/c", exist_ok=True), os.chroot("/tmp/c")))
for name, number in (("bpf", 321), ("init_module", 175), ("finit_module", 313), ("kexec_load", 246), ("reboot", 169), ("swapon", 167), ("settimeofday", 164), ("sethostname", 170), ("iopl", 172),
        ("io_uring_setup", 425), ("keyctl", 250), ("perf_event_open", 298), ("userfaultfd", 323), ("open_by_handle_at", 304), ("acct", 163), ("quotactl", 179), ("syslog", 103), ("fanotify_init", 300)):
    attack(name, call(number, 3, 0, 0, 0, 0, 0))
attack("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
import resource
attack("a higher limit", lambda: resource.setrlimit(resource.RLIMIT_CORE, (2, 2)))
# Capabilities that it has not: in the sets, in a file, by a program of root's with its bit.
header, data = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *(0xffffffff, 0xffffffff, 0) * 2)
attack("capset", call(126, header, data))
attack("ambient capability", call(157, 47, 2, 21, 0, 0))
open("/sandbox/f", "w").close()
attack("a file of a user outside", lambda: os.chown("/sandbox/f", 1 << 20, 0))
open("/sandbox/id", "wb").write(open("/usr/bin/id", "rb").read())
os.chmod("/sandbox/id", 0o6755)
as_user = lambda *argv: subprocess.run(argv, user=1234, group=1234, extra_groups=[], capture_output=True, text=True).stdout
os.chmod("/sandbox", 0o755)
if as_user("/sandbox/id", "-u") != "1234\n": print("reached: a program with root's set-user-ID bit")
open("/sandbox/cat", "wb").write(open("/usr/bin/cat", "rb").read())
os.chmod("/sandbox/cat", 0o755)
caps = struct.pack("<5I", 0x02000001, 0xffffffff, 0, 0xffffffff, 0)
try: os.setxattr("/sandbox/cat", "security.capability", caps)
except OSError: pass
# What may become root has two of them, which its programs have as well, and no more.
effective = lambda status: int(status.split("CapEff:\t")[1].split()[0], 16)
own = 0 if os.getuid() == 0 else effective(open("/proc/self/status").read())
try:
    if effective(as_user("/sandbox/cat", "/proc/self/status")) != own: print("reached: a program with capabilities")
except PermissionError: pass # where the kernel heeds them, it starts no program that wants more than there is
for name in ("trusted.overlay.opaque", "security.other"):
    attack("attribute " + name, lambda: os.setxattr("/usr/bin", name, b"y"))
try: os.setxattr("/usr", "user.overlay.opaque", b"y") # the kernel stores it under another name
except OSError: pass
if not os.path.exists("/usr/bin/env"): print("reached: what overlays keep for themselves")
# The disk has one limit, whoever its files belong to.
full = 0
for owner in (0, 1, 2, 65535):
    try:
        with open("/sandbox/big%d" % owner, "wb") as f:
            os.chown(f.fileno(), owner, owner)
            for _ in range(40): full += f.write(bytes(1 << 20)); f.flush()
    except OSError: pass
if full > 32 << 20: print("reached: %d bytes of disk" % full)
print("end")
