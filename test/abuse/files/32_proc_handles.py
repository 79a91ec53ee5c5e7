def agents():
    """Pid 1 and whatever else belongs to the sandbox rather than to its code."""
    for name in pids():
        if int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/comm") as f:
                    ours = "llmsandbox" not in f.read() and os.stat(f"/proc/{name}").st_uid == os.getuid()
            except PermissionError:
                ours = False # it cannot be told
            except OSError:
                continue
            if name == "1" or not ours:
                yield name

for pid in agents():
    p = f"/proc/{pid}/"
    attempt(p + "exe link", lambda: os.readlink(p + "exe"))
    attempt(p + "exe read", lambda: open_for(p + "exe", os.O_RDONLY))
    attempt(p + "exe write", lambda: open_for(p + "exe", os.O_WRONLY))
    attempt(p + "fd", lambda: os.listdir(p + "fd"))
    attempt(p + "root", lambda: os.listdir(p + "root/"))
    attempt(p + "cwd", lambda: os.listdir(p + "cwd/"))
    attempt(p + "environ", lambda: open(p + "environ").read())
    attempt(p + "maps", lambda: open(p + "maps").read())
    attempt(p + "mem read", lambda: open_for(p + "mem", os.O_RDONLY))
    attempt(p + "mem write", lambda: open_for(p + "mem", os.O_RDWR))
    attempt(p + "ns/mnt", lambda: open_for(p + "ns/mnt", os.O_RDONLY))
    attempt(p + "oom_score_adj", lambda: open_for(p + "oom_score_adj", os.O_WRONLY))

try:
    fds = os.listdir("/proc/self/fd")
except PermissionError:
    fds = map(str, range(1 << 16))
for fd in fds:
    if int(fd) > 2:
        try:
            target = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if not target.startswith(("/sandbox/", "/tmp/")):
            say("inherited descriptor " + fd + " " + target, "ok")
holds("working folder is inside", os.getcwd().startswith("/"))
attempt("shadow above the working folder", lambda: open("../" * 40 + "etc/shadow").read())
say("end", "end")
