"""Tries what code could do to the agent, which is process 1 and has the same uid, and
prints what succeeds. With "control" it does the same to a process of its own, so that
it shows that what it tries can succeed."""
import ctypes, errno, os, platform, signal, socket, sys, time

token, address, target = sys.argv[1].encode(), sys.argv[2], sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
NR = {"pidfd_open": 434, "pidfd_getfd": 438, "process_vm_readv": 270 if ARM else 310,
      "process_vm_writev": 271 if ARM else 311, "kcmp": 272 if ARM else 312, "ptrace": 117 if ARM else 101,
      "rt_sigqueueinfo": 138 if ARM else 129}
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206


class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def call(name, *args):
    return libc.syscall(NR[name], *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])


here = ctypes.create_string_buffer(8)  # a child has it at the same address


def vm(name, pid):
    a, b = Vec(ctypes.addressof(here), 8), Vec(ctypes.addressof(here), 8)
    # A wrong address means that it was allowed to try.
    return call(name, pid, ctypes.byref(a), 1, ctypes.byref(b), 1, 0) >= 0 or ctypes.get_errno() == errno.EFAULT


def can(what, f):
    try:
        if f():
            print(what)
    except (OSError, ValueError):
        pass


def opens(path, mode="rb"):
    with open(path, mode) as f:
        return f is not None


def fds(pid):
    fd = call("pidfd_open", pid, 0)
    return fd >= 0 and any(call("pidfd_getfd", fd, n, 0) >= 0 for n in range(64))


def attack(pid, name):
    base = "/proc/%d/" % pid
    for f in ("environ", "mem", "maps", "auxv", "pagemap", "stack", "syscall"):
        can(name + " " + f, lambda: opens(base + f))
    for f in ("fd", "fdinfo", "map_files"):
        can(name + " " + f, lambda: os.listdir(base + f) is not None)
    for f in ("exe", "cwd", "root", "ns/mnt", "fd/0", "fd/4", "fd/5"):
        can(name + " " + f, lambda: os.readlink(base + f))
    for t in os.listdir(base + "task"):
        can(name + " task mem", lambda: opens(base + "task/" + t + "/mem"))
    can(name + " write", lambda: opens(base + "mem", "r+b"))
    can(name + " oom_score_adj", lambda: open(base + "oom_score_adj", "w").write("1000"))
    can(name + " process_vm_readv", lambda: vm("process_vm_readv", pid))
    can(name + " process_vm_writev", lambda: vm("process_vm_writev", pid))
    can(name + " kcmp", lambda: call("kcmp", os.getpid(), pid, 0, 0, 0) >= 0)
    can(name + " pidfd_getfd", lambda: fds(pid))
    can(name + " ptrace", lambda: call("ptrace", PTRACE_ATTACH, pid, 0, 0) >= 0)
    can(name + " seize", lambda: call("ptrace", PTRACE_SEIZE, pid, 0, 0) >= 0)


if target == "control":
    child = os.fork()
    if child == 0:
        time.sleep(600)
    attack(child, "child")
    os.kill(child, signal.SIGKILL)
    sys.exit()

attack(1, "agent")
attack(os.getppid(), "subreaper")
# The token is nowhere to be seen.
can("own environment", lambda: token in b"\0".join(k + b"=" + v for k, v in os.environb.items()))
for pid in filter(str.isdigit, os.listdir("/proc")):
    for f in ("environ", "cmdline"):
        can("token in " + f, lambda: int(pid) != os.getpid() and token in open("/proc/%s/%s" % (pid, f), "rb").read())


# The socket is of no use without it, and cannot be taken.
def talks(said):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect("\0" + address)
        s.sendall(said)
        return bool(s.recv(1))


can("connect with a wrong token", lambda: talks(b"x" * len(token)))
can("bind", lambda: socket.socket(socket.AF_UNIX).bind("\0" + address) is None)
# Silent connections do not keep others out for ever, nor use up descriptors.
silent = []
for _ in range(200):
    try:
        s = socket.socket(socket.AF_UNIX)
        s.connect("\0" + address)
        silent.append(s)
    except OSError:
        break
for n in range(1, 65):
    can("signal", lambda: os.kill(1, n))
    # As if it had another origin than kill(2).
    info = (ctypes.c_int * 32)(n, 0, -1)
    libc.syscall(NR["rt_sigqueueinfo"], 1, n, info)
print("done")
