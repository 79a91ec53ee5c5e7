for path in """
    /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/kernel/modprobe /proc/sys/kernel/randomize_va_space
    /proc/sys/vm/drop_caches /proc/sys/vm/overcommit_memory /proc/sys/fs/binfmt_misc/register /proc/sys/fs/suid_dumpable
    /proc/sys/kernel/panic /proc/sys/kernel/ns_last_pid /proc/sys/user/max_user_namespaces /proc/sys/net/ipv4/ip_forward
    /proc/sysrq-trigger /proc/irq/default_smp_affinity /proc/acpi/wakeup /proc/scsi/scsi /proc/mtrr
    /sys/kernel/uevent_helper /sys/power/state /sys/kernel/debug /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory/release_agent
    /sys/fs/cgroup/release_agent /sys/module/kernel/parameters/panic""".split():
    try:
        if os.stat(path).st_rdev == os.makedev(1, 3):
            say(path, "EACCES")  # masked by /dev/null, which takes what is written and does nothing
            continue
    except OSError:
        pass
    attempt(path, lambda: os.mkdir(path + "/made") if os.path.isdir(path) else open_for(path, os.O_WRONLY))

def write(path, text):
    with open(path, "w") as f:
        f.write(text)

attempt("lower oom_score_adj", lambda: write("/proc/self/oom_score_adj", "-1000"))
attempt("uid_map", lambda: write("/proc/self/uid_map", "0 0 1"))
attempt("setgroups", lambda: write("/proc/self/setgroups", "allow"))
say("end", "end")
