def content(path):
    """Masked files may be opened and are empty."""
    with open(path, "rb") as f:
        if not f.read(64).strip(b"\0"):
            raise OSError(errno.EACCES, "empty")

for path in "/proc/kcore /dev/mem /dev/kmem /dev/port /dev/kmsg /proc/kmsg /proc/keys /proc/timer_list /proc/sched_debug /proc/vmallocinfo /proc/kpagecount".split():
    attempt(path, lambda: content(path))
attempt("/proc/1/mem", lambda: content("/proc/1/mem"))
attempt("/proc/1/auxv", lambda: content("/proc/1/auxv"))

def symbols():
    with open("/proc/kallsyms") as f:
        if not int(f.readline().split()[0] or "0", 16):
            raise OSError(errno.EACCES, "zero")

try:
    attempt("addresses in kallsyms", symbols)
except (IndexError, ValueError):
    say("addresses in kallsyms", "ENOENT")
say("end", "end")
