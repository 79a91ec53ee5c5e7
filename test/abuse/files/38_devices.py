import stat

expected = set("null zero full random urandom tty ptmx pts fd stdin stdout stderr shm mqueue console core".split())
try:
    names = os.listdir("/dev")
except PermissionError:
    names = []
    for name in "mem kmem port kmsg sda vda nvme0n1 loop0 loop-control kvm fuse net/tun mapper/control cpu/0/msr dri/card0 vhost-net uinput snapshot hpet rtc0 tty0 vcs".split():
        attempt("open /dev/" + name, lambda: open_for("/dev/" + name, os.O_RDONLY))
for name in names:
    if name not in expected:
        say("/dev/" + name, "ok")
for root, _, names in os.walk("/dev"):
    for name in names:
        path = os.path.join(root, name)
        try:
            st = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISBLK(st.st_mode):
            say("block device " + path, "ok")
        if stat.S_ISCHR(st.st_mode) and os.major(st.st_rdev) not in (1, 5, 136) or st.st_rdev in (os.makedev(1, 1), os.makedev(1, 2), os.makedev(1, 4), os.makedev(1, 11)):
            say("character device " + path, "ok")
holds("null swallows", os.write(os.open("/dev/null", os.O_WRONLY), b"x") == 1)
say("end", "end")
